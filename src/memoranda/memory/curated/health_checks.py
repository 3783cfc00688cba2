"""Checks a memory directory for the doctor: files, journal, allowances, proposals, leftovers and permissions."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.curated.memory_file import ReadableMemoryFile, list_backups
from memoranda.memory.curated.settings import FILE_NAMES, CuratedSettings, Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.storage.files.journal import check_journal
from memoranda.support.health_issues import HealthIssue, check_permissions, check_writable, issues_until_error, leftover
from memoranda.support.text_file import ABSENT, UndecodableFile, UnreadableFile


def check(directory: Path, settings: CuratedSettings, option: str = "") -> Iterator[HealthIssue]:
    """Every issue of one memory directory; `option` is the command-line option that selects it."""
    if not directory.is_dir():
        return
    store = MemoryStore(directory, settings)
    yield from check_memory(store, option)
    yield from issues_until_error(
        directory,
        partial(_check_leftovers, store),
        partial(check_writable, directory),
        partial(_check_permissions, directory),
    )


def check_memory(store: MemoryStore, option: str = "") -> Iterator[HealthIssue]:
    """Every issue of the content of a memory, in a directory or in the tables of a server."""
    yield from issues_until_error(
        store.directory,
        partial(_check_files, store, option),
        partial(_check_journal, store, option),
        store.allowances.check,
        partial(_check_proposals, store),
    )


def check_history(store: MemoryStore) -> Iterator[HealthIssue]:
    """Replay the journal from its beginning, and compare the result with the texts that it describes."""
    journal, last = store.directory / "journal.jsonl", store.journal.last()
    for target in store.storage.targets() if last is not None else ():
        path = store.path(target)
        entries = store.journal.entries_after(target)
        state = store.storage.read(target, None)
        if entries is None:
            yield HealthIssue(
                "warning",
                journal,
                f"has a history of {path.name} that contradicts itself, so earlier changes cannot be undone",
                "nothing to do; 'memoranda memory purge' starts a new history",
            )
        elif (
            last is not None
            and isinstance(state, ReadableMemoryFile)
            and last.heads.get(target) == state.fingerprint
            and entries != list(state.entries)
        ):
            yield HealthIssue(
                "warning",
                journal,
                f"has a history of {path.name} that does not lead to what the file contains",
                "compare them with 'memoranda memory log'; 'memoranda memory purge' starts a new history",
            )


def _check_permissions(directory: Path) -> Iterator[HealthIssue]:
    for path in (directory, *_own_files(directory)):
        yield from check_permissions(path)


def _own_files(directory: Path) -> Iterator[Path]:
    """Everything in a memory directory except the directories of users, which are checked separately."""
    for path in sorted(directory.iterdir()):
        if path.is_dir() and path.name == "pending":
            yield from (path, *sorted(path.rglob("*")))
        else:
            yield path


def _check_files(store: MemoryStore, option: str) -> Iterator[HealthIssue]:
    for target in store.storage.targets():
        yield from _check_file(store, target, option)


def _check_file(store: MemoryStore, target: Target, option: str) -> Iterator[HealthIssue]:
    path = store.path(target)
    state = store.storage.read(target, None)
    if path.is_symlink():
        yield HealthIssue(
            "error",
            path,
            f"is a link to {path.resolve()}, which is never replaced",
            "put the file itself there",
        )
    if isinstance(state, UnreadableFile):
        yield HealthIssue("error", path, f"cannot be read: {state.problem}", "give yourself read permission: chmod 600")
    elif isinstance(state, UndecodableFile):
        remedy = f"convert it, for example with iconv; or move it away and run '{_write_back(target, option)}'"
        yield HealthIssue("error", path, f"is not UTF-8: {state.problem}", remedy)
    elif isinstance(state, ReadableMemoryFile):
        yield from _check_content(store, target, state, option)
    elif (last := store.journal.last()) and last.heads.get(target, ABSENT) != ABSENT:
        yield HealthIssue(
            "warning",
            path,
            "was deleted outside Memoranda since the last recorded change",
            f"'{_write_back(target, option)}' writes back what the journal has of it",
        )


def _check_content(store: MemoryStore, target: Target, state: ReadableMemoryFile, option: str) -> Iterator[HealthIssue]:
    path, limit = state.path, store.settings.limit(target)
    edit = f"memoranda memory edit {target}{option}"
    if not state.is_rewritable(limit):
        yield HealthIssue(
            "warning",
            path,
            "has an entry that is longer than the whole file may be; the agent cannot write to it",
            f"run '{edit}'",
        )
    view = store.view(target)
    if view.used > limit:
        yield HealthIssue("warning", path, f"is over its limit ({view.usage})", f"shorten or remove entries: '{edit}'")
    for entry in view.entries:
        if entry.findings:
            yield HealthIssue(
                "warning",
                path,
                f"{entry.handle} is hidden from the agent: {', '.join(entry.findings)}",
                f"'memoranda memory remove {entry.handle} --target {target}{option}', or 'allow' instead of 'remove'",
            )
    last = store.journal.last()
    if last and last.heads.get(target, state.fingerprint) != state.fingerprint:
        yield HealthIssue(
            "note",
            path,
            "was changed outside Memoranda since the last recorded change",
            f"nothing, if you did it: see 'memoranda memory diff{option}'; if not, '{_write_back(target, option)}'",
        )


def _write_back(target: Target, option: str) -> str:
    """The command that restores the entries of the journal."""
    return f"memoranda memory undo --outside {target}{option}"


def _check_journal(store: MemoryStore, option: str) -> Iterator[HealthIssue]:
    path = store.directory / "journal.jsonl"
    try:
        yield from check_journal(store.journal, path, f"memoranda memory purge{option}", store.exclusive)
    except OSError as error:
        yield HealthIssue(
            "error", path, f"cannot be read: {error.strerror}", "give yourself read permission: chmod 600"
        )


def _check_proposals(store: MemoryStore) -> Iterator[HealthIssue]:
    try:
        waiting = len(store.proposals.all())
    except StorageError as error:
        yield HealthIssue("error", store.directory / "pending", str(error), "repair or delete the file")
        return
    if waiting:
        yield HealthIssue(
            "note", store.directory / "pending", f"{waiting} proposals await approval", "memoranda memory pending"
        )


def _repair(store: MemoryStore) -> None:
    """Clean up everything that a killed writer left, or raise what prevents it."""
    with store.exclusive(timeout=0):
        store.storage.remove_leftovers()


def _check_leftovers(store: MemoryStore) -> Iterator[HealthIssue]:
    lock = store.directory / ".lock"
    if lock.is_symlink():
        yield HealthIssue(
            "error",
            lock,
            "is a link, and links are not followed, so nothing can be written",
            "delete it",
            lock.unlink,
        )
    for path in store.storage.leftovers():
        yield leftover(path, partial(_repair, store))
    backups = sum(len(list_backups(store.storage.backups, file_name(target))) for target in store.storage.targets())
    if backups:
        names = " and ".join(f"{name}.bak.*" for name in FILE_NAMES.values())
        yield HealthIssue(
            "note",
            store.directory,
            f"has {backups} backups ({names})",
            "delete them when they are no longer needed, or run 'memoranda memory purge'",
        )
