"""Requests to Mem0's platform are those of its official client, which were recorded."""

import json
import re
from typing import Any

import pytest

from tests.external.vendors.mem0.conftest import Start
from tests.external.vendors.mem0.double import RECORDED, PlatformDouble

pytestmark = pytest.mark.slow

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OWN = re.compile(r"/v1/events?/")


def test_every_request_is_one_of_the_official_client(platform: PlatformDouble, start: Start) -> None:
    """The same method, path and fields; only events, which the client does not use, come from the description."""
    provider = start(platform)
    provider.test_connection()
    provider.sync_turn("I live in Graz", "Noted.", session_id="s1", idempotency_key="k1", attempt=2)
    provider.prefetch("I live in Graz", session_id="s1")
    memory_id = platform.memories[0]["id"]
    provider.handle_tool_call("mem0_update", {"memory_id": memory_id, "text": "I live in Linz"})
    provider.handle_tool_call("mem0_delete", {"memory_id": memory_id})
    sent = {_shape(method, path, body) for method, path, _, body in platform.service.requests if not _OWN.search(path)}
    recorded = json.loads((RECORDED / "platform_client.json").read_text("utf-8"))["requests"].values()
    assert sent == {_shape(method, path, json.dumps(body).encode()) for method, path, body in recorded}


def _shape(method: str, path: str, body: bytes) -> tuple[str, str, tuple[str, ...]]:
    fields: Any = json.loads(body) if body else None
    return method, _ID.sub("ID", path), tuple(sorted(fields)) if isinstance(fields, dict) else ()
