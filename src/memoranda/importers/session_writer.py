"""Writes imported sessions to the record, or only counts them for a preview; both report exactly what is new."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from memoranda.errors import SessionError
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ImportedConversation,
    ImportedItem,
    ImportedMessage,
    ImportItem,
    Problem,
)
from memoranda.importers.source_files import prefix_digest
from memoranda.importers.state.log import ImportRecorder, user_ending
from memoranda.importers.state.store import ImportState, ItemState, SeenSession
from memoranda.importers.thread_states import ThreadStates
from memoranda.memory.record.message_rows import encode
from memoranda.memory.record.passages import FORGOTTEN
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.sessions import COLUMNS, MAX_TITLE_CHARS, Titles, tidy
from memoranda.memory.record.store import SessionStore
from memoranda.memory.record.transfer.imports import MessageState
from memoranda.memory.record.transfer.items import ITEM
from memoranda.support.canonical_text import digest, unstorable_character
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.projects import is_path, project_at

# A batch is written when it has so many characters.
MAX_BATCH_CHARS = 4_000_000
# Leaves room for a number at the end, for a title that is already in use.
_MAX_TITLE_CHARS = MAX_TITLE_CHARS - 20
_MAX_NAME_CHARS = 150
# Names that the facts of another program may not have.
_RESERVED_FACTS = frozenset({"host", "host_session_id", "directory", "project", "session_id", "messages"})
_ROW_DIGEST = "host_row_digest"
_VERSION_FIELDS = ("value", "created_at", "updated_at", "ttl", "expires_at")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IncomingSession:
    """A session that is being imported; `row` is its row in the record, if there is one already."""

    seen: SeenSession
    conversation: ImportedConversation
    row: Row | None
    parent: str | None = None
    relation: str | None = None

    @property
    def id(self) -> str:
        return self.seen.session_id


class SessionWriter(ABC):
    """The destination of sessions, with those that this import and earlier ones have seen."""

    def __init__(self, store: SessionStore, state: ImportState, states: ThreadStates) -> None:
        self._store = store
        self._state = state
        self.write_states = states.add
        self._seen: dict[str, SeenSession] = {}
        self._families: dict[str, dict[str, None]] = {}

    def seen_session(self, session_id: str) -> SeenSession | None:
        return self._seen.get(session_id) or self._state.seen_session(session_id)

    def related_sessions(self, seen: SeenSession) -> list[str]:
        new = self._families.get(seen.family, ())
        return [*self._state.related_sessions(seen), *(name for name in new if name != seen.session_id)]

    @abstractmethod
    def has_session(self, session_id: str) -> bool: ...

    @abstractmethod
    def write_messages(
        self, item: ImportItem, incoming: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        """Write messages that no related session has; return how many are new, and which could not be written."""

    @abstractmethod
    def write_items(self, item: ImportItem, found: Sequence[ImportedItem]) -> tuple[int, list[Problem]]:
        """Write what is new or newer than ours; return how many are, and which could not be written."""

    @abstractmethod
    def set_title(self, incoming: IncomingSession) -> str | None:
        """Give a session its title; return the actual title if it differs."""

    @abstractmethod
    def save_progress(
        self, item: ImportItem, checkpoint: Checkpoint | None, sessions: Collection[str], *, done: bool
    ) -> None:
        """Record how far an item was read (to its end if `done`), and the sessions in it."""

    def _new_versions(
        self, item: ImportItem, found: Sequence[ImportedItem]
    ) -> tuple[dict[tuple[str, int], Any], list[Problem]]:
        """The items that are new or newer than ours, by id and version, in the form of an export; and the others."""
        new, problems = {}, []
        for each in found:
            names: dict[str, Any] = {"user_id": self._store.scope.user, "namespace": each.namespace, "key": each.key}
            version = {name: getattr(each, name) for name in _VERSION_FIELDS} | {"version": 1, "event": "add"}
            exported = {ITEM: names | {"versions": [version]}}
            try:
                if (number := self._store.item_transfer.new_version(exported)) is not None:
                    new[number] = exported
            except (SessionError, RecursionError) as error:
                problems.append(Problem(item.file, None, f"item {each.key[:100]}: {error}"))
        return new, problems

    def _user_of(self, incoming: IncomingSession) -> str | None:
        """Return the user of a new session; a store for one user has no other users' sessions."""
        return incoming.conversation.columns.get("user_id") if self._store.scope.all else None

    def _titles_of(self, incoming: IncomingSession) -> Titles:
        """Return the titles of the session's user: two users may use the same title."""
        user = incoming.row["user_id"] if incoming.row else self._user_of(incoming)
        return self._store.scoped(Scope.of(user)).titles if self._store.scope.all else self._store.titles

    def _remember(self, seen: SeenSession) -> None:
        self._seen[seen.session_id] = seen
        self._families.setdefault(seen.family, {})[seen.session_id] = None


