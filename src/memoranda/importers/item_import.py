"""Imports one item: groups the reader's events by session, and passes them to the writer in batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, fields, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, assert_never

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.proposals import ProposalWriter
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ConversationReader,
    ImportedConversation,
    ImportedItem,
    ImportedMessage,
    ImportedProposal,
    ImportedState,
    ImportItem,
    Problem,
    ReadError,
    ReadEvent,
    Skipped,
)
from memoranda.importers.session_writer import (
    MAX_BATCH_CHARS,
    IncomingSession,
    Row,
    SessionWriter,
    is_same_session,
    session_name,
)
from memoranda.importers.source_files import unreadable_problem
from memoranda.importers.state.store import ImportState, SeenSession
from memoranda.importers.summary import UNFINISHED, UNKNOWN_KIND, ImportSummary
from memoranda.memory.record.framework_objects import join_names
from memoranda.memory.record.store import SessionStore
from memoranda.safety.fence import strip_noted_blocks, without_session_memory
from memoranda.search.index.message_text import TOOL_OF_SERVER
from memoranda.support.canonical_text import digest, unstorable_character
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.memory.checkpoints.store import StoredCheckpoint

# A batch is written when it reaches this limit or that of characters.
_MAX_BATCH_MESSAGES = 500
_HOOK_TEXT = "text that a hook of Memoranda had added"
# The errors that a reader may raise on a damaged file; they become problems, and the import continues.
_READER_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def read_events(reader: ConversationReader, item: ImportItem) -> Iterator[ReadEvent]:
    """Yield the events of an item; an error of the reader becomes a problem."""
    try:
        yield from reader.read(item)
    except ReadError as error:
        yield error.problem
    except OSError as error:
        yield unreadable_problem(item, error)
    except _READER_ERRORS as error:
        text = f"cannot be read further: {type(error).__name__}: {error}"
        yield Problem(item.file, None, text, unread=True)


class _CopiedPrefix(Enum):
    """What precedes a session's own messages in an item that is read from its start."""

    NOTHING = auto()
    """All messages are the session's own."""
    OF_DELETED_SESSION = auto()
    """A related session was deleted: the file of a fork starts with a copy of its messages."""
    UNKNOWN = auto()
    """The import state does not know the session, so it may start with a copy of another one."""


@dataclass(slots=True)
class _Batch:
    """The messages of one session that are not written yet."""

    conversation: ImportedConversation
    latest_timestamp: float | None
    messages: list[ImportedMessage] = field(default_factory=list)


