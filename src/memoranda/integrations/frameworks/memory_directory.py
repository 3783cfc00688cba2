"""The commands of Anthropic's memory tool over a home, without Anthropic's SDK: for any loop that passes JSON.

    answer = memory_tool(memory)
    result = answer({"command": "view", "path": "/memories"})     # {"content": "…", "is_error": False}

The answers are those of the SDK's own tool, word for word, because models are trained on them.

Two files of the virtual directory `/memories` are curated memory, all others are items of the user. MEMORY.md and
USER.md consist of entries, separated by a line with only `§`. They have limits, and what a model writes there passes
the scanner. It waits for a person if it would change what an agent does, unless the user's words in the recorded
conversation support it; without one, nothing says that it is not from a page that the model read. Other files are items
with a history; they are scanned when they are written, and credentials are redacted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from memoranda.api.session_parts.writes import words_support
from memoranda.errors import ItemConflictError, MemorandaError, SessionError, StorageError
from memoranda.integrations.hooks.user_words import recorded_words
from memoranda.memory.curated import change_history
from memoranda.memory.curated.memory_file import handle, parse, serialise, size
from memoranda.memory.curated.operations import (
    Add,
    AwaitsApproval,
    MemoryRefusal,
    Operation,
    Remove,
    Replace,
    rewrite_edits,
)
from memoranda.memory.curated.settings import TARGETS, Target, file_name
from memoranda.safety import scan
from memoranda.safety.fence import screen_stored
from memoranda.support.origin import PERSON, Origin
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
_CURATED: dict[tuple[str, ...], Target] = {(file_name(target),): target for target in TARGETS}

Location = tuple[str, ...]
"""The parts of a path below /memories."""
ROOT = "/memories"
TOOL = {"type": "memory_20250818", "name": "memory"}
"""The definition of the tool for a request to Anthropic's API."""
INSTRUCTIONS = """\
/memories/MEMORY.md (your notes) and /memories/USER.md (the user's profile) are part of the prompt of later \
conversations: keep them short. They consist of entries, separated by a line with only §. Everything else goes into \
files of its own, which you view when you need them."""
"""What a system prompt should say about the directory, beside what the API adds by itself."""
_SOURCE = "Anthropic's memory tool"
_MAX_LINES = 999_999
_LINE_NUMBER_WIDTH = len(str(_MAX_LINES))
_LISTED_LEVELS = 2
_CONTEXT_LINES = 2
_MAX_QUOTED = 1_000
_FORBIDDEN = frozenset(map(chr, range(32))) | {"\x7f", "\\"}
_TYPES: dict[str, type | tuple[type, ...]] = {"view_range": list, "insert_line": int}
_ARGUMENTS = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


def memory_tool(
    memory: "Memory", *, session_id: str = "", heard: Callable[[], Sequence[str]] = tuple
) -> Callable[[Any], dict[str, Any]]:
    """A function that answers a call of the tool with the content of its result; it never raises.

    What the user said supports what the model saves, which then need not wait for a person: `heard` is asked for it,
    and a recorded conversation is read if `session_id` names one. Changes are journalled with that.
    """
    directory = MemoryDirectory(memory, session_id=session_id, heard=heard)

    def answer(arguments: Any) -> dict[str, Any]:
        try:
            return {"content": directory.call(arguments), "is_error": False}
        except (FileError, MemorandaError) as error:
            return {"content": str(error), "is_error": True}

    return answer


class FileError(Exception):
    """What a command cannot do, in words for the model."""


