"""What changed in curated memory since a prompt was frozen, as a note for the user's next message.

The prompt keeps its snapshot, so that its prefix stays cached; a session that stays open for weeks learns by this note
what other sessions, commands or a review saved meanwhile. It travels in the same fence as recalled memory, in a copy
of the message, and so never reaches the record.
"""

from collections.abc import Callable, Mapping, Sequence

from memoranda.curated.settings import FILE_NAMES, TARGETS
from memoranda.curated.store import MemoryStore
from memoranda.errors import StorageError
from memoranda.safety.fence import build_changes_block

MOST_CHARS = 4_000

Entries = Mapping[str, Sequence[str]]


class MemoryChanges:
    """What changed in a store since a prompt was frozen, for one session.

    The note is asked for once per turn, when it begins, so that all requests of the turn carry the same bytes. It is
    not recorded, so it comes again with every turn, until the session is told of the present state in another way.
    """

    def __init__(
        self, store: MemoryStore, known: Entries | None = None, *, clean: Callable[[str], str] = lambda text: text
    ) -> None:
        """`clean` makes of an entry what the prompt shows of it, such as one without credentials."""
        self._store = store
        self._clean = clean
        self._known = dict(self._shown(entries_in_prompt(store)) if known is None else known)

    @property
    def known(self) -> dict[str, list[str]]:
        """What the model knows of, as plain data: kept with the session, it serves whoever takes the session up."""
        return {target: list(entries) for target, entries in self._known.items()}

    def note(self) -> str:
        """The fenced note for the user's message; "" when there is nothing to tell."""
        return note_of_changes(self._known, self._shown(entries_now(self._store)))

    def mark_seen(self, target: str) -> None:
        """The model has just seen the live entries of a file, in the result of a memory call of its own."""
        now = self._shown(entries_now(self._store))
        self._known |= {name: entries for name, entries in now.items() if name == target}

    def _shown(self, entries: Entries) -> dict[str, list[str]]:
        return {target: [self._clean(entry) for entry in found] for target, found in entries.items()}


def entries_in_prompt(store: MemoryStore) -> dict[str, list[str]]:
    """What a store's frozen snapshot shows, by target: plain data that can be kept with the session."""
    return {target: list(shown) for target in TARGETS if (shown := store.snapshot_entries(target)) is not None}


def entries_now(store: MemoryStore) -> dict[str, list[str]]:
    """What the files hold at this moment, as it may be shown; a file that cannot be read is left out."""
    found: dict[str, list[str]] = {}
    for target in store.settings.targets():
        try:
            found[target] = list(dict.fromkeys(store.entries(target)))
        except StorageError:
            # Not being able to look is no change; the next write and the doctor say what is wrong.
            continue
    return found


def note_of_changes(before: Entries, after: Entries, *, most: int = MOST_CHARS) -> str:
    """A fenced note of the entries that came and went, for the next user message; "" when nothing changed."""
    changes = [
        line for target in TARGETS if target in before and target in after for line in _changes(target, before, after)
    ]
    if not changes:
        return ""
    shown: list[str] = []
    room = most
    for change in changes:
        room -= len(change) + 1
        if room < 0:
            break
        shown.append(change)
    if len(shown) < len(changes):
        shown.append(f"(and {len(changes) - len(shown)} more changes)")
    return build_changes_block("\n".join(shown))


def _changes(target: str, before: Entries, after: Entries) -> list[str]:
    name = next(FILE_NAMES[each] for each in TARGETS if each == target)
    gone = [entry for entry in dict.fromkeys(before[target]) if entry not in after[target]]
    new = [entry for entry in dict.fromkeys(after[target]) if entry not in before[target]]
    return [f"No longer in {name}: {_indented(entry)}" for entry in gone] + [
        f"New in {name}: {_indented(entry)}" for entry in new
    ]


def _indented(entry: str) -> str:
    return entry.replace("\n", "\n  ")
