"""Everything that one scope of a home contains: finds a text in all of it, and removes it part by part."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from memoranda.external.outbox.queued_passages import QueuedPassages
from memoranda.importers.importer import state_of_store
from memoranda.memory.checkpoints.passages import CheckpointPassages
from memoranda.memory.checkpoints.schema import SCHEMA as CHECKPOINTS
from memoranda.memory.checkpoints.store import CheckpointStore, open_checkpoints
from memoranda.memory.curated.passages import find_passages, forget_passages, matching_entries
from memoranda.memory.curated.settings import NOTES_NAMESPACE, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.passages import FoundPassage
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.lazy_database import users_of
from memoranda.storage.orphaned_wal import database_exists
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.home_files import Archives, HomeFiles
from memoranda.upkeep.forgetting.provider_copies import ProviderCopies
from memoranda.upkeep.forgetting.report import Action, ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope, checkpoints_of, memories_of
from memoranda.upkeep.forgetting.small_databases import HomeDatabases, PartTables

OPEN = "the session has not ended"
_IDENTIFIER = "an identifier, which other rows refer to; delete the session to remove it"
_Answer = TypeVar("_Answer")
_OUTSIDE = "outside the home: it is not changed, and the next import does not restore the text"


class ScopeContents:
    """The stores and files of one scope; `record` is its session store, if the home has one."""

    def __init__(self, scope: ForgetScope, record: SessionStore | None, *, is_backup: bool = False) -> None:
        self.scope = scope
        self.record = record.scoped(scope.sessions) if record is not None else None
        self._everyone = record.scoped(Scope.everyone()) if record is not None else None
        opened = None if record is None else lambda: record
        self.queue = QueuedPassages(scope.home.root, scope.queue, scope.server_url, opened)
        self.providers = ProviderCopies(scope)
        self._is_backup = is_backup
        # A backup has files, whatever its configuration says.
        self._curated = None if is_backup else memories_of(scope.home, scope.server_url)
        self._checkpoints = (
            open_checkpoints(scope.home.root) if is_backup else checkpoints_of(scope.home, scope.server_url)
        )
        self.checkpoints = CheckpointPassages(CheckpointStore(self._checkpoints, scope.user))
        self._files = HomeFiles(scope)
        self._databases = HomeDatabases(scope, self._is_our_session)
        self._tables = PartTables(scope)

    def archives(self, matcher: TextMatcher) -> Archives:
        return Archives(
            self.scope,
            lambda scope: self._in_backup(scope, lambda contents: contents.find(matcher)),
            lambda scope: self._in_backup(scope, lambda contents: contents.forget_in_home(matcher)),
        )

    def session_archives(self, session_ids: Collection[str]) -> Archives:
        """The backups, for deleting sessions in them."""

        def find(contents: ScopeContents) -> list[ForgetPlace]:
            rows = contents.record.deletion.list_deletion(session_ids) if contents.record is not None else []
            return [ForgetPlace("record", row["id"], row["message_count"], "remove") for row in rows]

        def delete(contents: ScopeContents) -> list[str]:
            if contents.record is not None:
                contents.record.deletion.delete_sessions(session_ids)
            return []

        return Archives(
            self.scope, lambda scope: self._in_backup(scope, find), lambda scope: self._in_backup(scope, delete)
        )

    def find(self, matcher: TextMatcher) -> list[ForgetPlace]:
        """Every place of the scope that has the text."""
        passages = self.record.passages.find(matcher) if self.record is not None else []
        found = [*self._find_curated(matcher), *_places_of(passages), *self._find_items(matcher)]
        found += [
            ForgetPlace("checkpoints", f"thread {each.thread_id}", each.matches, "remove" if each.named else "redact")
            for each in self.checkpoints.find(matcher)
        ]
        found += [
            ForgetPlace(
                "outbox",
                f"{each.kind} for {each.provider}",
                each.count,
                "remove" if each.kind == "memory_write" else "redact",
            )
            for each in self.queue.find(matcher)
        ]
        found += self._files.find(matcher) + self._databases.find(matcher) + self._tables.find(matcher)
        if not self._is_backup:
            found += self.archives(matcher).find()
            ids = {passage.session_id for passage in passages}
            found += self.providers.find_received(ids) + self.source_files(ids)
        return found

    def sessions_with(self, matcher: TextMatcher) -> set[str]:
        """The sessions whose messages, or waiting deliveries, have the text."""
        found = {each.session_id for each in self.queue.find(matcher) if each.session_id}
        if self.record is not None:
            found |= {each.session_id for each in self.record.passages.find(matcher)}
        return found

    def others_have(self, matcher: TextMatcher, users: Collection[str | None]) -> bool:
        """Whether the text is in tables or checkpoints of anyone but these users."""
        if self._tables.others_have(matcher, users):
            return True
        if not self._checkpoints.exists():
            return False
        known = users_of(self._checkpoints.open(), CHECKPOINTS.user_tables)
        return any(
            CheckpointPassages(CheckpointStore(self._checkpoints, user)).find(matcher)
            for user in (None, *known)
            if user not in users
        )

    def entries_with(self, matcher: TextMatcher) -> list[tuple[Target, str]]:
        """The entries of curated memory that contain the text."""
        return [entry for store in self._memories() for entry in matching_entries(store, matcher)]

    def forget_in_home(self, matcher: TextMatcher) -> list[str]:
        """Remove the text from everything except external services and backups; returns what could not be changed.

        The record comes before the queue: turns are found in the record, and would be queued with the text again.
        """
        problems = [problem for store in self._memories() for problem in forget_passages(store, matcher)]
        if self.record is not None:
            self.record.passages.replace(matcher)
            self.record.item_passages.replace(matcher, NOTES_NAMESPACE)
        self.checkpoints.replace(matcher)
        self.queue.forget(matcher)
        problems += self._files.forget(matcher) + self._databases.forget(matcher)
        self._tables.forget(matcher)
        self.queue.erase_removed()
        return problems

    def source_files(self, session_ids: Collection[str]) -> list[ForgetPlace]:
        """The files of other programs that the sessions came from."""
        if self._everyone is None or not session_ids:
            return []
        store = self._everyone.scoped(self.scope.sessions)
        with closing(state_of_store(self.scope.home.root, store)) as state:
            return [ForgetPlace("outside", file, 1, "keep", _OUTSIDE) for file in state.files_with(session_ids)]

    def _find_curated(self, matcher: TextMatcher) -> Iterator[ForgetPlace]:
        root = self.scope.home.root
        for store in self._memories():
            for passage in find_passages(store, matcher):
                area = {"entries": "curated memory", "changes": "journal", "backup": "backups"}.get(
                    passage.what, "proposals"
                )
                action: Action = "remove" if passage.what in ("entries", "proposal") else "redact"
                path = passage.path.relative_to(root) if passage.path.is_absolute() else passage.path
                yield ForgetPlace(area, path.as_posix(), passage.count, action)

    def _find_items(self, matcher: TextMatcher) -> list[ForgetPlace]:
        passages = self.record.item_passages.find(matcher, NOTES_NAMESPACE) if self.record is not None else []
        return [
            ForgetPlace("items", passage.name, passage.count, "remove" if passage.is_whole else "redact")
            for passage in passages
        ]

    def _memories(self) -> list[MemoryStore]:
        if self._curated is None:
            store = MemoryStore(self.scope.home.memories(self.scope.user))
        else:
            store = self._curated.open(self.scope.user)
        return [store] if store.storage.exists() else []

    def close(self) -> None:
        """Close what the constructor opened; the caller closes the record."""
        self._checkpoints.close()
        if self._curated is not None:
            self._curated.close()

    def _is_our_session(self, session_id: str) -> bool:
        if self.record is None or self._everyone is None or self._everyone.sessions.get_session(session_id) is None:
            return self.scope.user is None
        return self.record.sessions.get_session(session_id) is not None

    def _in_backup(self, scope: ForgetScope, use: "Callable[[ScopeContents], _Answer]") -> _Answer:
        with opened_record(scope.home.state_db) as record:
            contents = ScopeContents(scope, record, is_backup=True)
            try:
                return use(contents)
            finally:
                contents.close()


@contextmanager
def opened_record(path: Path) -> Iterator[SessionStore | None]:
    """The record at a path, for everyone; None if there is none."""
    if not database_exists(path):
        yield None
        return
    with closing(open_store(path)) as store:
        yield store


def _places_of(passages: Sequence[FoundPassage]) -> list[ForgetPlace]:
    """One place for each session and kind of passage."""
    grouped: dict[tuple[str, str], list[FoundPassage]] = {}
    for passage in passages:
        grouped.setdefault((passage.session_id, passage.kind), []).append(passage)
    found = []
    for (session_id, kind), group in grouped.items():
        count = sum(passage.count for passage in group)
        if kind == "identifier":
            found.append(ForgetPlace("record", f"session {session_id}: {kind}", count, "keep", _IDENTIFIER))
            continue
        note = OPEN if kind in ("prompt", "message", "summary") and any(passage.open for passage in group) else ""
        found.append(ForgetPlace("record", f"session {session_id}: {kind}", count, "redact", note))
    return found
