"""Migrates the memories of a workspace (MEMORY.md, USER.md and the daily notes) to entries of curated memory.

A Markdown file has one entry for each list item, paragraph, table and code block, with its headings. Nothing is dropped
silently: comments, rules between sections, empty fields and other skipped blocks are counted. A plan checks every entry
as the write itself does, so it says exactly what will happen. Entries that do not fit or that the scanner rejects are
listed and written to a file, never lost.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.importers.migration import NO_ROOM, entry_refusal
from memoranda.importers.openclaw.credentials import MigrationRedactor
from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.steps import (
    AddEntries,
    MigrationHistory,
    MigrationStep,
    OmittedEntry,
    Status,
)
from memoranda.importers.openclaw.migration.templates import is_template_entry
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.memory_file import size
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.canonical_text import canonical
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end
from memoranda.support.text_file import TextFile, read_text, split_front_matter

_HEADING = re.compile(r"[ ]{0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"[ ]{0,3}(=+|-+)[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE = re.compile(r"[ ]{0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_TABLE = re.compile(r"[ \t]*\|.*\|[ \t]*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# OpenClaw says in a comment above a directive whether it is still valid.
_STATUS = re.compile(r"\bstatus:\s*(active|superseded)\b")
_ACTIVE, _SUPERSEDED = "\0active", "\0superseded"
# Front matter: keys with values, and the lines that belong to a key.
_SETTINGS = re.compile(r"(?:[A-Za-z_][\w-]*[ \t]*:.*\n(?:[ \t]+\S.*\n|- .*\n|#.*\n|[ \t]*\n)*)+")
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]*")
# "Name:" or "**Timezone:**" without a value, or only with a hint about how to fill it in.
_EMPTY_FIELD = re.compile(r"(?:\[[ xX]\] )?[*_]{0,3}[^:\n]{1,60}:[*_]{0,3}\s*(?:_\([^)]*\)_|\([^)]*\))?")
# Headings that only name their file.
_FILE_NAME = re.compile(
    r"(?i)(?:memory|user|soul|agents|tools|identity|heartbeat)\.md\b.*|memory|user|long-term memory"
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\b.*")
# An item with nested items stays one entry up to this length.
_MAX_NESTED_CHARS = 400
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_FILE_BYTES = 5_000_000
_MAX_PREVIEWS = 5


@dataclass(slots=True)
class ParsedEntries:
    """The entries of a file in order, those that are superseded, and how many blocks were skipped, by kind."""

    entries: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Heading:
    level: int
    title: str
    is_used: bool = False


@dataclass(slots=True)
class _Item:
    indent: int
    lines: list[str]
    nested: list["_Item"] = field(default_factory=list)

    def text(self) -> str:
        return " ".join(line for line in self.lines if line)

    def whole(self, depth: int = 0) -> str:
        own = "  " * depth + ("- " if depth else "") + self.text()
        return "\n".join([own, *(item.whole(depth + 1) for item in self.nested)])


def parse_entries(text: str, day: str = "") -> ParsedEntries:
    """Return the entries of a Markdown text; `day` precedes each entry of a daily note."""
    collector = _EntryCollector(day)
    text = canonical(text)
    parts = split_front_matter(text)
    if parts and _SETTINGS.fullmatch(parts.front_matter):
        # Anything else between two rules is text.
        collector.parsed.skipped["front matter"] += 1
        text = parts.body
    text, comments = _COMMENT.subn(_status, text)
    if comments:
        collector.parsed.skipped["comments"] += comments
    for kind, lines in _blocks(text.split("\n")):
        collector.add_block(kind, lines)
    return collector.finish()


class _EntryCollector:
    """Collects the entries of a text block by block, under the headings that are open."""

    def __init__(self, day: str) -> None:
        self.parsed = ParsedEntries()
        self._day = day
        self._open_headings: list[_Heading] = []
        self._all_headings: list[_Heading] = []
        self._entries = self.parsed.entries

    def add_block(self, kind: str, lines: list[str]) -> None:
        if kind == "heading":
            self._open_heading(int(lines[0]), lines[1])
        elif kind == "status":
            is_superseded = lines[0].strip() == _SUPERSEDED
            self._entries = self.parsed.superseded if is_superseded else self.parsed.entries
        elif kind == "rule":
            self.parsed.skipped["rules"] += 1
        else:
            prefix = self._heading_prefix()
            for entry in _entries_of(kind, lines):
                self._add_entry(prefix, entry)

    def finish(self) -> ParsedEntries:
        unused = [heading for heading in self._all_headings if not heading.is_used]
        if without_content := sum(not self._is_redundant(heading.title) for heading in unused):
            self.parsed.skipped["headings without content"] += without_content
        return self.parsed

    def _open_heading(self, level: int, title: str) -> None:
        outer = [heading for heading in self._open_headings if heading.level < level]
        self._open_headings = [*outer, _Heading(level, title)]
        self._all_headings.append(self._open_headings[-1])
        # A superseded status ends with its section.
        self._entries = self.parsed.entries

    def _heading_prefix(self) -> str:
        for heading in self._open_headings:
            heading.is_used = True
        titles = [heading.title for heading in self._open_headings if heading.title]
        titles = [title for title in titles if not self._is_redundant(title)]
        return " > ".join([self._day, *titles] if self._day else titles)

    def _is_redundant(self, title: str) -> bool:
        """Whether a heading only names its file, or the day of the note."""
        return bool(_FILE_NAME.fullmatch(title)) or (bool(self._day) and bool(_DATE.fullmatch(title)))

    def _add_entry(self, prefix: str, entry: str) -> None:
        if _EMPTY_FIELD.fullmatch(entry) and "://" not in entry:
            self.parsed.skipped["empty fields"] += 1
            return
        # A table or a code block starts on a new line.
        gap = "\n" if _FENCE.match(entry) or _TABLE.match(entry.partition("\n")[0]) else " "
        whole = canonical(f"{prefix}:{gap}{entry}" if prefix else entry)
        if whole in self._entries:
            self.parsed.skipped["repetitions"] += 1
        elif whole:
            self._entries.append(whole)


def _status(comment: re.Match[str]) -> str:
    found = _STATUS.search(comment[0])
    return f"\n{_SUPERSEDED if found[1] == 'superseded' else _ACTIVE}\n" if found else ""


def _entries_of(kind: str, lines: list[str]) -> list[str]:
    if kind in ("code", "table"):
        return ["\n".join(lines)]
    if kind == "list":
        return [entry for item in _items(lines) for entry in _entries_of_item(item)]
    return [" ".join(line.strip().removeprefix("> ").removeprefix(">") for line in lines).strip()]


def _entries_of_item(item: _Item) -> list[str]:
    whole = item.whole()
    if not item.nested or len(whole) <= _MAX_NESTED_CHARS:
        return [whole] if whole.strip() else []
    own = item.text()
    prefix = own.removesuffix(":")
    return [f"{prefix}: {entry}" if prefix else entry for below in item.nested for entry in _entries_of_item(below)]


def _items(lines: list[str]) -> list[_Item]:
    """Return the items of a list, with the items that are nested in each."""
    top: list[_Item] = []
    path: list[_Item] = []
    for line in lines:
        found = _ITEM.match(line)
        if found is None:
            if path and line.strip():
                path[-1].lines.append(line.strip())
            continue
        indent = len(found[1].expandtabs(4))
        item = _Item(indent, [_CHECKBOX.sub(lambda box: box[0].strip() + " ", (found[2] or "").strip(), count=1)])
        while path and path[-1].indent >= indent:
            path.pop()
        (path[-1].nested if path else top).append(item)
        path.append(item)
    return top


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the blocks of a text: headings (level, title), rules, lists, tables, code and paragraphs."""
    number = 0
    while number < len(lines):
        line = lines[number]
        kind = _kind(line)
        end = number + 1
        if kind == "heading":
            found = _HEADING.match(line)
            assert found
            yield kind, [str(len(found[1])), (found[2] or "").strip(" *_")]
        elif kind in ("rule", "status"):
            yield kind, [line]
        elif kind == "code":
            end = _end_of_code(lines, number)
            yield kind, lines[number:end]
        elif kind == "list":
            end = _end_of_list(lines, number)
            yield kind, lines[number:end]
        elif kind:
            while end < len(lines) and _kind(lines[end]) == kind:
                end += 1
            if kind == "text" and end < len(lines) and end == number + 1 and _UNDERLINE.match(lines[end]):
                yield "heading", ["1" if "=" in lines[end] else "2", line.strip()]
                end += 1
            else:
                yield kind, lines[number:end]
        number = end


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    if line.strip() in (_ACTIVE, _SUPERSEDED):
        return "status"
    for kind, pattern in (("code", _FENCE), ("heading", _HEADING), ("rule", _RULE), ("list", _ITEM), ("table", _TABLE)):
        if pattern.match(line):
            return kind
    return "text"