class MemoryDirectory:
    """The virtual directory of one user. Every method raises FileError, in words for the model."""

    def __init__(self, memory: "Memory", *, session_id: str = "", heard: Callable[[], Sequence[str]] = tuple) -> None:
        self._files = MemoryFiles(memory, session_id, heard)

    def call(self, arguments: Any) -> str:
        """Carry out a command, given as the model sent it."""
        command = arguments.get("command") if isinstance(arguments, Mapping) else None
        if not isinstance(command, str) or command not in _ARGUMENTS:
            raise FileError(f"Unknown command: {str(command)[:60]}. Use one of {', '.join(_ARGUMENTS)}.")
        names = [*_ARGUMENTS[command], *(["view_range"] if arguments.get("view_range") is not None else [])]
        for name in names:
            expected = _TYPES.get(name, str)
            if not isinstance(arguments.get(name), expected) or isinstance(arguments.get(name), bool):
                raise FileError(f"{command} needs {name}, which must be {_describe(name)}.")
        return str(getattr(self, command)(*(arguments[name] for name in names)))

    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """The files below a directory, two levels deep, or the lines of a file with their numbers."""
        location = _parse(path)
        file = self._files.read(location) if location else None
        if file is None:
            return self._view_directory(path, location)
        lines = file.text.split("\n")
        if len(lines) > _MAX_LINES:
            raise FileError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = 1, len(lines)
        if view_range and len(view_range) == 2 and all(isinstance(each, int) for each in view_range):
            first = max(1, view_range[0])
            last = len(lines) if view_range[1] == -1 else view_range[1]
        numbered = _number(lines, first, last)
        return f"Here's the content of {path} with line numbers:\n" + "\n".join(numbered)

    def create(self, path: str, file_text: str) -> str:
        """Create a file; one that exists is not changed."""
        location = _parse(path)
        if not location or self._kind(location):
            raise FileError(f"File {path} already exists")
        self._require_directories(location)
        note = self._files.create(location, file_text)
        return note or f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that occurs once."""
        location = self._require_file(path)
        file = self._files.read(location)
        text = file.text if file is not None else ""
        quoted = old_str if len(old_str) <= _MAX_QUOTED else f"{old_str[:_MAX_QUOTED]}…"
        found = _lines_with(text, old_str)
        if not found:
            raise FileError(f"No replacement was performed, old_str `{quoted}` did not appear verbatim in {path}.")
        if len(found) > 1:
            numbers = ", ".join(map(str, found))
            raise FileError(
                f"No replacement was performed. Multiple occurrences of old_str `{quoted}` in lines: {numbers}. "
                "Please ensure it is unique"
            )
        changed, note = self._files.replace(location, old_str, new_str)
        lines = changed.split("\n")
        snippet = _number(lines, max(1, found[0] - _CONTEXT_LINES), found[0] + _CONTEXT_LINES)
        edited = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return note or edited + "\n".join(snippet)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert text after a line; 0 is the start of the file."""
        location = self._require_file(path)
        return self._files.insert(location, insert_line, insert_text) or f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a directory with everything in it."""
        location = _parse(path)
        if not location:
            raise FileError("Cannot delete the /memories directory itself")
        kind = self._kind(location)
        if not kind:
            raise FileError(f"The path {path} does not exist")
        below = [location] if kind == "file" else [file.location for file in self._files.list_below(location)]
        return self._files.delete(below) or f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file or a directory another name; the new one must be free."""
        old, new = _parse(old_path), _parse(new_path)
        if not old:
            raise FileError("Cannot rename the /memories directory itself")
        if not new or self._kind(new):
            raise FileError(f"The destination {new_path} already exists")
        kind = self._kind(old)
        if not kind:
            raise FileError(f"The path {old_path} does not exist")
        if self._files.is_curated(old) or self._files.is_curated(new):
            raise FileError("MEMORY.md and USER.md cannot be renamed: create or edit them, and delete the other file.")
        if new[: len(old)] == old:
            raise FileError(f"Cannot move {old_path} into itself")
        self._require_directories(new)
        below = [old] if kind == "file" else [file.location for file in self._files.list_below(old)]
        self._files.rename([(each, (*new, *each[len(old) :])) for each in below])
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete every file; each deletion can be undone."""
        self._files.delete([file.location for file in self._files.list_below(())])
        return "All memory cleared"

    def undo(self, path: str) -> str:
        """Revert the last change of a file, for a person: no command of the tool does this."""
        location = _parse(path)
        if not location:
            raise FileError("Name a file.")
        return self._files.undo(location)

    def _view_directory(self, path: str, location: Location) -> str:
        files = [
            file
            for file in self._files.list_below(location)
            if not any(part.startswith(".") for part in file.location[len(location) :])
        ]
        if location and not self._kind(location):
            raise FileError(f"The path {path} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {}
        for file in files:
            parts = file.location[len(location) :]
            for depth in range(1, min(len(parts), _LISTED_LEVELS) + 1):
                name = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                sizes[name] = sizes.get(name, 0) + file.size
        header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        total = _format_size(sum(file.size for file in files))
        lines = [f"{_format_size(size)}\t{path}/{name}" for name, size in sorted(sizes.items())]
        return "\n".join([header, f"{total}\t{path}", *lines])

    def _kind(self, location: Location) -> str:
        """`file`, `directory`, or nothing."""
        if self._files.read(location) is not None:
            return "file"
        return "directory" if self._files.list_below(location) else ""

    def _require_file(self, path: str) -> Location:
        location = _parse(path)
        kind = self._kind(location) if location else "directory"
        if not kind:
            raise FileError(f"The path {path} does not exist. Please provide a valid path.")
        if kind != "file":
            raise FileError(f"The path {path} is not a file.")
        return location

    def _require_directories(self, location: Location) -> None:
        for depth in range(1, len(location)):
            if self._files.is_curated(location[:depth]) or self._files.read(location[:depth]) is not None:
                raise FileError(f"The path {ROOT}/{'/'.join(location[:depth])} is not a directory.")


def _parse(path: str) -> Location:
    """The parts of a path below the directory; raises FileError for one that leads out of it."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise FileError(f"Path must start with {ROOT}, got: {path[:_MAX_QUOTED]}")
    if any(character in _FORBIDDEN for character in path):
        raise FileError("A path must not contain control characters or backslashes.")
    parts: list[str] = []
    for part in path[len(ROOT) :].split("/"):
        if part == "..":
            if not parts:
                raise FileError(f"Path {path[:_MAX_QUOTED]} would escape {ROOT} directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _lines_with(text: str, wanted: str) -> list[int]:
    """The numbers of the lines in which a text begins; overlapping occurrences count."""
    found, start = [], text.find(wanted) if wanted else -1
    line, counted = 1, 0
    while start != -1:
        line += text.count("\n", counted, start)
        counted = start
        found.append(line)
        start = text.find(wanted, start + 1)
    return found


def _number(lines: list[str], first: int, last: int) -> list[str]:
    shown = lines[first - 1 : max(last, 0)]
    return [f"{str(number).rjust(_LINE_NUMBER_WIDTH)}\t{line}" for number, line in enumerate(shown, first)]


def _format_size(count: int) -> str:
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**unit
    return f"{int(size) if size == int(size) else f'{size:.1f}'}{'BKMG'[unit]}"


def _describe(name: str) -> str:
    return {"insert_line": "a whole number", "view_range": "two whole numbers"}.get(name, "text")


class MemoryFile(NamedTuple):
    """A file as it may be shown, and its size in bytes."""

    location: Location
    text: str

    @property
    def size(self) -> int:
        return len(self.text.encode("utf-8", "surrogatepass"))


class MemoryFiles:
    """Reads and writes the files of one user in a conversation."""

    def __init__(self, memory: "Memory", session_id: str, heard: Callable[[], Sequence[str]]) -> None:
        self._memory = memory
        self._session_id = session_id
        self._heard = heard

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
            present = [entry.text for entry in entries]
            operations = _operations(present, wanted)
            if not operations:
                return ""
            changed = [entry for entry in (*present, *wanted) if (entry in present) != (entry in wanted)]
            outcome = store.apply(target, operations, self._origin_of(changed))
        except StorageError as error:
            raise FileError(str(error)) from error
        if isinstance(outcome, MemoryRefusal) and outcome.reason == "over_budget":
            # The words of the `memory` tool name its own actions.
            raise FileError(
                f"{file_name(target)} would have {size(wanted):,} characters; {store.settings.limit(target):,} are "
                "allowed. Nothing was written. Shorten it, or put details into another file."
            )
        if isinstance(outcome, MemoryRefusal):
            raise FileError(outcome.message)
        return outcome.message if isinstance(outcome, AwaitsApproval) else ""

    def _origin_of(self, texts: Sequence[str]) -> Origin:
        said = [*recorded_words(self._memory, self._session_id), *self._heard()]
        return Origin("agent", self._session_id, sources=() if words_support(said, texts) else (_SOURCE,))

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
    # An entry that moves is removed before it is added: adding what is there already changes nothing.
    return sorted(operations, key=lambda each: not isinstance(each, Remove))


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
