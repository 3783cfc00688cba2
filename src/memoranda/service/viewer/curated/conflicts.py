"""Entries that two machines have changed differently: both texts, and what a person decides on a page."""

from dataclasses import dataclass
from hashlib import sha256
from typing import get_args

from memoranda.api.memory import Memory
from memoranda.errors import LockTimeoutError, SyncError
from memoranda.memory.curated.operations import Add, MemoryReceipt, MemoryRefusal, Operation, Remove, Replace
from memoranda.memory.curated.settings import FILE_NAMES
from memoranda.service.viewer.text_diff import DiffPart, diff_words
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.origin import Origin
from memoranda.upkeep.sync.conflicts import Choice, Conflict, list_conflicts, resolve_conflict
from memoranda.upkeep.sync.state import SyncState
from memoranda.upkeep.sync.synchroniser import LOCK_NAME

CHOICES: tuple[Choice, ...] = get_args(Choice)


@dataclass(frozen=True, slots=True)
class ConflictRow:
    """A conflict with its texts as they may be shown; None where the entry was removed or could not be added.

    `seen` names the two texts, so that a form decides only what it has shown.
    """

    number: int
    file: str
    machine: str
    mine: str | None
    theirs: str | None
    parts: tuple[DiffPart, ...]
    seen: str


@dataclass(frozen=True, slots=True)
class ConflictList:
    """The conflicts of a home; `is_busy` says that they are not known while a synchronisation is running."""

    rows: tuple[ConflictRow, ...] = ()
    is_busy: bool = False


def read_conflicts(memory: Memory) -> ConflictList:
    """What waits for the home's owner; the memory of other users, and that on a server, is not synchronised."""
    root = memory.home.root
    if memory.user is not None or memory.config.store.url or not SyncState(root).exists():
        return ConflictList()
    try:
        # A run keeps a transaction open; a page does not wait for its end.
        with FileLock(root / LOCK_NAME, 0):
            found = list_conflicts(root, memory.sessions, memory.curated)
    except LockTimeoutError:
        return ConflictList(is_busy=True)
    return ConflictList(tuple(_describe(memory, conflict) for conflict in found))


def decide_conflict(memory: Memory, number: int, seen: str, choice: Choice) -> MemoryReceipt | MemoryRefusal | None:
    """Decide a conflict whose texts are still those that the form showed. None if no file changed.

    When this machine's text stays, the other text becomes a rejected proposal, which can be restored. Raises SyncError
    if the conflict is gone or its texts have changed.
    """
    root, db, store = memory.home.root, memory.sessions, memory.curated
    conflict = next((each for each in list_conflicts(root, db, store) if each.number == number), None)
    if conflict is None or _name_texts(conflict) != seen:
        raise SyncError("The entry was changed or the conflict was decided meanwhile. Look at it again.")
    if choice == "mine":
        _keep_other_text(memory, conflict)
    return resolve_conflict(root, db, store, number, choice)


def _keep_other_text(memory: Memory, conflict: Conflict) -> None:
    operation: Operation
    if conflict.theirs is None:
        if conflict.mine is None:
            return
        operation = Remove(conflict.mine)
    elif conflict.mine is None:
        operation = Add(conflict.theirs)
    else:
        operation = Replace(conflict.mine, conflict.theirs)
    queue = memory.curated.proposals
    origin = Origin(f"sync:{conflict.machine}")
    queue.reject(queue.add(conflict.target, [operation], origin, [conflict.mine]))


def _describe(memory: Memory, conflict: Conflict) -> ConflictRow:
    mine, theirs = (
        None if text is None else memory.curated.visible_text(conflict.target, text)
        for text in (conflict.mine, conflict.theirs)
    )
    return ConflictRow(
        conflict.number,
        FILE_NAMES[conflict.target],
        conflict.machine,
        mine,
        theirs,
        diff_words(mine, theirs),
        _name_texts(conflict),
    )


def _name_texts(conflict: Conflict) -> str:
    return sha256(repr((conflict.mine, conflict.theirs)).encode("utf-8", "backslashreplace")).hexdigest()[:32]
