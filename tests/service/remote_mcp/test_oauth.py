"""A client gets exactly the access that a person approved, and a stranger gets none."""

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from click.testing import CliRunner

from memoranda.cli.main import command
from memoranda.home.access.oauth_grants import GrantStore
from tests.service.http.running_service import RunningService
from tests.service.remote_mcp.remote_service import (
    INITIALIZE,
    Person,
    ask,
    browsing,
    read_query,
    rpc,
    run_remote_service,
)

REDIRECT = "https://app.example/callback"


@dataclass
class ClientProgram:
    """A program that asks for access, honest or not."""

    running: RunningService
    person: Person
    redirect_uri: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    client_id: str = ""

    def register(self, redirect_uri: str) -> None:
        """Register in the store itself, because the endpoint limits how often clients register."""
        client = GrantStore(self.running.service.database.open).register("A program", (redirect_uri,))
        self.client_id = client.id

    @property
    def resource(self) -> str:
        return f"{self.running.url}/mcp"

    def page_url(self, **changed: str | None) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": "xyz",
            "scope": "read curate",
            "resource": self.resource,
        } | changed
        return f"/oauth/authorize?{urlencode({name: value for name, value in asked.items() if value is not None})}"

    def get_code(self, key: str, **form: str | None) -> str:
        answer = self.person.submit(self.person.open_page(self.page_url()), api_key=key, **form)
        assert answer.status_code == 303, answer.text
        return read_query(answer.headers["Location"])["code"]

    def exchange(self, **changed: str | None) -> httpx2.Response:
        asked = {"client_id": self.client_id, "resource": self.resource} | changed
        form = {name: value for name, value in asked.items() if value is not None}
        return self.person.browser.post("/oauth/token", data=form)

    def exchange_code(self, code: str, **changed: str | None) -> httpx2.Response:
        asked = {"code": code, "redirect_uri": self.redirect_uri, "code_verifier": self.verifier}
        return self.exchange(grant_type="authorization_code", **(asked | changed))

    def refresh(self, token: str, **changed: str | None) -> httpx2.Response:
        return self.exchange(grant_type="refresh_token", refresh_token=token, **changed)

    def get_tokens(self, key: str, **form: str | None) -> dict[str, Any]:
        answer = self.exchange_code(self.get_code(key, **form))
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    def works(self, token: str) -> bool:
        return ask(self.running, rpc("ping"), key=token).status_code == 200


@pytest.fixture
def program(remote_service: RunningService) -> Iterator[ClientProgram]:
    with browsing(remote_service) as person:
        program = ClientProgram(remote_service, person)
        program.register(REDIRECT)
        yield program