def _end_of_code(lines: list[str], start: int) -> int:
    fence = _FENCE.match(lines[start])
    assert fence
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if line.startswith(fence[1]) and not line.strip(fence[1][0]):
            return number + 1
    return len(lines)


def _end_of_list(lines: list[str], start: int) -> int:
    """Return the index of the first line that is neither an item nor belongs to one."""
    end = start + 1
    while end < len(lines):
        kind = _kind(lines[end])
        follows = kind == "text" and (lines[end - 1].strip() or lines[end][:2] == "  " or lines[end][:1] == "\t")
        inside = bool(kind) and lines[end][:2] in ("  ", "\t") and kind not in ("rule", "status", "heading")
        continues = not kind and end + 1 < len(lines) and (
            _kind(lines[end + 1]) == "list" or lines[end + 1][:2] in ("  ",) or lines[end + 1][:1] == "\t"
        )  # fmt: skip
        if not (kind == "list" or follows or inside or continues):
            break
        end += 1
    return end


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """An entry in a file of the workspace."""

    text: str
    file: Path


@dataclass(slots=True)
class GatheredEntries:
    """Everything that was found for one target; `candidates` are in the order in which they are added."""

    candidates: list[CandidateEntry]
    omitted: list[OmittedEntry]
    skipped: Counter[str]
    problems: list[str]
    files: list[Path]