class ItemImport:
    def __init__(
        self,
        reader: ConversationReader,
        item: ImportItem,
        store: SessionStore,
        state: ImportState,
        writer: SessionWriter,
        proposals: ProposalWriter,
        summary: ImportSummary,
        seen_before: Iterable[str] = (),
    ) -> None:
        """`seen_before` are the sessions of the item before its checkpoint."""
        self._reader = reader
        self._item = item
        self._store = store
        self._state = state
        self._writer = writer
        self._proposals = proposals
        self._summary = summary
        self._batches: dict[str, _Batch] = {}
        self._kept: list[ImportedItem] = []
        self._states: list[StoredCheckpoint] = []
        self._refused_states: dict[str, str] = {}
        self._current: str | None = None
        self._seen = set(seen_before)
        # Sessions whose own messages have started, so no copied prefix follows.
        self._started: set[str] = set()
        self._shared_with: dict[str, list[str]] = {}
        self._checkpoint = item.checkpoint
        self._complete = True
        self._count = 0
        self._characters = 0

    def run(self, progress: Callable[[int], None]) -> None:
        """Read the item to its end and write it batch by batch."""
        for event in read_events(self._reader, self._item):
            match event:
                case ImportedConversation():
                    self._switch_to(event)
                case ImportedMessage():
                    self._add_message(event)
                case ImportedItem():
                    self._kept.append(event)
                    self._count += 1
                case ImportedState():
                    self._add_state(event.checkpoint)
                case ImportedProposal():
                    self._propose(event)
                case Problem(unfinished=True):
                    self._summary.skipped[UNFINISHED] += 1
                case Problem():
                    self._add_problem(event)
                case Skipped():
                    self._summary.skipped[f"{UNKNOWN_KIND * event.is_unknown}{event.label}"] += 1
                case Checkpoint():
                    self._checkpoint = event
                case _:
                    assert_never(event)
            if self._count >= _MAX_BATCH_MESSAGES or self._characters >= MAX_BATCH_CHARS:
                self._write_batches(done=False)
                progress(self._checkpoint.offset if self._checkpoint else 0)
        self._write_batches(done=self._complete)

    def _propose(self, event: ImportedProposal) -> None:
        offer = self._proposals.offer(event)
        if offer.status == "failed":
            # The next import tries again.
            self._add_problem(Problem(self._item.file, None, offer.reason, unread=True))
        else:
            self._summary.add_proposal(event.origin, offer.status, offer.reason)

    def _add_problem(self, problem: Problem) -> None:
        self._complete = self._complete and not problem.unread
        self._summary.add_problem(self._item, problem)

    def _switch_to(self, conversation: ImportedConversation) -> None:
        self._current = self._session_name(conversation, conversation.host_id)
        batch = self._batches.get(self._current)
        if batch is None:
            self._batches[self._current] = _Batch(conversation, conversation.started_at)
        else:
            batch.conversation = _merge(batch.conversation, conversation)

    def _session_name(self, conversation: ImportedConversation, host_id: str) -> str:
        user = self._store.scope.user
        # The names of a part begin with those of the conversation that it worked for.
        names = {conversation.parent_host_id: conversation.names[:-1], conversation.host_id: conversation.names}
        if names.get(host_id):
            return self._store.stored_name(join_names(self._reader.name, user, *names[host_id]))
        name = session_name(conversation.source or self._reader.name, host_id, user)
        return self._store.stored_name(name)

    def _add_message(self, imported: ImportedMessage) -> None:
        """Add a message to its batch, with the fields that every message must have."""
        name = imported.message.get("external_id")
        if self._current is None or not isinstance(name, str) or not name:
            missing = "a conversation" if self._current is None else "an external id"
            problem = Problem(self._item.file, imported.line, f"a message without {missing}")
            self._summary.add_problem(self._item, problem)
            return
        batch = self._batches[self._current]
        message = imported.message
        if message.get("role") == "tool":
            message = _without_own_tool_result(message)
        about = batch.conversation
        if about.relation == "delegation" and not about.columns and message.get("role") == "user":
            # Another agent wrote it, unless it is a summary.
            message["role"] = "user" if message.get("is_summary") else "system"
        if not _remove_hook_text(message):
            self._summary.skipped[_HOOK_TEXT] += 1
            return
        timestamp = parse_timestamp(message.get("timestamp"))
        # Without a timestamp, a message gets the time of the one before it, or the file's modification time.
        batch.latest_timestamp = (
            timestamp if timestamp is not None else batch.latest_timestamp or self._item.modified_at
        )
        # In the reader's own dict: every copy of it would cost as much as reading a short line.
        message["timestamp"] = batch.latest_timestamp
        if unstorable_character(name):
            message["external_id"] = digest(name)
        batch.messages.append(imported if message is imported.message else imported._replace(message=message))
        self._count += 1
        self._characters += _approximate_chars(message)

    def _add_state(self, checkpoint: "StoredCheckpoint") -> None:
        """Add a state to the next batch, unless its conversation was deleted or edited here: it repeats all of it."""
        name = self._current or ""
        if name not in self._refused_states:
            deleted = self._is_deleted(name, self._batches[name].conversation)
            edited = not deleted and self._store.import_undo.is_edited(name)
            self._refused_states[name] = "deleted" if deleted else "edited" if edited else ""
        if reason := self._refused_states[name]:
            self._summary.skipped[f"state of a conversation that was {reason} here"] += 1
            return
        self._states.append(checkpoint)
        self._count += 1
        self._characters += len(checkpoint.state.data) + sum(len(value.data) for value in checkpoint.values.values())

    def _write_batches(self, *, done: bool) -> None:
        """Write every batch, and then record how far the item was read."""
        for session_id, batch in self._batches.items():
            self._write_batch(session_id, batch)
        kept, self._kept = self._kept, []
        added, problems = self._writer.write_items(self._item, kept)
        for problem in problems:
            self._summary.add_problem(self._item, problem)
        self._summary.kept_items += added
        self._summary.kept_items_known += len(kept) - len(problems) - added
        states, self._states = self._states, []
        new = self._writer.write_states(states)
        self._summary.states += new
        self._summary.states_known += len(states) - new
        # A reader that returns to another session yields its conversation again.
        self._batches = {name: batch for name, batch in self._batches.items() if name == self._current}
        self._count = self._characters = 0
        self._writer.save_progress(self._item, self._checkpoint, self._seen, done=done)

    def _write_batch(self, session_id: str, batch: _Batch) -> None:
        messages, batch.messages = batch.messages, []
        seen = self._writer.seen_session(session_id)
        if seen is None and not messages:
            return
        self._seen.add(session_id)
        source = self._reader.name
        seen = seen or SeenSession(session_id, self._state.family_key(source, messages[0].message["external_id"]))
        row = self._store.sessions.get_session(session_id)
        if row is None and self._is_deleted(session_id, batch.conversation):
            self._summary.set_result(session_id, "deleted")
            incoming = IncomingSession(SeenSession(session_id, seen.family), batch.conversation, row)
            self._writer.write_messages(self._item, incoming, [])
        elif self._is_recorded_from_another_format(row, batch.conversation):
            self._summary.messages_known += len(messages)
            self._summary.set_result(session_id, "unchanged")
        elif row is not None and not is_same_session(row, batch.conversation, source):
            self._summary.set_result(session_id, "conflict")
            self._summary.conflicts[session_id] = f"The record has another session with this id, from {row['source']}."
        else:
            self._write_session(IncomingSession(seen, batch.conversation, row), messages)

    def _is_recorded_from_another_format(self, row: Row | None, conversation: ImportedConversation) -> bool:
        """Whether the record has the conversation from a format in which its messages have other ids."""
        if row is not None:
            return bool(row.get("format")) and row.get("format") != conversation.extra.get("format")
        if not conversation.same_as:
            return False
        return self._store.sessions.get_session(self._session_name(conversation, conversation.same_as)) is not None

    def _is_deleted(self, session_id: str, conversation: ImportedConversation) -> bool:
        """Whether the session was deleted here, or the session that delegated it."""
        names = [session_id]
        if conversation.parent_host_id is not None and conversation.relation == "delegation":
            names.append(self._session_name(conversation, conversation.parent_host_id))
        return bool(not self._state.rescan and self._store.deletion.deleted_sessions(names))

    def _write_session(self, incoming: IncomingSession, messages: list[ImportedMessage]) -> None:
        summary = self._summary
        related = self._related_sessions(incoming)
        messages = self._drop_deleted_prefix(incoming, related, messages)
        names = [imported.message["external_id"] for imported in messages]
        shared = self._store.messages.get_external_ids(related, names) if related else {}
        own = [imported for imported in messages if imported.message["external_id"] not in shared]
        if incoming.row is None:
            # The beginning that a long fork shares may have been in the batches before this one.
            shared_with = [*self._shared_with.get(incoming.id, ()), *(shared[name] for name in names if name in shared)]
            self._shared_with[incoming.id] = shared_with[-1:]
            incoming = self._with_parent(incoming, shared_with, bool(own))
        added, problems = self._writer.write_messages(self._item, incoming, own)
        for problem in problems:
            summary.add_problem(self._item, problem)
        summary.messages += added
        summary.messages_known += len(messages) - len(problems) - added
        summary.set_result(incoming.id, "unchanged" if not added else "grown" if incoming.row else "new")
        if other_title := self._writer.set_title(incoming):
            summary.renamed[incoming.id] = other_title

    def _related_sessions(self, incoming: IncomingSession) -> list[str]:
        """Return the other sessions that may have the same messages."""
        related = self._writer.related_sessions(incoming.seen)
        if incoming.row is not None and incoming.row["relation"] == "branch":
            # The record knows the parents of a branch even when the import state was lost.
            related += [ancestor["id"] for ancestor in self._store.lineage.get_ancestors(incoming.id)[1:]]
        return list(dict.fromkeys(related))

    def _drop_deleted_prefix(
        self, incoming: IncomingSession, related: Sequence[str], messages: list[ImportedMessage]
    ) -> list[ImportedMessage]:
        """Drop the messages that a fork copied from a session that was deleted here.

        Example: session A has the messages 1 and 2; the file of its fork B starts with a copy of them and has 1, 2
        and 3. The record keeps 1 and 2 in A, and 3 in B. A is deleted. When the file of B is read from its start
        again, now with 1, 2, 3 and 4, then 1 and 2 precede the first message that the record has of B: they were
        deleted with A, so they are dropped, and 3 and 4 remain.
        """
        prefix = self._prefix_of(incoming, related)
        if prefix is _CopiedPrefix.NOTHING:
            return messages
        names = [imported.message["external_id"] for imported in messages]
        stored = self._store.messages.get_external_ids([incoming.id], names)
        if stored or prefix is _CopiedPrefix.UNKNOWN:
            self._started.add(incoming.id)
        # If none of this batch is stored, all of it is copied; in an unknown session, all of it is its own.
        none_stored = len(names) if prefix is _CopiedPrefix.OF_DELETED_SESSION else 0
        first_own = next((index for index, name in enumerate(names) if name in stored), none_stored)
        return messages[first_own:]

    def _prefix_of(self, incoming: IncomingSession, related: Sequence[str]) -> _CopiedPrefix:
        """Return what the next messages of a session may start with."""
        row = incoming.row
        if row is None or not row["message_count"] or self._item.checkpoint is not None or self._state.rescan:
            self._started.add(incoming.id)
        if incoming.id in self._started:
            return _CopiedPrefix.NOTHING
        if self._store.deletion.deleted_sessions(related):
            return _CopiedPrefix.OF_DELETED_SESSION
        return _CopiedPrefix.UNKNOWN if self._state.seen_session(incoming.id) is None else _CopiedPrefix.NOTHING

    def _with_parent(
        self, incoming: IncomingSession, shared_with: Sequence[str], has_messages: bool
    ) -> IncomingSession:
        """Set the parent of a new session, if the record has it."""
        conversation = incoming.conversation
        if conversation.parent_host_id is not None:
            parent = self._session_name(conversation, conversation.parent_host_id)
            if self._writer.has_session(parent):
                return replace(incoming, parent=parent, relation=conversation.relation or "branch")
            if has_messages and not shared_with:
                self._summary.detached.append(incoming.id)
        return replace(incoming, parent=shared_with[-1], relation="branch") if shared_with else incoming


