"""Curated memory at a service: its entries with their sizes, changes of single entries, the log and undo."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from memoranda.api.client.transport import AsyncTransport, Operation, Request, Transport, awaitable, reading
from memoranda.errors import SessionError
from memoranda.support.tool import JsonObject


class RemoteCuratedMemory:
    """What a person can do with the entries of a user. Raises SessionError for a change that is refused."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def view(self, target: str) -> JsonObject:
        """All entries (id, text, blocked), and how many characters they use of how many."""
        return self._transport.run(_view(target))

    def replace(self, target: str, entry_id: str, text: str) -> JsonObject:
        """Replace an entry; returns the receipt."""
        return self._transport.run(_change("PATCH", target, entry_id, {"text": text}))

    def remove(self, target: str, entry_id: str) -> JsonObject:
        """Remove an entry; returns the receipt. Undo restores it."""
        return self._transport.run(_change("DELETE", target, entry_id, None))

    def log(self, *, limit: int = 20, target: str | None = None) -> list[JsonObject]:
        """The latest changes, the newest first."""
        return self._transport.run(_log(limit, target))

    def undo(self, change: int) -> JsonObject:
        """Undo a change by its number in the log; returns the receipt."""
        return self._transport.run(_undo(change))


class AsyncRemoteCuratedMemory:
    """The same for asyncio."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    view = awaitable(RemoteCuratedMemory.view)
    replace = awaitable(RemoteCuratedMemory.replace)
    remove = awaitable(RemoteCuratedMemory.remove)
    log = awaitable(RemoteCuratedMemory.log)
    undo = awaitable(RemoteCuratedMemory.undo)


def find_entry(view: Mapping[str, Any], wanted: str) -> JsonObject:
    """The entry with this number, this id, or this text as a part of it; raises SessionError unless it is one."""
    entries: list[JsonObject] = view["entries"]
    containing = [entry for entry in entries if wanted in entry["text"] or entry["id"] == wanted]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(entries) and entries[int(wanted) - 1] not in containing:
        containing.append(entries[int(wanted) - 1])
    if len(containing) == 1:
        return containing[0]
    if not containing:
        raise SessionError(f"No entry contains {wanted!r}. Nothing was changed.")
    shown = "".join(f"\n  - {entry['id']}  {entry['text']}" for entry in containing)
    raise SessionError(f"{wanted!r} can mean several entries. Nothing was changed; use an id:{shown}")


def _view(target: str) -> Operation[JsonObject]:
    answer = yield reading("GET", f"/v1/memory/{quote(target, safe='')}/entries")
    return cast(JsonObject, answer)


def _change(method: str, target: str, entry_id: str, body: Any) -> Operation[JsonObject]:
    # Sent once: a second attempt would find no entry, and report an error for a change that was made.
    path = f"/v1/memory/{quote(target, safe='')}/entries/{quote(entry_id, safe='')}"
    answer = yield Request(method, path, body)
    return cast(JsonObject, answer)


def _log(limit: int, target: str | None) -> Operation[list[JsonObject]]:
    found: list[JsonObject] = []
    cursor: str | None = None
    while len(found) < limit:
        page = min(100, limit - len(found))
        answer = yield reading("GET", "/v1/memory/log", limit=page, cursor=cursor, target=target)
        found += answer["changes"]
        cursor = answer.get("next_cursor")
        if cursor is None:
            break
    return found


def _undo(change: int) -> Operation[JsonObject]:
    answer = yield Request("POST", "/v1/memory/undo", {"change": change})
    return cast(JsonObject, answer)
