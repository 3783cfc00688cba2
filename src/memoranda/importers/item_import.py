"""One item on its way in: what a reader gives is gathered by session and handed on in batches."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, assert_never

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.import_state import ImportState, SeenSession
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ConversationReader,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.session_writer import IncomingSession, SessionWriter, is_same_session, session_name
from memoranda.importers.summary import ImportSummary
from memoranda.sessions.store import SessionStore
from memoranda.support.canonical_text import digest, unstorable_character

# A batch is written when it has so many messages, or so many characters in them.
_MOST_MESSAGES = 500
_MOST_CHARACTERS = 4_000_000
# What a reader of a damaged file may run into; it is said, and the other files go on.
_MISHAPS = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(slots=True)
class _Interruptible:
    """A session that messages wait for."""

    conversation: ImportedConversation
    latest: float | None
    messages: list[ImportedMessage] = field(default_factory=list)


class ItemImport:
    """Goes through one item."""

    def __init__(
        self,
        reader: ConversationReader,
        item: ImportItem,
        store: SessionStore,
        memo: ImportState,
        destination: SessionWriter,
        tally: ImportSummary,
        held: Iterable[str] = (),
    ) -> None:
        """`held` are the sessions that were met before the place where the item goes on."""
        self._reader = reader
        self._item = item
        self._store = store
        self._memo = memo
        self._destination = destination
        self._tally = tally
        self._waiting: dict[str, _Interruptible] = {}
        self._current: str | None = None
        self._held = set(held)
        # Sessions whose own messages have begun; what stands before them in a copy of another session is not theirs.
        self._begun: set[str] = set()
        self._mark = item.begin
        self._whole = True
        self._count = 0
        self._characters = 0

    def go(self, progress: Callable[[int], None]) -> None:
        """Read to the end; what was taken is noted batch by batch."""
        for given in self._given():
            match given:
                case ImportedConversation():
                    self._turn_to(given)
                case ImportedMessage():
                    self._gather(given)
                case Problem():
                    self._whole = self._whole and not given.unread
                    self._tally.add_problem(self._item, given)
                case Skipped():
                    self._tally.aside[given.what] += 1
                case Checkpoint():
                    self._mark = given
                case _:
                    assert_never(given)
            if self._count >= _MOST_MESSAGES or self._characters >= _MOST_CHARACTERS:
                self._hand_on(done=False)
                progress(self._mark.offset if self._mark else 0)
        self._hand_on(done=self._whole)

    def _given(self) -> Iterator[ReadEvent]:
        """What the reader gives; if it comes to grief, that is a problem like any other."""
        try:
            yield from self._reader.read(self._item)
        except _MISHAPS as error:
            text = f"cannot be read further: {type(error).__name__}: {error}"
            yield Problem(self._item.file, None, text, unread=True)

    def _turn_to(self, given: ImportedConversation) -> None:
        self._current = self._name(given, given.host_id)
        there = self._waiting.get(self._current)
        if there is None:
            self._waiting[self._current] = _Interruptible(given, given.started_at)
        else:
            there.conversation = _merged(there.conversation, given)

    def _name(self, given: ImportedConversation, host_id: str) -> str:
        return session_name(given.source or self._reader.name, host_id, self._store.scope.user)

    def _gather(self, given: ImportedMessage) -> None:
        """Let a message wait for its batch, with everything that one must have."""
        name = given.message.get("external_id")
        if self._current is None or not isinstance(name, str) or not name:
            lacks = "a conversation" if self._current is None else "an external id"
            problem = Problem(self._item.file, given.line, f"a message without {lacks}")
            self._tally.add_problem(self._item, problem)
            return
        waiting = self._waiting[self._current]
        at = parse_timestamp(given.message.get("timestamp"))
        # Said after the one before it, or at least before the file was last changed.
        waiting.latest = at if at is not None else waiting.latest or self._item.changed
        if unstorable_character(name):
            name = digest(name)
        message = {**without_own_answer(given.message), "external_id": name, "timestamp": waiting.latest}
        waiting.messages.append(ImportedMessage(message, given.line))
        self._count += 1
        self._characters += _length(message)

    def _hand_on(self, *, done: bool) -> None:
        """Give everything that waits to the destination, and then say how far that was."""
        for session_id, waiting in self._waiting.items():
            self._hand_over(session_id, waiting)
        # Whatever comes back to a session names it again.
        self._waiting = {name: each for name, each in self._waiting.items() if name == self._current}
        self._count = self._characters = 0
        self._destination.note(self._item, self._mark, self._held, done=done)

    def _hand_over(self, session_id: str, waiting: _Interruptible) -> None:
        messages, waiting.messages = waiting.messages, []
        met = self._destination.met(session_id)
        if met is None and not messages:
            return
        self._held.add(session_id)
        source = self._reader.name
        met = met or SeenSession(session_id, self._memo.family(source, messages[0].message["external_id"]))
        row = self._store.get_session(session_id)
        if row is None and self._is_deleted(session_id, waiting.conversation):
            self._tally.settle(session_id, "deleted")
            self._destination.take(
                self._item, IncomingSession(SeenSession(session_id, met.family), waiting.conversation, row), []
            )
        elif row is not None and not is_same_session(row, waiting.conversation, source):
            self._tally.settle(session_id, "conflict")
            self._tally.conflicts[session_id] = f"The record has another session of this name, from {row['source']}."
        else:
            self._take(IncomingSession(met, waiting.conversation, row), messages)

    def _is_deleted(self, session_id: str, conversation: ImportedConversation) -> bool:
        """Whether a session was deleted here, or the one that it worked for."""
        names = [session_id]
        if conversation.parent_host_id is not None and conversation.relation == "delegation":
            names.append(self._name(conversation, conversation.parent_host_id))
        return bool(not self._memo.again and self._store.deleted_sessions(names))

    def _take(self, arrival: IncomingSession, messages: list[ImportedMessage]) -> None:
        tally = self._tally
        relatives = self._relatives(arrival)
        messages = self._without_deleted(arrival, relatives, messages)
        names = [each.message["external_id"] for each in messages]
        shared = self._store.get_external_ids(relatives, names) if relatives else {}
        own = [each for each in messages if each.message["external_id"] not in shared]
        if arrival.row is None:
            arrival = self._placed(arrival, [shared[name] for name in names if name in shared], bool(own))
        added, problems = self._destination.take(self._item, arrival, own)
        for problem in problems:
            tally.add_problem(self._item, problem)
        tally.messages += added
        tally.messages_known += len(messages) - len(problems) - added
        tally.settle(arrival.id, "unchanged" if not added else "grown" if arrival.row else "new")
        if renamed := self._destination.name(arrival):
            tally.renamed[arrival.id] = renamed

    def _relatives(self, arrival: IncomingSession) -> list[str]:
        """The other sessions that may hold the same messages."""
        found = self._destination.relatives(arrival.met)
        if arrival.row is not None and arrival.row["relation"] == "branch":
            # The record knows where a branch came from, whatever else was forgotten.
            found += [each["id"] for each in self._store.get_ancestors(arrival.id)[1:]]
        return list(dict.fromkeys(found))

    def _without_deleted(
        self, arrival: IncomingSession, relatives: Sequence[str], messages: list[ImportedMessage]
    ) -> list[ImportedMessage]:
        """Leave out what was said in a relative that was deleted: it stands before everything that the session has."""
        row = arrival.row
        if row is None or not row["message_count"] or self._item.begin is not None or self._memo.again:
            self._begun.add(arrival.id)
        if arrival.id in self._begun:
            return messages
        is_copy = bool(self._store.deleted_sessions(relatives))
        if not is_copy and self._memo.session(arrival.id) is not None:
            return messages
        names = [each.message["external_id"] for each in messages]
        here = self._store.get_external_ids([arrival.id], names)
        if here or not is_copy:
            # Of a session that nobody remembers, it is not known whether it began in another one.
            self._begun.add(arrival.id)
        first = next((place for place, name in enumerate(names) if name in here), len(names) if is_copy else 0)
        return messages[first:]

    def _placed(self, arrival: IncomingSession, shared_with: Sequence[str], is_made: bool) -> IncomingSession:
        """A new session beside the one that it came from, if that is here."""
        conversation = arrival.conversation
        if conversation.parent_host_id is not None:
            parent = self._name(conversation, conversation.parent_host_id)
            if self._destination.has(parent):
                return replace(arrival, parent=parent, relation=conversation.relation or "branch")
            if is_made and not shared_with:
                self._tally.detached.append(arrival.id)
        return replace(arrival, parent=shared_with[-1], relation="branch") if shared_with else arrival


def _merged(before: ImportedConversation, given: ImportedConversation) -> ImportedConversation:
    """What is known of a conversation by now: what was given last, where something was given."""
    known: dict[str, Any] = {each.name: getattr(given, each.name) for each in fields(given) if each.name != "extra"}
    filled = {name: value for name, value in known.items() if value not in (None, "")}
    return replace(before, **filled, extra={**before.extra, **given.extra})


def _length(message: dict[str, Any]) -> int:
    """About how many characters a message has."""
    return sum(len(value) if isinstance(value, str) else 500 if value else 0 for value in message.values()) + sum(
        len(str(call)) for call in message.get("tool_calls") or ()
    )


# Each program writes the server's name before the tool's in its own way: mcp__memoranda__memory, memoranda.memory ...
_OURS = re.compile(r"(?:mcp[_.:/-]{1,2})?memoranda[_.:/-]{1,2}\w+", re.IGNORECASE)


def without_own_answer(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it is; of an answer of one of our own tools, how long it was."""
    tool, content = message.get("tool_name"), message.get("content")
    if message.get("role") != "tool" or not content or not isinstance(tool, str) or not _OURS.fullmatch(tool):
        return message
    size = len(content if isinstance(content, str) else str(content))
    return {**message, "content": f"[an answer of memory: {size:,} characters, not imported]"}
