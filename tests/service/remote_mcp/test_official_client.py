"""The official MCP client works with the service, with a key and through its own OAuth."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.types import TextContent
from pydantic import AnyUrl

from tests.integrations.mcp.official_client import Era, run
from tests.service.http.running_service import RunningService
from tests.service.remote_mcp.remote_service import browsing, read_query
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow


class MemoryStorage:
    """Where the official client stores its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def _connect(running: RunningService, era: Era, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(timeout=GIVE_UP, trust_env=False, **options) as http,
        Client(streamable_http_client(f"{running.url}/mcp", http_client=http), mode=era) as connected,
    ):
        yield connected


async def _call(connected: Client, name: str, **arguments: Any) -> dict[str, Any]:
    (content,) = (await connected.call_tool(name, arguments)).content
    assert isinstance(content, TextContent)
    answer: dict[str, Any] = json.loads(content.text)
    return answer


def _oauth(running: RunningService, key: str, storage: MemoryStorage) -> OAuthClientProvider:
    """The official client's provider, with a person who approves it once with a key."""
    arrived: list[str] = []
    asked: list[str] = []

    async def redirect(url: str) -> None:
        asked.append(url)
        assert len(asked) == 1, "the person was asked again"
        with browsing(running) as person:
            answer = person.submit(person.open_page(url), api_key=key)
            assert answer.status_code == 303, answer.text
            arrived.append(answer.headers["Location"])

    async def callback() -> AuthorizationCodeResult:
        result = read_query(arrived.pop())
        return AuthorizationCodeResult(code=result["code"], state=result["state"], iss=result["iss"])

    metadata = OAuthClientMetadata(
        client_name="The official client", redirect_uris=[AnyUrl("http://localhost:3030/callback")]
    )
    return OAuthClientProvider(f"{running.url}/mcp", metadata, storage, redirect, callback)


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_client_with_a_key_remembers_and_searches(remote_service: RunningService, era: Era) -> None:
    """In both generations of the protocol."""
    key = remote_service.key(user=f"official-{era}")

    async def host() -> None:
        async with _connect(remote_service, era, headers={"Authorization": f"Bearer {key}"}) as connected:
            assert (await _call(connected, "remember", text="The staging database is called heron."))["success"]
            assert (await _call(connected, "session_search"))["success"]
            names = [tool.name for tool in (await connected.list_tools()).tools]
            assert names == ["memory", "session_search", "remember"]
        async with _connect(remote_service, era, headers={"Authorization": f"Bearer {key}"}) as connected:
            assert "heron" in (connected.instructions or "")

    run(host)


def test_a_client_gets_access_by_itself_and_renews_it(remote_service: RunningService) -> None:
    """Discovery, registration, consent, tokens; later an expired token is refreshed without the person."""
    key, storage = remote_service.key("read", "curate", user="official-oauth"), MemoryStorage()

    async def host() -> None:
        provider = _oauth(remote_service, key, storage)
        async with _connect(remote_service, "legacy", auth=provider) as connected:
            assert (await _call(connected, "remember", text="Ana keeps bees."))["success"]
        assert storage.tokens is not None and storage.tokens.scope == "read curate"
        first = storage.tokens.access_token
        provider.context.token_expiry_time = 1.0
        async with _connect(remote_service, "legacy", auth=provider) as connected:
            assert "bees" in (connected.instructions or "")
        assert storage.tokens.access_token != first

    run(host)
    assert remote_service.service.memory_of("official-oauth").entries() == ("Ana keeps bees.",)