def gather(installation: Installation, target: Target, redactor: MigrationRedactor) -> GatheredEntries:
    """Read the files of a target: the long-term file first, then the daily notes, the newest first."""
    gathered = GatheredEntries([], [], Counter(), [], [])
    seen: set[str] = set()
    for file, day in _memory_files(installation, target):
        text = _read(file, gathered)
        if text is None:
            continue
        gathered.files.append(file)
        parsed = parse_entries(text, day)
        gathered.skipped.update(parsed.skipped)
        gathered.omitted += [
            OmittedEntry(redactor.text(entry), "it is superseded", file) for entry in parsed.superseded
        ]
        for entry in parsed.entries:
            if is_template_entry(entry):
                gathered.skipped["lines of OpenClaw's own template"] += 1
                continue
            # As it will be stored: redacted, and in canonical form.
            clean = canonical(redactor.text(entry))
            if " ".join(clean.split()) in seen:
                gathered.skipped["repetitions"] += 1
            elif clean:
                seen.add(" ".join(clean.split()))
                gathered.candidates.append(CandidateEntry(clean, file))
    return gathered


def plan_entries(
    gathered: GatheredEntries, target: Target, store: MemoryStore, history: MigrationHistory
) -> MigrationStep | None:
    """Plan the entries of a target; None when the workspace has no file for it."""
    if not gathered.files and not gathered.problems:
        return None
    source = ", ".join(map(str, gathered.files[:3])) + (" …" if len(gathered.files) > 3 else "")
    destination = str(store.path(target))
    kind = "memory" if target == "memory" else "user-profile"
    if not store.settings.enabled(target):
        return MigrationStep(kind, source, destination, "skipped", f"{file_name(target)} is switched off here.")
    try:
        current = [entry.text for entry in store.view(target).entries]
    except StorageError as error:
        return MigrationStep(kind, source, destination, "error", str(error))
    planned_entries = _plan_candidates(gathered, target, store, history, current)
    new_omitted = [entry for entry in planned_entries.omitted if not history.was_omitted(target, entry.text)]
    work = AddEntries(target, tuple(planned_entries.added), tuple(new_omitted))
    planned = bool(planned_entries.added or new_omitted)
    details = {
        "existing_entries": len(current),
        "added_entries": len(planned_entries.added),
        "duplicate_entries": planned_entries.duplicates,
        "removed_here_since": planned_entries.removed_here,
        "left_entries": len(planned_entries.omitted),
        "without_room": sum(entry.reason == NO_ROOM for entry in planned_entries.omitted),
        "char_limit": store.settings.limit(target),
        "final_char_count": size([*current, *planned_entries.added]),
        "left_preview": [
            f"{_shorten(entry.text)} ({entry.reason})" for entry in planned_entries.omitted[:_MAX_PREVIEWS]
        ],
        "set_aside": dict(gathered.skipped),
        "source_files": [str(file) for file in gathered.files],
        "problems": gathered.problems,
    }
    status: Status = "planned" if planned else "error" if gathered.problems else "unchanged"
    reason = "; ".join(gathered.problems) or ("" if planned else "it contains nothing new")
    return MigrationStep(kind, source, destination, status, reason, details, work if planned else None)


