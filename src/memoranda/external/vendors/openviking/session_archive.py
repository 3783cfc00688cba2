"""Hands a session that has ended to OpenViking, which extracts memories from it with its own model.

The session at the server has one name per session of this home. It counts what it has received, so a repeated delivery
adds nothing, and a session that was resumed adds only its new messages.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.message_text import plain_text
from memoranda.external.provider import Message
from memoranda.external.vendors.openviking.client import CONFLICT, MAX_BATCH, NOT_FOUND, JsonObject, OpenVikingClient
from memoranda.external.vendors.openviking.uris import OpenVikingUris
from memoranda.support.shorten import shorten_end

_MAX_TEXT_CHARS = 20_000
_MAX_OUTPUT_CHARS = 4_000
# Memories that OpenViking extracts about a peer must not become memories of the user to whom the peers belong.
_PEER_POLICY = {"self": {"enabled": False}, "peer": {"enabled": True}}


def archive_session(client: OpenVikingClient, session_id: str, messages: Sequence[Message], peer: str) -> None:
    """Add the messages that the server does not have yet, and commit the session. Raises ProviderError."""
    specs = list(message_specs(messages, peer))
    if not specs:
        return
    received = client.count_messages(session_id)
    if received is None:
        received = _create(client, session_id, peer)
    for first in range(received, len(specs), MAX_BATCH):
        client.add_messages(session_id, specs[first : first + MAX_BATCH])
    client.commit(session_id)


def delete_archive(client: OpenVikingClient, session_id: str, uris: OpenVikingUris) -> list[str]:
    """Delete a session and the memories that were extracted from it; returns the memories that stay.

    A memory that the session only changed belongs to other sessions as well, so it stays.
    """
    kept: list[str] = []
    archives = f"viking://user/{uris.user}/sessions/{session_id}/history"
    for diff in _read_diffs(client, archives):
        kept += [uri for uri in _changed(diff, "updates") if uris.contains(uri)]
        for uri in _changed(diff, "adds"):
            if uris.contains(uri):
                client.delete(uri)
    client.delete_session(session_id)
    return kept


def message_specs(messages: Sequence[Message], peer: str) -> Iterator[JsonObject]:
    """Messages in OpenViking's form: text, and tool calls with their results. Our own tools are left out."""
    outputs = {
        message.get("tool_call_id"): plain_text(message.get("content"))
        for message in messages
        if message.get("role") == "tool"
    }
    for message in messages:
        role = message.get("role")
        if role not in ("user", "assistant"):
            continue
        text = shorten_end(plain_text(message.get("content")).strip(), _MAX_TEXT_CHARS)
        parts: list[JsonObject] = [{"type": "text", "text": text}] if text else []
        if role == "assistant":
            parts += _tool_parts(message.get("tool_calls"), outputs)
        if parts:
            yield {"role": role, "parts": parts} | ({"peer_id": peer} if peer and role == "user" else {})


def _tool_parts(calls: Any, outputs: Mapping[Any, str]) -> Iterator[JsonObject]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        name = str(function.get("name") or "")
        if not name or name.startswith("viking_"):
            continue
        yield {
            "type": "tool",
            "tool_id": str(call.get("id") or ""),
            "tool_name": name,
            "tool_input": _arguments(function.get("arguments")),
            "tool_output": shorten_end(outputs.get(call.get("id"), ""), _MAX_OUTPUT_CHARS),
            "tool_status": "completed",
        }


def _arguments(text: Any) -> JsonObject:
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _create(client: OpenVikingClient, session_id: str, peer: str) -> int:
    """Create a session, and return how many messages it has: it may have been created by an attempt before."""
    try:
        client.create_session(session_id, _PEER_POLICY if peer else None)
    except PermanentProviderError as error:
        if error.status != CONFLICT:
            raise
        raise TemporaryProviderError(f"The session {session_id} was created meanwhile.") from error
    return 0


def _read_diffs(client: OpenVikingClient, archives: str) -> list[JsonObject]:
    """What each commit of a session has changed."""
    try:
        directories = client.list_directory(archives, limit=1_000)
    except PermanentProviderError as error:
        if error.status == NOT_FOUND:
            return []
        raise
    diffs: list[JsonObject] = []
    for directory in directories:
        try:
            diffs.append(_arguments(client.read(f"{directory.get('uri')}/memory_diff.json")))
        except PermanentProviderError as error:
            # A commit whose extraction failed has none.
            if error.status != NOT_FOUND:
                raise
    return diffs


def _changed(diff: JsonObject, kind: str) -> list[str]:
    operations = diff.get("operations")
    changes = operations.get(kind) if isinstance(operations, dict) else None
    return [str(change.get("uri") or "") for change in changes or () if isinstance(change, dict)]
