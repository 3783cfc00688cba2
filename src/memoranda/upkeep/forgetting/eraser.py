"""Forgets a text, conversations or a user in a home: finds every place, removes it, and proves it.

Every step can be repeated: a run that is killed leaves some places, and the next run finds and removes them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import field, replace

from memoranda.errors import HomeError
from memoranda.external.outbox.outbox import Outbox
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.settings import TARGETS, Target
from memoranda.memory.record.scope import Scope
from memoranda.search.index.tokenizer import index_tokens
from memoranda.support.durable_files import write_private
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.backup.archive import written_backups
from memoranda.upkeep.forgetting.proof import Proof, prove, prove_deleted
from memoranda.upkeep.forgetting.provider_copies import ServiceAnswers
from memoranda.upkeep.forgetting.report import ForgetPlace, ForgetReport, Subject
from memoranda.upkeep.forgetting.scope import (
    OTHER_NODES_NOTE,
    SERVER_NOTE,
    existing_record,
    open_record_of,
    scopes_of,
    uses_server,
)
from memoranda.upkeep.forgetting.scope_contents import OPEN, ScopeContents
from memoranda.upkeep.forgetting.sessions import DeletedSessions, delete_sessions, erase, passages_of
from memoranda.upkeep.forgetting.users import UserFiles
from memoranda.upkeep.sync_state import is_synchronised

OpenSessions = Callable[[Home, str], AbstractContextManager[SessionDB]]
"""Opens the sessions of a home, which exist, in the store with a server URL, if that is not empty."""

SYNC_NOTE = "sync.forgotten"
"""The file by which the next `memoranda sync` knows that its bundles may contain something that was forgotten."""
_SHORT = 3
_MANY = 500
_MAX_SESSIONS_SHOWN = 5


class Eraser:
    """Forgets in one home: for its owner (in all profiles), for one user, or for everyone."""

    def __init__(
        self, home: Home, user: str | None = None, *, all_users: bool = False, open_sessions: OpenSessions | None = None
    ) -> None:
        self._home = home
        self._user = user
        self._all_users = all_users
        self._open_sessions = open_sessions or _open_sessions

    def find_text(self, matcher: TextMatcher, subject: Subject = "text") -> ForgetReport:
        """Where a text is, and what would be done there."""
        with self._opened() as opened:
            found = [place for contents, _ in opened for place in contents.find(matcher)]
        return ForgetReport(subject, tuple(found), dry_run=True, warning=_warn(matcher, found), notes=self._notes())

    def forget_text(self, matcher: TextMatcher, subject: Subject = "text") -> ForgetReport:
        """Remove a text everywhere, and prove it. Can be repeated after a crash, and removes what is left then."""
        with self._opened() as opened:
            found = [place for contents, _ in opened for place in contents.find(matcher)]
            removal = self._start_removal()
            for contents, db in opened:
                _forget_text(contents, db, matcher, removal)
            proof = prove(opened, matcher, words_of(matcher))
        proof.notes += _open_sessions_note(found)
        return replace(self._report(subject, found, removal, proof), warning=_warn(matcher, found))

    def find_sessions(self, session_ids: Sequence[str]) -> ForgetReport:
        """What would be deleted with these conversations: their continuations and delegated work included."""
        with self._opened() as opened:
            found = [place for contents, db in opened for place in _find_sessions(contents, db, session_ids)]
        return ForgetReport("session", tuple(found), dry_run=True, notes=self._notes())

    def forget_sessions(self, session_ids: Sequence[str]) -> ForgetReport:
        """Delete conversations everywhere, and prove it. Can be repeated with the same ids after a crash."""
        with self._opened() as opened:
            found = [place for contents, db in opened for place in _find_sessions(contents, db, session_ids)]
            removal = self._start_removal()
            for contents, db in opened:
                if db is not None:
                    _delete_conversations(contents, db, session_ids, removal)
            proof = prove_deleted(opened, removal.passages, removal.session_ids)
        return self._report("session", found, removal, proof)

    def find_user(self) -> ForgetReport:
        """Everything that the home keeps of the user."""
        with self._opened() as opened:
            found = [place for contents, db in opened for place in _find_user(contents, db)]
        return ForgetReport("user", tuple(found), dry_run=True)

    def forget_user(self) -> ForgetReport:
        """Remove everything of the user, and prove it. Can be repeated after a crash."""
        if self._user is None:
            raise HomeError("The owner of a home cannot be forgotten as a user; delete the home's directory instead.")
        with self._opened() as opened:
            found = [place for contents, db in opened for place in _find_user(contents, db)]
            removal = self._start_removal()
            for contents, db in opened:
                removal.add(contents.providers.forget_sessions(None))
                if db is not None:
                    _delete_items(contents, db, removal)
                    db.feed.notifications.remove_of(None, contents.scope.queue, None)
                    _delete_conversations(contents, db, _sessions_of(contents), removal, at_services=False)
                UserFiles(contents.scope).forget()
            proof = prove_deleted(opened, removal.passages, removal.session_ids)
            proof.left += [place for contents, db in opened for place in _find_user(contents, db)]
        return self._report("user", found, removal, proof)

    def _start_removal(self) -> "_Removal":
        """Note for the next synchronisation, before anything changes, that its bundles must be written again."""
        if is_synchronised(self._home.root):
            write_private(self._home.root / SYNC_NOTE, b"")
        return _Removal()

    def _report(
        self, subject: Subject, found: Sequence[ForgetPlace], removal: "_Removal", proof: Proof
    ) -> ForgetReport:
        return ForgetReport(
            subject, tuple(found), (*removal.left, *proof.left), (*self._notes(), *proof.notes),
            (*removal.problems, *proof.problems), proof.files, proof.bytes, at_services=tuple(removal.at_services),
        )  # fmt: skip

    @contextmanager
    def _opened(self) -> "Iterator[list[tuple[ScopeContents, SessionDB | None]]]":
        """The contents of every scope, with the sessions of its home."""
        with ExitStack() as stack:
            sessions: dict[tuple[Home, str], SessionDB | None] = {}
            opened = []
            for scope in scopes_of(self._home, self._user, all_users=self._all_users):
                store = (scope.home, scope.server_url)
                if store not in sessions:
                    exists = existing_record(*store) is not None
                    sessions[store] = stack.enter_context(self._open_sessions(*store)) if exists else None
                contents = ScopeContents(scope, sessions[store])
                stack.callback(contents.close)
                opened.append((contents, sessions[store]))
            yield opened

    def _notes(self) -> tuple[str, ...]:
        notes = [
            f"The backup {backup.path} of {backup.created_at} may still contain it: delete it, or write a new one."
            for backup in written_backups(self._home.root)
        ]
        if uses_server(self._home):
            notes += [SERVER_NOTE, OTHER_NODES_NOTE]
        if is_synchronised(self._home.root):
            notes.append(
                "This home is synchronised: the next 'memoranda sync' removes it from the bundles of this machine, and "
                "tells the other machines. A git repository keeps old bundles in its history."
            )
        if self._user is not None:
            notes.append("Logs, reports and settings that all users of the home share were not searched.")
        return tuple(notes)


@dataclass(slots=True)
class _Removal:
    """What a run has done so far."""

    left: list[ForgetPlace] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    at_services: list[str] = field(default_factory=list)
    passages: list[str] = field(default_factory=list)
    session_ids: list[str] = field(default_factory=list)

    def add(self, answers: ServiceAnswers) -> None:
        self.at_services += answers.deleted
        self.left += answers.left


def _forget_text(contents: ScopeContents, db: SessionDB | None, matcher: TextMatcher, removal: _Removal) -> None:
    entries: Sequence[tuple[Target, str]] = contents.entries_with(matcher)
    # After an interrupted run, no entry has the text any more, but a service may still have it.
    entries = entries or [(target, text) for text in matcher.texts for target in TARGETS]
    session_ids = contents.sessions_with(matcher)
    contents.providers.queue_deletions(session_ids)
    removal.problems += contents.forget_in_home(matcher)
    removal.add(contents.providers.forget_text(matcher, entries, session_ids))
    removal.problems += contents.archives(matcher).forget()
    if db is not None:
        erased = DeletedSessions()
        erase(db.scoped(contents.scope.sessions), erased)
        removal.problems += erased.problems


def _find_sessions(contents: ScopeContents, db: SessionDB | None, names: Sequence[str]) -> list[ForgetPlace]:
    if db is None or contents.record is None:
        return []
    own = db.scoped(contents.scope.sessions)
    rows = own.list_deletion(_conversations(own, names))
    ids = [row["id"] for row in rows]
    found = [
        ForgetPlace("record", f"session {row['id']}: {row['title'] or 'no title'}", row["message_count"], "remove")
        for row in rows
    ]
    with closing(Outbox(contents.scope.home.root, server_url=contents.scope.server_url)) as outbox:
        waiting = outbox.count(None, contents.scope.queue, ids) if ids else 0
    found += [ForgetPlace("outbox", "deliveries", waiting, "remove")] if waiting else []
    return [*found, *contents.providers.find_received(ids), *contents.source_files(ids)]


def _conversations(db: SessionDB, names: Sequence[str]) -> list[str]:
    """Every session of the conversations; an id that is deleted already stands for itself."""
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys(db.get_compression_lineage(name) if db.get_session(name) else [name])
    return list(found)


def _delete_conversations(
    contents: ScopeContents, db: SessionDB, names: Sequence[str], removal: _Removal, *, at_services: bool = True
) -> None:
    own = db.scoped(contents.scope.sessions)
    listed = [row["id"] for row in own.list_deletion(_conversations(own, names))]
    # What an interrupted run has deleted from the record, and perhaps nowhere else.
    ids = [*listed, *(own.deleted_sessions(names) - set(listed))]
    if not ids:
        return
    removal.session_ids += ids
    removal.passages += passages_of(own, listed).texts
    contents.providers.queue_deletions(ids)
    deleted = delete_sessions(own, contents.scope.home.root, ids, server_url=contents.scope.server_url)
    removal.problems += deleted.problems + contents.session_archives(ids).forget()
    if at_services:
        removal.add(contents.providers.forget_sessions(ids))


def _delete_items(contents: ScopeContents, db: SessionDB, removal: _Removal) -> None:
    if contents.record is not None and contents.record.item_passages.delete_all():
        erased = DeletedSessions()
        erase(db, erased)
        removal.problems += erased.problems


def _sessions_of(contents: ScopeContents) -> list[str]:
    if contents.record is None:
        return []
    return sorted(contents.record.feed.session_ids())


def _find_user(contents: ScopeContents, db: SessionDB | None) -> list[ForgetPlace]:
    ids = _sessions_of(contents)
    found = [ForgetPlace("record", "sessions", len(ids), "remove")] if ids else []
    items = contents.record.item_passages.count() if contents.record is not None else 0
    found += [ForgetPlace("items", "items", items, "remove")] if items else []
    waiting = len(db.feed.notifications.select(None, contents.scope.queue)) if db is not None else 0
    found += [ForgetPlace("outbox", "notifications", waiting, "remove")] if waiting else []
    return [*found, *UserFiles(contents.scope).find(), *contents.providers.find_received(ids)]


def _open_sessions_note(found: Sequence[ForgetPlace]) -> list[str]:
    """Sessions that have not ended: a program that runs one has its prompt and context in memory."""
    names = list(dict.fromkeys(place.where.partition(":")[0] for place in found if place.note == OPEN))
    if not names:
        return []
    more = f" and {len(names) - _MAX_SESSIONS_SHOWN:,} more" if len(names) > _MAX_SESSIONS_SHOWN else ""
    shown = ", ".join(names[:_MAX_SESSIONS_SHOWN]) + more
    return [f"A program that still has one of these sessions open keeps the text in memory until it ends: {shown}."]


def words_of(matcher: TextMatcher) -> list[str]:
    """The words of the texts as the search index stores them; very short ones are part of too many others."""
    found = {token for text in matcher.texts for token in index_tokens(text)}
    return sorted(token for token in found if len(token) >= _SHORT)


def _warn(matcher: TextMatcher, found: Sequence[ForgetPlace]) -> str:
    """Why a person should look at the counts first; empty if there is no reason."""
    count = sum(place.count for place in found if place.action != "keep")
    if matcher.shortest < _SHORT:
        return f"The text has fewer than {_SHORT} characters, and it is a part of other words: {count:,} matches."
    return f"The text is in very many places: {count:,} matches." if count > _MANY else ""


@contextmanager
def _open_sessions(home: Home, server_url: str) -> Iterator[SessionDB]:
    with open_record_of(home, server_url) as db:
        yield db.scoped(Scope.everyone())
