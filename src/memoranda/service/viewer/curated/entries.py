"""The entries of MEMORY.md and USER.md as a page shows them, and what to show when two people edit one."""

from dataclasses import dataclass

from memoranda.errors import StorageError
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.viewer.curated.changes import read_changes
from memoranda.service.viewer.curated.origins import EntryOrigin, find_origins
from memoranda.support.canonical_text import digest


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry. `id` is derived from its whole text, so a form that has it names this text and no other."""

    id: str
    handle: str
    text: str
    findings: tuple[str, ...]
    origin: EntryOrigin | None


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One of the two files. `problem` says why it cannot be read; `enabled` whether it is switched on."""

    target: Target
    name: str
    entries: tuple[EntryRow, ...] = ()
    used: int = 0
    limit: int = 0
    enabled: bool = True
    problem: str = ""
    fingerprint: str = ""

    @property
    def percent(self) -> int:
        return min(100, 100 * self.used // self.limit) if self.limit else 0


@dataclass(frozen=True, slots=True)
class EditConflict:
    """An entry that changed after a form with it was opened: the text then, the text now, and the one in the form.

    `current` is None if the entry was removed; `current_id` then is empty.
    """

    target: Target
    seen: str | None
    current: str | None
    current_id: str
    mine: str


def read_files(store: MemoryStore) -> tuple[MemoryFile, ...]:
    """Both files as they are now."""
    changes = read_changes(store)
    files = []
    for target in TARGETS:
        name, enabled = FILE_NAMES[target], store.settings.enabled(target)
        try:
            view = store.view(target)
        except StorageError:
            problem = f"{name} cannot be read. It was left as it is; the page Health says what is wrong with it."
            files.append(MemoryFile(target, name, enabled=enabled, problem=problem))
            continue
        origins = find_origins(changes, target)
        rows = tuple(_row(entry, origins.get(entry.text)) for entry in view.entries)
        files.append(MemoryFile(target, name, rows, view.used, view.limit, enabled, fingerprint=view.fingerprint))
    return tuple(files)


def find_entry(store: MemoryStore, target: Target, entry_id: str) -> ScannedEntry | None:
    """The entry with an id; None if it was changed or removed."""
    return next((entry for entry in store.view(target).entries if digest(entry.text) == entry_id), None)


def find_conflict(store: MemoryStore, target: Target, seen_id: str, mine: str) -> EditConflict:
    """What became of an entry that a form names, by following the journal from the text that the form was opened with.

    Texts are those that may be shown. A text that the journal does not have is unknown.
    """
    entries = {digest(entry.text): entry for entry in store.view(target).entries}
    texts: dict[str, str] = {}
    followed = seen_id
    for change in read_changes(store, target):
        for edit in change.edits:
            if edit.before is not None:
                texts[digest(edit.before)] = edit.before
                if digest(edit.before) == followed and followed not in entries:
                    followed = "" if edit.after is None else digest(edit.after)
    seen = texts.get(seen_id)
    current = entries.get(followed)
    return EditConflict(
        target,
        None if seen is None else store.visible_text(target, seen),
        None if current is None else current.visible_text,
        "" if current is None else digest(current.text),
        mine,
    )


def _row(entry: ScannedEntry, origin: EntryOrigin | None) -> EntryRow:
    return EntryRow(digest(entry.text), entry.handle, entry.visible_text, entry.findings, origin)
