"""What a home had before it used a provider: turns of its record, and the entries of curated memory.

A turn that a provider was not in use for has no mark that names it, so the outbox never finds it. Backfilling queues
such turns by the numbers of their messages, oldest first, with the key that they would have had; then they are jobs
like all others. How far it came is stored in the transaction that queues them, so a command that was killed continues
when it is repeated, and queues nothing twice.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from memoranda.external.message_text import plain_text
from memoranda.external.outbox.jobs import Found, NewJob
from memoranda.external.outbox.recorded_turns import PRIMARY, ids_of, is_for, turn_key, turn_mark
from memoranda.memory.record.message_rows import DONE
from memoranda.memory.record.store import SessionStore
from memoranda.models.tokens import estimate_text
from memoranda.storage.connection import Connection
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass


class EarlierTurn(NamedTuple):
    """A completed turn of the record: its messages, when it began, and about how many tokens its texts have."""

    last_message: int
    first_message: int
    session_id: str
    began: float
    tokens: int

    def as_found(self) -> Found:
        """The job, with the time of the turn, which the provider gets as the time of the delivery."""
        key = turn_key(self.session_id, self.first_message)
        return Found(key, "turn", self.session_id, self.first_message, self.last_message, created=self.began)


@dataclass(frozen=True, slots=True)
class BackfillState:
    """How far a provider of a user was backfilled: the last message, and the keys of entries."""

    last_message: int = 0
    entries: frozenset[str] = frozenset()


def read_state(connection: Connection, provider: str, scope: str) -> BackfillState:
    found = read_meta(connection, _name(provider, scope))
    if not found:
        return BackfillState()
    stored = json.loads(found)
    return BackfillState(int(stored["last_message"]), frozenset(stored["entries"]))


def write_state(connection: Connection, provider: str, scope: str, state: BackfillState) -> None:
    stored = {"last_message": state.last_message, "entries": sorted(state.entries)}
    write_meta(connection, _name(provider, scope), json.dumps(stored))


def _name(provider: str, scope: str) -> str:
    return f"outbox:backfill:{provider}:{scope}"


def earlier_turns(store: SessionStore, provider: str, excluded_sources: frozenset[str]) -> list[EarlierTurn]:
    """The completed turns of one user that the provider was not in use for, in the order of their last messages.

    Work of delegates is left out, as in a live conversation.
    """
    store_ids = ids_of(store)
    found: list[EarlierTurn] = []
    for session_id in sorted(store.feed.session_ids()):
        row = store.sessions.get_session(session_id) or {}
        if row.get("relation") != "delegation" and row.get("source") not in excluded_sources:
            messages = store.messages.get_messages(session_id, include_inactive=True)
            own = [each for each in messages if each["copy_of"] is None and not each["is_summary"]]
            found += [turn for turn, mark in _turns_of(session_id, own) if not is_for(provider, mark, store_ids)]
    return sorted(found)


def _turns_of(session_id: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[EarlierTurn, object]]:
    """The turns of a session, each with its mark: a question, and the last message before the next one, an answer."""
    starts = [number for number, message in enumerate(messages) if message["role"] == "user"]
    for start, end in pairwise([*starts, len(messages)]):
        first, last = messages[start], messages[end - 1]
        texts = plain_text(first["content"]), plain_text(last["content"])
        # A turn that carries marks, and none that it is done, was interrupted.
        is_interrupted = turn_mark(first) is not None and DONE not in last
        if last["role"] == "assistant" and not last.get("tool_calls") and all(texts) and not is_interrupted:
            tokens = sum(map(estimate_text, texts))
            yield EarlierTurn(last["id"], first["id"], session_id, first["timestamp"], tokens), last.get(DONE)


def entry_job(target: str, text: str) -> NewJob:
    """The job that delivers an entry of curated memory as if it had just been added."""
    args = {"action": "add", "target": target, "content": text}
    facts = {"metadata": {"backfill": True}, "agent_context": PRIMARY}
    return NewJob("memory_write", "", args, facts, f"entry:{target}:{digest(text)[:32]}")
