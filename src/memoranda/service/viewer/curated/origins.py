"""Where each entry of curated memory comes from, as its journal says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.journal import APPROVED, MemoryChange
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.settings import Target

_BATCH = 200


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """The change that wrote an entry: who made it, in which session, and what untrusted text it may come from."""

    change: int
    actor: str
    session: str
    at: str
    sources: tuple[str, ...] = ()
    approved: bool = False


def find_origins(changes: Iterable[MemoryChange], target: Target) -> Mapping[str, EntryOrigin]:
    """The origin of each text that the journal knows; an undo restores a text with the origin that it had."""
    found: dict[str, EntryOrigin] = {}
    for change in changes:
        if change.target != target:
            continue
        for text in (edit.after for edit in change.edits if edit.after is not None):
            if change.action != "undo" or text not in found:
                found[text] = EntryOrigin(
                    change.number,
                    change.actor,
                    change.session,
                    change.at,
                    tuple(change.sources.get(handle(text), ())),
                    change.note == APPROVED,
                )
    return found


def find_message(db: SessionDB, session_id: str, at: float) -> int | None:
    """The message in which a session made a change at a time: the last one with a tool call until then.

    Without a tool call it is the last message. None if the session has no message from before that time.
    """
    last = call = None
    after = 0
    while batch := db.get_messages(session_id, include_inactive=True, limit=_BATCH, after=after):
        for message in batch:
            if message["timestamp"] > at:
                return call or last
            last = message["id"]
            call = last if message.get("tool_calls") else call
        after = batch[-1]["id"]
    return call or last
