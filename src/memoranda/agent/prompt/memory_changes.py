"""A note for the user's next message: what changed in curated memory since the session's prompt was built.

The prompt keeps its snapshot, so that its prefix stays cached; in a session that stays open for weeks, this note shows
the model what other sessions, commands or a review saved meanwhile. It is put into the same fence as recalled memory,
in a copy of the message, and so never reaches the record.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from memoranda.errors import StorageError
from memoranda.memory.curated.facts import show_days
from memoranda.memory.curated.settings import file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.safety.fence import build_changes_block, quote

MAX_CHARS = 4_000

Entries = Mapping[str, Sequence[str]]


class MemoryChanges:
    """Tracks what changed in a store since the prompt of one session was built.

    A turn asks for the note once, when it begins, so that all its requests carry the same bytes. The note is not
    recorded, so every turn repeats it until the model has seen the live entries elsewhere (`mark_seen`).
    """

    def __init__(
        self, store: MemoryStore, known: Entries | None = None, *, clean: Callable[[str], str] = lambda text: text
    ) -> None:
        """`clean` turns an entry into what the prompt shows of it, such as one without credentials."""
        self._store = store
        self._clean = clean
        self._known = dict(self._clean_all(entries_in_prompt(store)) if known is None else known)

    @property
    def known(self) -> dict[str, list[str]]:
        """The entries that the model knows, as plain data that is stored with the session and restored with it."""
        return {target: list(entries) for target, entries in self._known.items()}

    def note(self) -> str:
        """The fenced note for the user's message; "" when nothing changed."""
        return note_of_changes(self._known, self._clean_all(entries_now(self._store)))

    def mark_seen(self, target: str) -> None:
        """Note that the model has seen the live entries of a target, in the result of its own memory call."""
        now = self._clean_all(entries_now(self._store))
        self._known |= {name: entries for name, entries in now.items() if name == target}

    def _clean_all(self, entries: Entries) -> dict[str, list[str]]:
        return {target: [self._clean(entry) for entry in texts] for target, texts in entries.items()}


def entries_in_prompt(store: MemoryStore) -> dict[str, list[str]]:
    """The entries in a store's frozen snapshot, by target."""
    return {target: list(shown) for target in store.targets() if (shown := store.snapshot_entries(target)) is not None}


def entries_now(store: MemoryStore) -> dict[str, list[str]]:
    """The live entries as they may be shown, by target; a file that cannot be read is left out."""
    found: dict[str, list[str]] = {}
    for target in store.targets():
        try:
            entries = list(dict.fromkeys(store.valid_entries(target)))
            found[target] = show_days(entries, partial(store.facts, target))
        except StorageError:
            # An unreadable file is not a change; the next write and the doctor report what is wrong.
            continue
    return found


def note_of_changes(before: Entries, after: Entries, *, limit: int = MAX_CHARS) -> str:
    """A fenced note of the entries that were added and removed; "" when nothing changed."""
    changes = [line for target in before if target in after for line in _list_changes(target, before, after)]
    if not changes:
        return ""
    shown: list[str] = []
    room = limit
    for change in changes:
        room -= len(change) + 1
        if room < 0:
            break
        shown.append(change)
    if len(shown) < len(changes):
        shown.append(f"(and {len(changes) - len(shown)} more changes)")
    return build_changes_block("\n".join(shown))


def _list_changes(target: str, before: Entries, after: Entries) -> list[str]:
    name = file_name(target)
    gone = [entry for entry in dict.fromkeys(before[target]) if entry not in after[target]]
    new = [entry for entry in dict.fromkeys(after[target]) if entry not in before[target]]
    return [quote(f"No longer in {name}", entry) for entry in gone] + [quote(f"New in {name}", entry) for entry in new]