class PreviewWriter(SessionWriter):
    """A writer that only counts."""

    def __init__(self, store: SessionStore, state: ImportState, states: ThreadStates) -> None:
        super().__init__(store, state, states)
        # Hashes instead of names: about sixty bytes for each message that would be new.
        self._counted: set[int] = set()
        self._titles: Counter[str] = Counter()

    def has_session(self, session_id: str) -> bool:
        seen = self._seen.get(session_id)
        return (seen is not None and seen.created) or self._store.sessions.get_session(session_id) is not None

    def write_messages(
        self, item: ImportItem, incoming: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        names = [imported.message["external_id"] for imported in messages]
        stored = self._store.messages.get_external_ids([incoming.id], names) if incoming.row else {}
        before, problems = len(self._counted), []
        for imported, name in zip(messages, names, strict=True):
            try:
                encode(imported.message)
            except SessionError as error:
                problems.append(Problem(item.file, imported.line, str(error)))
                continue
            if name not in stored:
                self._counted.add(hash((incoming.seen.family, name)))
        added = len(self._counted) - before
        if added or incoming.id not in self._seen:
            self._remember(replace(incoming.seen, created=incoming.seen.created or bool(added)))
        return added, problems

    def write_items(self, item: ImportItem, found: Sequence[ImportedItem]) -> tuple[int, list[Problem]]:
        new, problems = self._new_versions(item, found)
        before = len(self._counted)
        self._counted.update(map(hash, new))
        return len(self._counted) - before, problems

    def set_title(self, incoming: IncomingSession) -> str | None:
        seen, wanted = self._seen.get(incoming.id), clean_title(incoming.conversation.title)
        if incoming.row is not None or wanted is None or seen is None or not seen.created or seen.title is not None:
            return None
        try:
            free = self._titles_of(incoming).get_next_title_in_lineage(wanted)
        except SessionError:
            return None
        # Other planned sessions will use the numbers before it.
        ending = free.rpartition(" #")[2] if free != wanted else ""
        # A title that the store cleans further also differs from the wanted one, but has no number.
        number = (int(ending) if ending.isdecimal() else 1) + self._titles[wanted]
        self._titles[wanted] += 1
        title = wanted if number == 1 else f"{_without_number(wanted)} #{number}"
        self._remember(replace(seen, title=title))
        return title if title != wanted else None

    def save_progress(
        self, item: ImportItem, checkpoint: Checkpoint | None, sessions: Collection[str], *, done: bool
    ) -> None:
        """Do nothing: a preview writes nothing."""


class RecordWriter(SessionWriter):
    """Writes to the session store; messages are durable before the import state says so."""

    def __init__(
        self,
        source: str,
        store: SessionStore,
        state: ImportState,
        states: ThreadStates,
        project: Callable[[str], str | None],
        recorder: ImportRecorder,
    ) -> None:
        """`recorder` logs what is added, so that it can be undone."""
        super().__init__(store, state, states)
        self._source = source
        self._project = cache(project)
        self._recorder = recorder
        self._renamed: dict[str, str] = {}
        # Sessions from which something was forgotten here.
        self._with_gaps: set[str] = set()

    def has_session(self, session_id: str) -> bool:
        return self._store.sessions.get_session(session_id) is not None

    def write_messages(
        self, item: ImportItem, incoming: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        if FORGOTTEN in (incoming.row or {}):
            self._with_gaps.add(incoming.id)
        if not messages:
            # A related session has all messages, or this one was deleted. If it continues, its family must be known.
            self._remember(incoming.seen)
            if incoming.row is not None:
                self._update_columns(incoming)
            return 0, []
        self._recorder.start()
        before = self._store.messages.last_message_id()
        try:
            self._prepare(incoming, [imported.message["timestamp"] for imported in messages])
        except SessionError as error:
            return 0, [Problem(item.file, imported.line, str(error)) for imported in messages]
        ids, problems = self._append(item, incoming, messages)
        added = {number for number in ids if number > before}
        self._recorder.add(incoming.id, incoming.row, added)
        if added and incoming.row is not None:
            self._store.imported_rows.end_with_last_message(incoming.id)
        return len(added), problems

    def write_items(self, item: ImportItem, found: Sequence[ImportedItem]) -> tuple[int, list[Problem]]:
        new, problems = self._new_versions(item, found)
        # Before they are written: a version that a killed import did not write is one that undo does not find.
        self._recorder.add_items(new)
        report = self._store.item_transfer.import_items(new.values())
        return report.imported + report.updated, problems

    def set_title(self, incoming: IncomingSession) -> str | None:
        if incoming.id in self._renamed:
            return self._renamed.pop(incoming.id)
        seen, wanted = self.seen_session(incoming.id), clean_title(incoming.conversation.title)
        if wanted is None or seen is None or not seen.created or _is_same_title(seen.title, wanted):
            return None
        if "title" in (incoming.row or {}).get(FORGOTTEN, ()):
            # A part of it was forgotten here.
            return None
        if self._store.titles.get_session_title(incoming.id) not in (None, seen.title):
            # The user renamed it.
            return None
        try:
            self._store.titles.set_session_title(
                incoming.id, self._titles_of(incoming).get_next_title_in_lineage(wanted)
            )
        except SessionError:
            # The title has no visible character, or another process has just used it; a session needs no title.
            return None
        title = self._store.titles.get_session_title(incoming.id)
        self._remember(replace(seen, title=title))
        return title if title != wanted else None

    def save_progress(
        self, item: ImportItem, checkpoint: Checkpoint | None, sessions: Collection[str], *, done: bool
    ) -> None:
        if self._with_gaps.intersection(sessions):
            # The reader's state has the title and more of what was forgotten; the file is read from its start again.
            checkpoint = None
        size, modified_at = (item.size, item.modified_at) if done else (-1, 0.0)
        before_checkpoint = prefix_digest(item.file, checkpoint.offset) if checkpoint else ""
        # Without a checkpoint the item is read from its start again, and its sessions with it.
        seen = frozenset(sessions if done or checkpoint else ())
        item_state = ItemState(size, modified_at, seen, checkpoint, before_checkpoint)
        self._state.save_item(self._source, item, item_state, self._seen.values(), self._recorder.take_parts())
        self._seen.clear()
        self._families.clear()

    def _prepare(self, incoming: IncomingSession, timestamps: Sequence[float]) -> None:
        """Create the session, or set the model that it does not have yet."""
        model = incoming.conversation.model
        if incoming.row is None:
            self._create_with_title(incoming, timestamps)
        elif model and not incoming.row["model"]:
            self._store.sessions.update_session(incoming.id, model=model)
        self._update_columns(incoming)
        if incoming.row is not None and not incoming.seen.created:
            self._remember(replace(incoming.seen, created=True))

    def _create_with_title(self, incoming: IncomingSession, timestamps: Sequence[float]) -> None:
        wanted = clean_title(incoming.conversation.title)
        try:
            # Session and title in one commit, because each commit waits for the disk.
            self._create(
                incoming,
                timestamps,
                self._titles_of(incoming).get_next_title_in_lineage(wanted) if wanted else None,
            )
        except SessionError:
            if wanted is None:
                raise
            # The title has no visible character, or another process has just used it; a session needs no title.
            self._create(incoming, timestamps, None)
        title = self._store.titles.get_session_title(incoming.id) if wanted else None
        self._remember(replace(incoming.seen, created=True, title=title))
        if title is not None and title != wanted:
            self._renamed[incoming.id] = title

    def _create(self, incoming: IncomingSession, timestamps: Sequence[float], title: str | None) -> None:
        conversation = incoming.conversation
        self._store.sessions.create_session(
            incoming.id,
            conversation.columns.get("source") or conversation.source or self._source,
            model=conversation.model,
            title=title,
            parent_session_id=incoming.parent,
            relation=incoming.relation,
            user_id=self._user_of(incoming),
            started_at=timestamps[0] if conversation.started_at is None else conversation.started_at,
            # It is ended here, so that it can be pruned when it is old; in its own program it may continue.
            imported_until=max(timestamps),
            **_session_facts(conversation, self._source, self._project),
        )

    def _update_columns(self, incoming: IncomingSession) -> None:
        """Write the columns of the other program's row, if that row has changed since the last import."""
        columns, facts = incoming.conversation.columns, _host_facts(incoming.conversation)
        row_digest = digest(repr((columns, facts)))
        if columns and (incoming.row is None or incoming.row.get(_ROW_DIGEST) != row_digest):
            # A store for one user has no other users' sessions.
            own = {name: value for name, value in columns.items() if name != "user_id" or self._store.scope.all}
            self._store.imported_rows.set_columns(incoming.id, own, {**facts, _ROW_DIGEST: row_digest})

    def _append(
        self, item: ImportItem, incoming: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[list[int], list[Problem]]:
        try:
            return self._append_all(incoming, messages), []
        except SessionError:
            # One of them cannot be stored; append the others one by one.
            ids, problems = [], []
            for imported in messages:
                try:
                    ids += self._append_all(incoming, [imported])
                except SessionError as error:
                    problems.append(Problem(item.file, imported.line, str(error)))
            return ids, problems

    def _append_all(self, incoming: IncomingSession, messages: Sequence[ImportedMessage]) -> list[int]:
        chat = [imported.message for imported in messages]
        if not incoming.conversation.columns:
            # Only the last message of a batch is so long, because it ends the batch.
            last = chat.pop() if _is_very_long(messages[-1]) else None
            ids = self._store.messages.append_messages(incoming.id, chat) if chat else []
            return ids if last is None else ids + self._store.messages.append_and_clear(incoming.id, last)
        states = [self._state_here(imported.state or MessageState()) for imported in messages]
        return self._store.imported_rows.append_messages(incoming.id, chat, states)

    def _state_here(self, state: MessageState) -> MessageState:
        """Return a state that names the session of the original by its id here."""
        if state.original is None:
            return state
        host_id, external_id = state.original
        return replace(state, original=(session_name(self._source, host_id, self._store.scope.user), external_id))


def _is_very_long(imported: ImportedMessage) -> bool:
    """Whether a text is so long that there is not to be a second copy of it, and the message may be cleared."""
    content = imported.message.get("content") if imported.given_away else None
    return isinstance(content, str) and len(content) > MAX_BATCH_CHARS


def session_name(source: str, host_id: str, user: str | None = None) -> str:
    """Return our id for a session of another program; it differs for every user of a gateway."""
    name = f"{source}-{host_id}"
    if len(name) > _MAX_NAME_CHARS or unstorable_character(name):
        name = f"{source}-{digest(host_id)[:40]}"
    return name if user is None else f"{name}{user_ending(user)}"


def is_same_session(row: Row, conversation: ImportedConversation, source: str) -> bool:
    """Whether a session in the record is this one of the other program, and not another one with the same id."""
    # The ids are equal already, so only the programs have to be compared.
    has_own_source = "source" in conversation.columns or row["source"] == (conversation.source or source)
    return has_own_source and row.get("host") == source


def clean_title(title: str | None) -> str | None:
    """Return a title of another program in the form that the store accepts; None when nothing remains of it."""
    return tidy(" ".join((title or "").split())[:_MAX_TITLE_CHARS])


def _session_facts(
    conversation: ImportedConversation, source: str, project: Callable[[str], str | None]
) -> dict[str, Any]:
    """Return what the session row stores in addition to its columns."""
    facts: dict[str, Any] = {"host": source, "host_session_id": conversation.host_id}
    found = None
    if conversation.directory:
        facts["directory"] = conversation.directory
        found = project(conversation.directory)
    if not found or is_path(found):
        # The directory may be deleted or on another machine; some programs record where its repository is published.
        found = project_at(str(conversation.extra.get("git_remote") or "")) or found
    if found:
        facts["project"] = found
    return facts | _host_facts(conversation)


def _host_facts(conversation: ImportedConversation) -> dict[str, Any]:
    """Return what only the other program records, under names that are no columns."""
    return {
        f"host_{name}" if name in _RESERVED_FACTS or name in COLUMNS else name: value
        for name, value in conversation.extra.items()
    }


def _is_same_title(title: str | None, wanted: str) -> bool:
    """Whether a title is the wanted one, apart from a number at its end or a redacted credential."""
    return title is not None and (_without_number(title) == _without_number(wanted) or "[redacted:" in title)


def _without_number(title: str) -> str:
    stem, _, number = title.rpartition(" #")
    return stem if stem and number.isdigit() else title
