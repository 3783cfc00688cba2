"""Where what was read goes: into the record, or, for a preview, nowhere; both say exactly what is new."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from memoranda.errors import SessionError
from memoranda.importers.import_state import ImportState, ItemState, SeenSession
from memoranda.importers.reader_protocol import Checkpoint, ImportedConversation, ImportedMessage, ImportItem, Problem
from memoranda.importers.source_files import seal
from memoranda.sessions.lifecycle import COLUMNS
from memoranda.sessions.message_rows import encode
from memoranda.sessions.store import SessionStore
from memoranda.sessions.titles import LONGEST, tidy
from memoranda.support.canonical_text import digest, unstorable_character
from memoranda.support.projects import project_at

# Room for a number behind it, when the same title is there already.
_LONGEST_TITLE = LONGEST - 20
_LONGEST_NAME = 150
# Names of facts that a session from elsewhere has from us.
_OURS = frozenset({"host", "host_session_id", "directory", "project", "session_id", "messages"})
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IncomingSession:
    """A session on its way in: what is known of it by now, and what it is to those that are here."""

    met: SeenSession
    conversation: ImportedConversation
    row: Row | None
    parent: str | None = None
    relation: str | None = None

    @property
    def id(self) -> str:
        return self.met.session_id


class SessionWriter(Protocol):
    """What is asked of a place that takes sessions in."""

    def met(self, session_id: str) -> SeenSession | None: ...

    def has(self, session_id: str) -> bool: ...

    def relatives(self, met: SeenSession) -> list[str]: ...

    def take(
        self, item: ImportItem, arrival: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        """Take messages that no other session has; how many of them are new, and which could not be taken."""
        ...

    def name(self, arrival: IncomingSession) -> str | None:
        """Give a session its title; the one that it got, if that is another one."""
        ...

    def note(self, item: ImportItem, mark: Checkpoint | None, sessions: Collection[str], *, done: bool) -> None:
        """Remember how far an item has been read, to its end when it is `done`, and the sessions that it holds."""
        ...


class _Meeting:
    """The sessions that were met by now: in this import, and in those before it."""

    def __init__(self, store: SessionStore, memo: ImportState) -> None:
        self._store = store
        self._memo = memo
        self._met: dict[str, SeenSession] = {}
        self._families: dict[str, dict[str, None]] = {}

    def met(self, session_id: str) -> SeenSession | None:
        return self._met.get(session_id) or self._memo.session(session_id)

    def relatives(self, met: SeenSession) -> list[str]:
        new = self._families.get(met.family, ())
        return [*self._memo.relatives(met), *(name for name in new if name != met.session_id)]

    def _meet(self, met: SeenSession) -> None:
        self._met[met.session_id] = met
        self._families.setdefault(met.family, {})[met.session_id] = None


class PreviewWriter(_Meeting):
    """A destination that only counts."""

    def __init__(self, store: SessionStore, memo: ImportState) -> None:
        super().__init__(store, memo)
        # Digests, not names: some sixty bytes for each message that would be new.
        self._counted: set[int] = set()
        self._titles: Counter[str] = Counter()

    def has(self, session_id: str) -> bool:
        there = self._met.get(session_id)
        return (there is not None and there.made) or self._store.get_session(session_id) is not None

    def take(
        self, item: ImportItem, arrival: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        names = [each.message["external_id"] for each in messages]
        there = self._store.get_external_ids([arrival.id], names) if arrival.row else {}
        before, problems = len(self._counted), []
        for each, name in zip(messages, names, strict=True):
            try:
                encode(each.message)
            except SessionError as error:
                problems.append(Problem(item.file, each.line, str(error)))
                continue
            if name not in there:
                self._counted.add(hash((arrival.met.family, name)))
        added = len(self._counted) - before
        if added or arrival.id not in self._met:
            self._meet(replace(arrival.met, made=arrival.met.made or bool(added)))
        return added, problems

    def name(self, arrival: IncomingSession) -> str | None:
        met, wanted = self._met.get(arrival.id), tidied(arrival.conversation.title)
        if arrival.row is not None or wanted is None or met is None or not met.made or met.title is not None:
            return None
        try:
            free = self._store.get_next_title_in_lineage(wanted)
        except SessionError:
            return None
        # Others that are planned will have taken the numbers before it.
        ending = free.rpartition(" #")[2] if free != wanted else ""
        # A title that the store tidies further is another one too, and has no number.
        number = (int(ending) if ending.isdecimal() else 1) + self._titles[wanted]
        self._titles[wanted] += 1
        given = wanted if number == 1 else f"{_stem(wanted)} #{number}"
        self._meet(replace(met, title=given))
        return given if given != wanted else None

    def note(self, item: ImportItem, mark: Checkpoint | None, sessions: Collection[str], *, done: bool) -> None:
        """A preview leaves no trace."""


class RecordWriter(_Meeting):
    """The session store as a destination: what it took is on the disk before the memo says so."""

    def __init__(
        self, source: str, store: SessionStore, memo: ImportState, project: Callable[[str], str | None]
    ) -> None:
        super().__init__(store, memo)
        self._source = source
        self._project = project
        self._renamed: dict[str, str] = {}

    def has(self, session_id: str) -> bool:
        return self._store.get_session(session_id) is not None

    def take(
        self, item: ImportItem, arrival: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        if not messages:
            # Everything in it is in a relative, or was deleted; if it goes on, the beginning must be known.
            self._meet(arrival.met)
            return 0, []
        try:
            self._prepare(arrival, messages[0].message["timestamp"])
        except SessionError as error:
            return 0, [Problem(item.file, each.line, str(error)) for each in messages]
        before = self._store.last_message_id()
        ids, problems = self._append(item, arrival.id, messages)
        return sum(number > before for number in set(ids)), problems

    def name(self, arrival: IncomingSession) -> str | None:
        if arrival.id in self._renamed:
            return self._renamed.pop(arrival.id)
        met, wanted = self.met(arrival.id), tidied(arrival.conversation.title)
        if wanted is None or met is None or not met.made or _is_called(met.title, wanted):
            return None
        if self._store.get_session_title(arrival.id) not in (None, met.title):
            # A person named it.
            return None
        try:
            self._store.set_session_title(arrival.id, self._store.get_next_title_in_lineage(wanted))
        except SessionError:
            # Nothing of it can be seen, or somebody took it this moment; a session needs no title.
            return None
        given = self._store.get_session_title(arrival.id)
        self._meet(replace(met, title=given))
        return given if given != wanted else None

    def note(self, item: ImportItem, mark: Checkpoint | None, sessions: Collection[str], *, done: bool) -> None:
        size, changed = (item.size, item.changed) if done else (-1, 0.0)
        sealed = seal(item.file, mark.offset) if mark else ""
        # Where there is no place to go on from, the item is read anew, and its sessions with it.
        held = frozenset(sessions if done or mark else ())
        self._memo.note(self._source, item, ItemState(size, changed, held, mark, sealed), self._met.values())
        self._met.clear()
        self._families.clear()

    def _prepare(self, arrival: IncomingSession, first: float) -> None:
        """Make the session, or tell it what it does not know yet."""
        model = arrival.conversation.model
        if arrival.row is None:
            self._make(arrival, first)
        elif model and not arrival.row["model"]:
            self._store.update_session(arrival.id, model=model)
        if arrival.row is not None and not arrival.met.made:
            self._meet(replace(arrival.met, made=True))

    def _make(self, arrival: IncomingSession, first: float) -> None:
        wanted = tidied(arrival.conversation.title)
        try:
            # With its title in one commit; each of them waits for the disk.
            self._create(arrival, first, self._store.get_next_title_in_lineage(wanted) if wanted else None)
        except SessionError:
            if wanted is None:
                raise
            # Nothing of the title can be seen, or somebody took it this moment; a session needs none.
            self._create(arrival, first, None)
        title = self._store.get_session_title(arrival.id) if wanted else None
        self._meet(replace(arrival.met, made=True, title=title))
        if title is not None and title != wanted:
            self._renamed[arrival.id] = title

    def _create(self, arrival: IncomingSession, first: float, title: str | None) -> None:
        conversation = arrival.conversation
        self._store.create_session(
            arrival.id,
            conversation.source or self._source,
            model=conversation.model,
            title=title,
            parent_session_id=arrival.parent,
            relation=arrival.relation,
            started_at=first if conversation.started_at is None else conversation.started_at,
            **_facts(conversation, self._source, self._project),
        )
        # Nobody talks in it here, so that it can be pruned when it is old; elsewhere it may go on.
        self._store.end_session(arrival.id, "imported")

    def _append(
        self, item: ImportItem, session_id: str, messages: Sequence[ImportedMessage]
    ) -> tuple[list[int], list[Problem]]:
        try:
            return self._store.append_messages(session_id, [each.message for each in messages]), []
        except SessionError:
            # One of them cannot be stored; the others can.
            ids, problems = [], []
            for each in messages:
                try:
                    ids += self._store.append_messages(session_id, [each.message])
                except SessionError as error:
                    problems.append(Problem(item.file, each.line, str(error)))
            return ids, problems


def session_name(source: str, host_id: str, user: str | None = None) -> str:
    """The name of a session of another program here; users of a gateway each have their own import of it."""
    name = f"{source}-{host_id}"
    if len(name) > _LONGEST_NAME or unstorable_character(name):
        name = f"{source}-{digest(host_id)[:40]}"
    return name if user is None else f"{name}-{digest(user)[:12]}"


def is_same_session(row: Row, conversation: ImportedConversation, source: str) -> bool:
    """Whether a session in the record is this one of the other program, and not one that has its name by chance."""
    # Its name was made of the other program's, so that the program is all that is left to compare.
    return row["source"] == (conversation.source or source) and row.get("host") == source


def tidied(title: str | None) -> str | None:
    """A title of another program as it can stand here, if anything is left of it."""
    return tidy(" ".join((title or "").split())[:_LONGEST_TITLE])


def _facts(conversation: ImportedConversation, source: str, project: Callable[[str], str | None]) -> dict[str, Any]:
    """What the row of a session says beside its columns."""
    facts: dict[str, Any] = {"host": source, "host_session_id": conversation.host_id}
    found = None
    if conversation.directory:
        facts["directory"] = conversation.directory
        found = project(conversation.directory)
    # The directory may be gone, or on another machine; some programs write down where its repository is published.
    found = found or project_at(str(conversation.extra.get("git_remote") or ""))
    if found:
        facts["project"] = found
    for name, value in conversation.extra.items():
        facts[f"host_{name}" if name in _OURS or name in COLUMNS else name] = value
    return facts


def _is_called(title: str | None, wanted: str) -> bool:
    """Whether a title is the wanted one already, but for a number behind it or a credential that was taken out."""
    return title is not None and (_stem(title) == _stem(wanted) or "[redacted:" in title)


def _stem(title: str) -> str:
    stem, _, number = title.rpartition(" #")
    return stem if stem and number.isdigit() else title