def test_the_metadata_leads_from_the_resource_to_all_endpoints(remote_service: RunningService) -> None:
    """As RFC 9728 and RFC 8414 have it, with the public address in every link."""
    with browsing(remote_service) as person:
        resource = person.open_page("/.well-known/oauth-protected-resource/mcp").json()
        assert resource["resource"] == f"{remote_service.url}/mcp"
        assert resource["authorization_servers"] == [remote_service.url]
        server = person.open_page("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == remote_service.url
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert all(value.startswith(remote_service.url) for name, value in server.items() if name.endswith("_endpoint"))


@pytest.mark.slow
def test_without_a_public_address_there_is_no_oauth(tmp_path: Path) -> None:
    """The Host header is the client's word, so no metadata is made of it."""
    with run_remote_service(tmp_path / "home", with_oauth=False) as running, browsing(running) as person:
        assert person.open_page("/.well-known/oauth-protected-resource/mcp").status_code == 404
        assert person.browser.post("/oauth/token", data={}).status_code == 404
        assert ask(running, INITIALIZE).headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.slow
def test_an_approved_client_gets_the_access_of_the_key(program: ClientProgram) -> None:
    """With the same user and the scopes that were asked for; the response names state and issuer."""
    key = program.running.key("read", "curate", "append", user="oauth-ana")
    answer = program.person.submit(program.person.open_page(program.page_url()), api_key=key)
    result = read_query(answer.headers["Location"])
    assert (result["state"], result["iss"]) == ("xyz", program.running.url)
    tokens = program.exchange_code(result["code"])
    assert tokens.headers["Cache-Control"] == "no-store"
    assert tokens.json()["scope"] == "read curate"
    access = tokens.json()["access_token"]
    remembered = ask(program.running, rpc("tools/call", name="remember", arguments={"text": "Keeps bees."}), key=access)
    assert remembered.json()["result"]["isError"] is False
    assert program.running.service.memory_of("oauth-ana").entries() == ("Keeps bees.",)


def test_a_token_is_for_mcp_only(program: ClientProgram) -> None:
    """It is bound to that resource; the rest of the service takes keys."""
    access = program.get_tokens(program.running.key(user="oauth-ben"))["access_token"]
    refused = program.person.browser.get("/v1/sessions", headers={"Authorization": f"Bearer {access}"})
    assert refused.status_code == 401


@pytest.mark.slow
def test_a_person_can_allow_reading_only(program: ClientProgram) -> None:
    """Whatever the client asked for; and a key that only reads gives no more."""
    for key, form in ((program.running.key(user="o1"), {"read_only": "yes"}), (program.running.key("read"), {})):
        tokens = program.get_tokens(key, **form)
        assert tokens["scope"] == "read"
        tools = ask(program.running, rpc("tools/list"), key=tokens["access_token"]).json()["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["session_search"]


@pytest.mark.slow
def test_a_code_is_valid_once(program: ClientProgram) -> None:
    """A second use means that it was stolen, so the tokens of the first end as well."""
    code = program.get_code(program.running.key(user="o2"))
    tokens = program.exchange_code(code).json()
    assert program.works(tokens["access_token"])
    assert program.exchange_code(code).json()["error"] == "invalid_grant"
    assert not program.works(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": "short"},
        {"code_verifier": None},
        {"redirect_uri": "https://app.example/other"},
        {"redirect_uri": None},
        {"client_id": "another"},
        {"code": "made-up"},
    ],
)
def test_a_code_is_only_for_the_client_that_asked(program: ClientProgram, changed: dict[str, str | None]) -> None:
    """With the verifier and the address of its own request."""
    code = program.get_code(program.running.key(user="o3"))
    refused = program.exchange_code(**({"code": code} | changed))  # type: ignore[arg-type]
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


def test_a_code_expires(program: ClientProgram) -> None:
    """After a minute; it travels through a browser and its history."""
    code = program.get_code(program.running.key(user="o4"))
    with program.running.service.database.open().writing() as connection:
        connection.execute("UPDATE oauth_tokens SET expires = 1.0 WHERE kind = 'code'")
    assert program.exchange_code(code).json()["error"] == "invalid_grant"


@pytest.mark.slow
def test_refresh_tokens_rotate_and_a_reused_one_ends_the_grant(program: ClientProgram) -> None:
    """Two programs that have the same token cannot both be the client."""
    first = program.get_tokens(program.running.key(user="o5"))
    second = program.refresh(first["refresh_token"]).json()
    assert program.works(second["access_token"])
    assert program.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert not program.works(second["access_token"])
    assert program.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.slow
def test_an_access_token_expires(program: ClientProgram) -> None:
    """The refresh token gets another one."""
    tokens = program.get_tokens(program.running.key(user="o6"))
    with program.running.service.database.open().writing() as connection:
        connection.execute("UPDATE oauth_tokens SET expires = 1.0 WHERE kind = 'access'")
    assert not program.works(tokens["access_token"])
    assert program.works(program.refresh(tokens["refresh_token"]).json()["access_token"])


@pytest.mark.slow
def test_a_revoked_key_ends_what_it_approved(program: ClientProgram) -> None:
    """At once, for access and refresh tokens."""
    token = program.running.key(user="o7")
    tokens = program.get_tokens(token)
    program.running.service.keys.revoke(token.split("_")[1])
    assert not program.works(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.slow
def test_a_client_can_revoke_its_tokens(program: ClientProgram) -> None:
    """Another client cannot, and learns nothing by trying."""
    tokens = program.get_tokens(program.running.key(user="o8"))
    for client_id, still_works in (("another", True), (program.client_id, False)):
        form = {"token": tokens["refresh_token"], "client_id": client_id}
        assert program.person.browser.post("/oauth/revoke", data=form).status_code == 200
        assert program.works(tokens["access_token"]) is still_works


@pytest.mark.slow
def test_a_person_sees_and_disconnects_programs(program: ClientProgram) -> None:
    """On the machine of the service, by name; the key itself stays valid."""
    key = program.running.key(user="o13")
    tokens = program.get_tokens(key)
    home = str(program.running.service.memory.home.root)
    listed = CliRunner().invoke(command, ["key", "programs", "--home", home, "--json"])
    (found,) = [each for each in json.loads(listed.output) if each["key"] == key.split("_")[1]]
    assert (found["name"], found["scopes"]) == ("A program", ["read", "curate"])
    assert CliRunner().invoke(command, ["key", "disconnect", found["id"], "--home", home]).exit_code == 0
    assert CliRunner().invoke(command, ["key", "disconnect", found["id"], "--home", home]).exit_code == 1
    assert not program.works(tokens["access_token"]) and program.works(key)


def test_a_token_for_another_resource_is_refused(program: ClientProgram) -> None:
    """In both steps (RFC 8707)."""
    page = program.person.open_page(program.page_url(resource="https://other.example/mcp"))
    assert page.status_code == 400 and "Location" not in page.headers
    code = program.get_code(program.running.key(user="o9"))
    assert program.exchange_code(code, resource="https://other.example/mcp").json()["error"] == "invalid_target"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "unknown"},
        {"client_id": None},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": "https://app.example/callback/../other"},
        {"redirect_uri": "https://app.example/callback?x=1"},
        {"redirect_uri": "https://app.example:444/callback"},
        {"redirect_uri": "https://APP.example/callback"},
        {"redirect_uri": "http://app.example/callback"},
        {"response_type": "token"},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"state": "s" * 3_000},
    ],
)
def test_a_wrong_request_is_shown_and_never_redirected(program: ClientProgram, changed: dict[str, str | None]) -> None:
    """Otherwise a link to this server would lead wherever a stranger wants."""
    page = program.person.open_page(program.page_url(**changed))
    assert (page.status_code, page.headers.get("Location")) == (400, None)
    assert "<form" not in page.text