@dataclass(slots=True)
class _PlannedEntries:
    added: list[str]
    omitted: list[OmittedEntry]
    duplicates: int = 0
    removed_here: int = 0


def _plan_candidates(
    gathered: GatheredEntries, target: Target, store: MemoryStore, history: MigrationHistory, current: Sequence[str]
) -> _PlannedEntries:
    found = _PlannedEntries([], list(gathered.omitted))
    scanner = EntryScanner(store.allowances)
    limit, entries = store.settings.limit(target), list(current)
    present = {" ".join(entry.split()) for entry in current}
    for candidate in gathered.candidates:
        if " ".join(candidate.text.split()) in present:
            found.duplicates += 1
        elif history.was_added(target, candidate.text):
            found.removed_here += 1
        elif reason := entry_refusal(target, candidate.text, entries, scanner, limit):
            found.omitted.append(OmittedEntry(candidate.text, reason, candidate.file))
        else:
            entries.append(candidate.text)
            found.added.append(candidate.text)
    return found


def _memory_files(installation: Installation, target: Target) -> Iterator[tuple[Path, str]]:
    """Yield the files of a target, each with its day ("" for the long-term file)."""
    names = ("MEMORY.md", "memory.md") if target == "memory" else ("USER.md",)
    main = next((file for name in names if (file := installation.find(name)) and file.is_file()), None)
    if main is not None:
        yield main, ""
    notes = installation.find("memory") if target == "memory" else None
    if notes is not None and notes.is_dir():
        daily = sorted((file for file in notes.glob("*.md") if file.is_file()), reverse=True)
        for file in daily:
            day = _DAY.match(file.name)
            yield file, day[0] if day else file.stem


def _read(file: Path, gathered: GatheredEntries) -> str | None:
    if file.stat().st_size > _MAX_FILE_BYTES:
        gathered.problems.append(f"{file} is too large ({file.stat().st_size:,} bytes)")
        return None
    state = read_text(file)
    if not isinstance(state, TextFile):
        gathered.problems.append(f"{file}: {getattr(state, 'problem', 'it no longer exists')}")
        return None
    return state.text


def _shorten(text: str) -> str:
    return shorten_end(" ".join(text.split()), 80)
