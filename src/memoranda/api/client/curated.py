"""Curated memory at a service: its entries with their sizes, changes of single entries, the log and undo."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from memoranda.api.client.transport import Request, Transport
from memoranda.errors import SessionError
from memoranda.support.tool import JsonObject
from memoranda.types import MemoryAnswer

Target = str
HANDLE = "entry:"
"""What stands before the id of an entry where a person may also type a part of its text."""
_PROPOSALS = "/v1/memory/proposals"
_REFUSALS = frozenset({
    "invalid", "disabled", "blocked", "over_budget", "no_match", "ambiguous", "approval", "drift", "conflict",
})  # fmt: skip


class RemoteCuratedMemory:
    """What a person can do with the entries of a user. Raises SessionError for a change that is refused."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def view(self, target: str) -> JsonObject:
        """All entries with their facts (id, text, blocked, written …), and how much of the limit they use."""
        return cast(JsonObject, self._transport.read("GET", _entries_path(target)))

    def replace(self, target: str, entry_id: str, text: str, *, until: str = "") -> JsonObject:
        """Replace an entry; returns the receipt."""
        return self._change("PATCH", target, entry_id, {"text": text} | ({"until": until} if until else {}))

    def remove(self, target: str, entry_id: str) -> JsonObject:
        """Remove an entry; returns the receipt. Undo restores it."""
        return self._change("DELETE", target, entry_id, None)

    def confirm(self, target: str, entry_id: str) -> JsonObject:
        """Note that an entry is still true; returns it with its facts."""
        path = f"{_entries_path(target)}/{quote(entry_id, safe='')}/confirm"
        return cast(JsonObject, self._transport.send(Request("POST", path)))

    def move(self, target: str, old_text: str, to: str) -> JsonObject:
        """Move the entry or note that contains a text to another target, or to "notes"; returns the receipt."""
        body = {"target": target, "old_text": old_text, "to": to}
        return cast(JsonObject, self._transport.send(Request("POST", "/v1/memory/move", body)))

    def log(self, *, limit: int = 20, target: str | None = None) -> list[JsonObject]:
        """The latest changes, the newest first."""
        return self._transport.read_pages("/v1/memory/log", "changes", limit, target=target)

    def proposals(self) -> list[JsonObject]:
        """What awaits approval, the oldest first."""
        return cast("list[JsonObject]", self._transport.read("GET", _PROPOSALS)["proposals"])

    def approve(self, proposal_id: str) -> JsonObject:
        """Apply a proposal; returns the receipt. Raises SessionError if it no longer fits what was shown."""
        return cast(JsonObject, self._transport.send(Request("POST", f"{_PROPOSALS}/{quote(proposal_id)}/approve")))

    def reject(self, proposal_id: str) -> None:
        """Reject a proposal; its text is kept until the history is purged."""
        self._transport.send(Request("POST", f"{_PROPOSALS}/{quote(proposal_id)}/reject"))

    def diff(self, since: int | None = None) -> JsonObject:
        """The entries that were `added` and `removed` since a change (by default the latest), by target."""
        return cast(JsonObject, self._transport.read("GET", "/v1/memory/diff", since=since)["targets"])

    def undo(self, change: int | None = None) -> JsonObject:
        """Undo a change by its number in the log, by default the latest; returns the receipt."""
        body = {} if change is None else {"change": change}
        return cast(JsonObject, self._transport.send(Request("POST", "/v1/memory/undo", body)))

    def _change(self, method: str, target: str, entry_id: str, body: Any) -> JsonObject:
        # Sent once: a second attempt would find no entry, and report an error for a change that was made.
        path = f"{_entries_path(target)}/{quote(entry_id, safe='')}"
        return cast(JsonObject, self._transport.send(Request(method, path, body)))


def entries(transport: Transport, target: Target) -> tuple[str, ...]:
    """The texts of all entries."""
    return tuple(entry["text"] for entry in RemoteCuratedMemory(transport).view(target)["entries"])


def get(transport: Transport, key: str) -> str | None:
    """The value of a keyed entry of the user's profile or the agent's notes."""
    return cast("str | None", transport.read("GET", "/v1/memory/value", key=key)["value"])


def remember(
    transport: Transport, text: str, target: Target, session_id: str = "", *, key: str = "", until: str = ""
) -> MemoryAnswer:
    """Save a fact. A refusal (blocked, over the limit …) is an answer, as in the library."""
    given = {"session_id": session_id, "key": key, "until": until}
    body = {"text": text} | {name: value for name, value in given.items() if value}
    try:
        answer = transport.write("POST", _entries_path(target), body)
    except SessionError as error:
        problem = getattr(error, "problem", {})
        if problem.get("reason") not in _REFUSALS:
            raise
        findings = {"findings": problem["findings"]} if "findings" in problem else {}
        return cast("MemoryAnswer", {"success": False, "reason": problem["reason"], "error": str(error)} | findings)
    receipt = {name: value for name, value in answer.items() if value is not None and name not in ("ids", "proposal")}
    staged = {"reason": "approval", "pending_id": answer["proposal"]} if "proposal" in answer else {}
    return cast("MemoryAnswer", {"success": True} | receipt | staged)


def find_entry(wanted: str, *views: Mapping[str, Any]) -> JsonObject:
    """The entry with this number, this id, or this text as a part of it; raises SessionError unless it is one."""
    every = [
        (str(number), {"target": view["target"], **entry})
        for view in views
        for number, entry in enumerate(view["entries"], start=1)
    ]
    named = [each for number, each in every if wanted in (number, each["id"], HANDLE + each["id"])]
    # A number that no entry has must not mean one that contains it.
    containing = named or [each for _, each in every if wanted in each["text"] and not wanted.isdecimal()]
    if len(containing) == 1:
        return containing[0]
    if not containing:
        raise SessionError(f"No entry contains {wanted!r}. Nothing was changed.")
    shown = "".join(f"\n  - {entry['id']}  {entry['text']}" for entry in containing)
    raise SessionError(f"{wanted!r} can mean several entries. Nothing was changed; use an id:{shown}")


def _entries_path(target: str) -> str:
    return f"/v1/memory/{quote(target, safe='')}/entries"