def test_a_repeated_parameter_is_refused(program: ClientProgram) -> None:
    """Two programs may each follow another one of them."""
    page = program.person.open_page(program.page_url() + "&redirect_uri=https%3A%2F%2Fevil.example%2F")
    assert page.status_code == 400


def test_the_port_of_a_loopback_address_is_free(program: ClientProgram) -> None:
    """A client on the person's machine gets a free port; host and path must be the registered ones."""
    program.register("http://127.0.0.1/done")
    for redirect_uri, status in (
        ("http://127.0.0.1:49152/done", 200),
        ("http://127.0.0.1:49152/other", 400),
        ("http://localhost:49152/done", 400),
        ("http://127.0.0.1.evil.example:49152/done", 400),
        ("http://127.0.0.1:49152@evil.example/done", 400),
    ):
        assert program.person.open_page(program.page_url(redirect_uri=redirect_uri)).status_code == status


@pytest.mark.slow
def test_a_form_that_another_site_sends_is_refused(program: ClientProgram) -> None:
    """Without the cookie of this browser, with another token, or from another origin, nothing is approved."""
    key = program.running.key(user="o10")
    page = program.person.open_page(program.page_url())
    assert program.person.submit(page, api_key=key, form_token="x" * 43).status_code == 403
    assert program.person.submit(page, api_key=key, form_token=None).status_code == 403
    with browsing(program.running) as other_browser:
        assert other_browser.submit(page, api_key=key).status_code == 403
    with browsing(program.running, Origin="https://evil.example") as attacked:
        assert attacked.submit(attacked.open_page(program.page_url()), api_key=key).status_code == 403


