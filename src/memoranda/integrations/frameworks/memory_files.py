"""The files of a virtual directory `/memories`: two are curated memory, all others are items of the user.

MEMORY.md and USER.md consist of entries, separated by a line with only `§`. They have limits, and what a model writes
there passes the scanner and, if so configured, waits for a person. Other files are items with a history; they are
scanned when they are written, and credentials are redacted.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from memoranda.errors import ItemConflictError, SessionError, StorageError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.entry_format import handle, parse, serialise, size
from memoranda.memory.curated.operations import Add, Operation, Remove, Replace, rewrite_edits
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.write_result import PERSON, AwaitsApproval, MemoryRefusal, Origin
from memoranda.safety import scan
from memoranda.safety.fence import screen_stored
from memoranda.support.shorten import shorten_end
from memoranda.types import DeleteItem, PutItem

if TYPE_CHECKING:
    from memoranda.api.memory import Memory
    from memoranda.types import Item

NAMESPACE = "memory_files"
"""The first label of the namespace of items that are files; the others are directories."""
MAX_FILE_CHARS = 100_000
_MAX_FILES = 10_000
_MAX_FINDINGS_SHOWN = 5
_CURATED: dict[tuple[str, ...], Target] = {(FILE_NAMES[target],): target for target in TARGETS}

Location = tuple[str, ...]
"""The parts of a path below /memories."""


class FileError(Exception):
    """What a command cannot do, in words for the model."""


class MemoryFile(NamedTuple):
    """A file as it may be shown, and its size in bytes."""

    location: Location
    text: str

    @property
    def size(self) -> int:
        return len(self.text.encode("utf-8", "surrogatepass"))


class MemoryFiles:
    """Reads and writes the files of one user; `session_id` is journalled with changes of curated memory."""

    def __init__(self, memory: "Memory", session_id: str = "") -> None:
        self._memory = memory
        self._origin = Origin("agent", session_id)

    def read(self, location: Location) -> MemoryFile | None:
        """A file as a model may see it: what looks like an attack is withheld. None if there is none."""
        if target := _CURATED.get(location):
            text = serialise(self._shown_entries(target))
            return MemoryFile(location, text) if text else None
        item = self._item(location)
        return None if item is None else MemoryFile(location, _shown(_text_of(item)))

    def list_below(self, directory: Location) -> list[MemoryFile]:
        """Every file below a directory."""
        found = [] if directory else [file for place in _CURATED if (file := self.read(place)) is not None]
        if self._memory.services.has_record:
            hits = self._memory.items.search((NAMESPACE, *directory), limit=_MAX_FILES)
            found += [MemoryFile(_location_of(hit.item), _text_of(hit.item)) for hit in hits]
        return sorted(found)

    def create(self, location: Location, text: str) -> str:
        """Write a file that does not exist; returns what the model should know beside that, usually nothing."""
        if target := _CURATED.get(location):
            return self._write_entries(target, text)
        self._put(location, text, version=0)
        return ""

    def replace(self, location: Location, old: str, new: str) -> tuple[str, str]:
        """Replace the only occurrence of a text; returns the new text as it is shown, and a note as `create` does."""
        if target := _CURATED.get(location):
            text = serialise(self._shown_entries(target)).replace(old, new)
            return text, self._write_entries(target, text)
        item = self._require(location)
        text = _text_of(item)
        if text.count(old) != 1:
            raise FileError("No replacement was performed: a part of the file that is not shown has the text, too.")
        changed = text.replace(old, new)
        self._put(location, changed, version=item.version)
        return _shown(changed), ""

    def insert(self, location: Location, line: int, text: str) -> str:
        """Insert text after a line."""
        target = _CURATED.get(location)
        item = None if target else self._require(location)
        before = serialise(self._shown_entries(target)) if target else _text_of(item) if item else ""
        lines = before.split("\n")
        if lines[-1] == "":
            lines.pop()
        if not 0 <= line <= len(lines):
            raise FileError(
                f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
            )
        lines.insert(line, text.rstrip("\n"))
        changed = "\n".join(lines)
        changed += "" if changed.endswith("\n") else "\n"
        if target:
            return self._write_entries(target, changed)
        self._put(location, changed, version=item.version if item else 0)
        return ""

    def delete(self, locations: Sequence[Location]) -> str:
        """Delete files: the items in one transaction, and the entries of curated memory one file after the other."""
        notes = [self._write_entries(_CURATED[each], "") for each in locations if each in _CURATED]
        if items := [DeleteItem(*_key_of(each)) for each in locations if each not in _CURATED]:
            self._memory.items.write(items)
        return " ".join(filter(None, notes))

    def rename(self, moves: Sequence[tuple[Location, Location]]) -> None:
        """Give files other names, all of them or none; their new names must be free."""
        changes: list[PutItem | DeleteItem] = []
        for old, new in moves:
            item = self._require(old)
            changes.append(DeleteItem(*_key_of(old), version=item.version))
            changes.append(PutItem(*_key_of(new), item.value, version=0))
        try:
            self._memory.items.write(changes)
        except ItemConflictError:
            raise FileError("A file was changed by another program meanwhile. Nothing was renamed.") from None
        except SessionError as error:
            _refuse(error)

    def undo(self, location: Location) -> str:
        """Revert the last change of a file, for a person; a second call reverts that."""
        if target := _CURATED.get(location):
            changes = [each for each in change_history.log(self._memory.curated) if each.target == target]
            number = max((each.number for each in changes if each.edits), default=None)
            outcome = change_history.undo(self._memory.curated, number, PERSON)
            if isinstance(outcome, MemoryRefusal):
                raise FileError(outcome.message)
            return outcome.message
        namespace, key = _key_of(location)
        versions = self._memory.items.history(namespace, key)
        if not versions:
            raise FileError("There is no change to undo.")
        if len(versions) > 1 and versions[-2].value is not None:
            self._memory.items.restore(namespace, key, versions[-2].version)
            return "Restored the version before."
        self._memory.items.delete(namespace, key)
        return "Removed the file that the last change created."

    def is_curated(self, location: Location) -> bool:
        return location in _CURATED

    def _shown_entries(self, target: Target) -> tuple[str, ...]:
        store = self._memory.curated
        return store.entries(target) if store.settings.enabled(target) else ()

    def _write_entries(self, target: Target, text: str) -> str:
        """Turn the shown entries into those of a text, as one change that can be undone."""
        store = self._memory.curated
        try:
            entries = store.view(target).entries
            # A placeholder stands for an entry that is not shown, and stays that entry.
            hidden = {entry.visible_text: entry.text for entry in entries}
            wanted = [hidden.get(entry, entry) for entry in parse(text)]
            operations = _operations([entry.text for entry in entries], wanted)
            if not operations:
                return ""
            outcome = store.apply(target, operations, self._origin)
        except StorageError as error:
            raise FileError(str(error)) from error
        if isinstance(outcome, MemoryRefusal) and outcome.reason == "over_budget":
            # The words of the `memory` tool name its own actions.
            raise FileError(
                f"{FILE_NAMES[target]} would have {size(wanted):,} characters; {store.settings.limit(target):,} are "
                "allowed. Nothing was written. Shorten it, or put details into another file."
            )
        if isinstance(outcome, MemoryRefusal):
            raise FileError(outcome.message)
        return outcome.message if isinstance(outcome, AwaitsApproval) else ""

    def _item(self, location: Location) -> "Item | None":
        if not self._memory.services.has_record:
            # Reading creates no file.
            return None
        try:
            return self._memory.items.get(*_key_of(location))
        except SessionError as error:
            _refuse(error)

    def _require(self, location: Location) -> "Item":
        item = self._item(location)
        if item is None:
            name = "/".join(location)
            raise FileError(
                f"The file /memories/{name} no longer exists (may have been deleted or renamed concurrently)."
            )
        return item

    def _put(self, location: Location, text: str, *, version: int) -> None:
        if len(text) > MAX_FILE_CHARS:
            raise FileError(
                f"The file would have {len(text):,} characters; {MAX_FILE_CHARS:,} are allowed. Split it into several."
            )
        text = self._memory.services.redact(text)
        if findings := list(dict.fromkeys(finding.id for finding in scan(text))):
            shown = ", ".join(findings[:_MAX_FINDINGS_SHOWN])
            raise FileError(f"The text was refused, because it looks like an attack ({shown}). Nothing was written.")
        try:
            self._memory.items.put(*_key_of(location), {"text": text}, version=version)
        except ItemConflictError:
            raise FileError("The file was changed by another program meanwhile. View it, then try again.") from None
        except SessionError as error:
            _refuse(error)


def _operations(before: Sequence[str], after: Sequence[str]) -> list[Operation]:
    """The operations that turn entries into others; a new entry is added at the end."""
    operations: list[Operation] = []
    for edit in rewrite_edits(before, after):
        if edit.before is None:
            operations.append(Add(edit.after or ""))
        elif edit.after is None:
            operations.append(Remove(handle(edit.before)))
        else:
            operations.append(Replace(handle(edit.before), edit.after))
    return operations


def _key_of(location: Location) -> tuple[tuple[str, ...], str]:
    return (NAMESPACE, *location[:-1]), location[-1]


def _location_of(item: "Item") -> Location:
    return (*item.namespace[1:], item.key)


def _text_of(item: "Item") -> str:
    value: Any = item.value
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _shown(text: str) -> str:
    return str(screen_stored(text, source="a memory file").value)


def _refuse(error: SessionError) -> NoReturn:
    raise FileError(shorten_end(str(error), 500)) from error