def _without_own_tool_result(message: dict[str, Any]) -> dict[str, Any]:
    """Replace the result of one of our own tools with its length; return other results unchanged.

    The results quote the memory. If they were imported, a search would find them instead of what they quote, under
    another conversation and date, and every search would add a hit about itself.
    """
    tool, content = message.get("tool_name"), message.get("content")
    if not content or not isinstance(tool, str) or not TOOL_OF_SERVER.fullmatch(tool):
        return message
    size = len(content if isinstance(content, str) else str(content))
    return {**message, "content": f"[an answer of memory: {size:,} characters, not imported]"}


def _remove_hook_text(message: dict[str, Any]) -> bool:
    """Remove what our hooks gave to the model from a message; return whether a message remains.

    What the user typed keeps its mentions of our texts.
    """
    role, content = message.get("role"), message.get("content")
    if role == "assistant" or not isinstance(content, str):
        return True
    kept = strip_noted_blocks(content)
    if role != "user" or message.get("is_summary"):
        kept = without_session_memory(kept)
    if kept != content:
        message["content"] = kept.strip()
    return role == "tool" or kept == content or bool(message["content"])


def _merge(before: ImportedConversation, later: ImportedConversation) -> ImportedConversation:
    """Return the earlier conversation with the fields that the later one sets."""
    values: dict[str, Any] = {name.name: getattr(later, name.name) for name in fields(later) if name.name != "extra"}
    updates = {name: value for name, value in values.items() if value not in (None, "")}
    return replace(before, **updates, extra={**before.extra, **later.extra})


def _approximate_chars(message: dict[str, Any]) -> int:
    calls = message.get("tool_calls")
    return sum([len(value) for value in message.values() if type(value) is str]) + (len(str(calls)) if calls else 0)