def test_the_page_runs_nothing_and_cannot_be_framed(program: ClientProgram) -> None:
    """Its policy forbids scripts, frames and other targets of its form; its cookie is out of reach of scripts."""
    page = program.person.open_page(program.page_url())
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert f"form-action 'self' {REDIRECT.removesuffix('/callback')};" in policy
    assert "script" not in page.text.lower()
    cookie = page.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    assert "app.example" in page.text


def test_the_name_of_a_client_cannot_change_the_page(program: ClientProgram) -> None:
    """It is text from a stranger."""
    name = '<script>alert(1)</script>"><b>\nYour bank' + "x" * 5_000
    registered = program.person.browser.post(
        "/oauth/register", json={"client_name": name, "redirect_uris": [REDIRECT]}
    ).json()
    page = program.person.open_page(program.page_url(client_id=registered["client_id"]))
    assert "<script" not in page.text and "&lt;script&gt;" in page.text
    assert len(page.text) < 5_000


def test_a_person_can_deny(program: ClientProgram) -> None:
    """The client learns only that."""
    answer = program.person.submit(program.person.open_page(program.page_url()), decision="deny")
    result = read_query(answer.headers["Location"])
    assert result["error"] == "access_denied" and "code" not in result


def test_a_key_that_cannot_be_used_approves_nothing(program: ClientProgram) -> None:
    """An unknown one, one for a whole tenant, one that may not read; the page says which."""
    page = program.person.open_page(program.page_url())
    for key, words in (
        ("nonsense", "unknown"),
        ("", "unknown"),
        (program.running.key(tenant="acme-o"), "bound to you"),
        (program.running.key("append", user="o11"), "may not read"),
    ):
        page = program.person.submit(page, api_key=key)
        assert page.status_code == 403 and words in page.text and (not key or key not in page.text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"redirect_uris": []},
        {"redirect_uris": ["http://app.example/"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["https://app.example/#fragment"]},
        {"redirect_uris": ["https://user:pw@app.example/"]},
        {"redirect_uris": ["https://app.example;script-src/"]},
        {"redirect_uris": ["https://app.example/ x"]},
        {"redirect_uris": ["https://app.example/\r\nSet-Cookie: a=b"]},
        {"redirect_uris": ["custom://app"]},
        {"redirect_uris": [REDIRECT, 7]},
        {"redirect_uris": [REDIRECT] * 11},
        {"redirect_uris": [REDIRECT], "grant_types": ["client_credentials"]},
        {"redirect_uris": [REDIRECT], "client_name": 7},
        [],
        "text",
    ],
)
def test_a_client_with_wrong_metadata_is_not_registered(program: ClientProgram, body: Any) -> None:
    """Above all none that receives codes without encryption on another machine."""
    refused = program.person.browser.post("/oauth/register", json=body)
    assert refused.status_code == 400 and refused.json()["error"].startswith("invalid_")


@pytest.mark.slow
def test_only_so_many_clients_can_register(tmp_path: Path) -> None:
    """From one address, as the proxy before the service names it: registration needs no key."""
    with run_remote_service(tmp_path / "home") as running, browsing(running) as person:
        body = {"redirect_uris": [REDIRECT]}
        statuses = [person.browser.post("/oauth/register", json=body).status_code for _ in range(25)]
        assert statuses[:20] == [201] * 20 and statuses[-1] == 429
        for address, status in (("203.0.113.7", 201), ("1.2.3.4, 2001:db8::1", 201), ("127.0.0.1", 429)):
            headers = {"X-Forwarded-For": address}
            assert person.browser.post("/oauth/register", json=body, headers=headers).status_code == status
        assert person.browser.post("/oauth/register", content=b"x" * 50_000).status_code in (400, 413)


def test_no_token_is_stored(program: ClientProgram) -> None:
    """Only hashes: a copy of the database gives no access."""
    tokens = program.get_tokens(program.running.key(user="o12"))
    home = program.running.service.database.path.parent
    stored = b"".join(path.read_bytes() for path in home.glob("home.db*"))
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert token.encode() not in stored
        assert hashlib.sha256(token.encode()).hexdigest().encode() in stored
