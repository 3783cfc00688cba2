"""Splits a Markdown file into entries: one for each list item, paragraph, table and code block, with its headings.

Nothing is dropped silently: comments, rules between sections, empty fields and other skipped blocks are counted.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from memoranda.support.canonical_text import canonical
from memoranda.support.text_file import split_front_matter

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
