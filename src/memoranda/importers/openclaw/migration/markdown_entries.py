"""Makes entries of a Markdown file: one of each list item, paragraph, table and block of code, after its headings.

Nothing is dropped in silence. What is no fact (comments, rules between sections, fields that nobody filled in) is
counted by what it is.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from memoranda.support.canonical_text import canonical
from memoranda.support.front_matter import split_front_matter

_HEADING = re.compile(r"[ ]{0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"[ ]{0,3}(=+|-+)[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE = re.compile(r"[ ]{0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_TABLE = re.compile(r"[ \t]*\|.*\|[ \t]*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# OpenClaw says in a comment above a directive whether it still holds.
_STATUS = re.compile(r"\bstatus:\s*(active|superseded)\b")
_ACTIVE, _SUPERSEDED = "\0active", "\0superseded"
# Front matter: keys with values, and what belongs to a key below it.
_SETTINGS = re.compile(r"(?:[A-Za-z_][\w-]*[ \t]*:.*\n(?:[ \t]+\S.*\n|- .*\n|#.*\n|[ \t]*\n)*)+")
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]*")
# "Name:" or "**Timezone:**" with nothing behind it, or only a hint how to fill it in.
_EMPTY_FIELD = re.compile(r"(?:\[[ xX]\] )?[*_]{0,3}[^:\n]{1,60}:[*_]{0,3}\s*(?:_\([^)]*\)_|\([^)]*\))?")
# Headings that only name the file that they stand in.
_FILE_NAME = re.compile(
    r"(?i)(?:memory|user|soul|agents|tools|identity|heartbeat)\.md\b.*|memory|user|long-term memory"
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\b.*")
# An item with items below it stays one entry as long as it is this short.
_LONGEST_WITH_ITEMS = 400


@dataclass(slots=True)
class ParsedEntries:
    """The entries of a file in their order, those that no longer hold, and how much there was besides."""

    entries: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    aside: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Heading:
    level: int
    title: str
    is_used: bool = False


@dataclass(slots=True)
class _Item:
    indent: int
    lines: list[str]
    below: list["_Item"] = field(default_factory=list)

    def text(self) -> str:
        return " ".join(line for line in self.lines if line)

    def whole(self, depth: int = 0) -> str:
        own = "  " * depth + ("- " if depth else "") + self.text()
        return "\n".join([own, *(item.whole(depth + 1) for item in self.below)])


def parse_entries(text: str, day: str = "") -> ParsedEntries:
    """The entries of a Markdown text; `day` stands before each one of a daily note."""
    parsed = ParsedEntries()
    text = canonical(text)
    parts = split_front_matter(text)
    if parts and _SETTINGS.fullmatch(parts.front_matter):
        # Anything else between two rules is text.
        parsed.aside["front matter"] += 1
        text = parts.body
    text, comments = _COMMENT.subn(_status, text)
    if comments:
        parsed.aside["comments"] += comments
    headings: list[_Heading] = []
    met: list[_Heading] = []
    into = parsed.entries
    for kind, found in _blocks(text.split("\n")):
        if kind == "heading":
            level, title = int(found[0]), found[1]
            headings = [*(each for each in headings if each.level < level), _Heading(level, title)]
            met.append(headings[-1])
            into = parsed.entries
        elif kind == "status":
            into = parsed.superseded if found[0].strip() == _SUPERSEDED else parsed.entries
        elif kind == "rule":
            parsed.aside["rules"] += 1
        else:
            for each in headings:
                each.is_used = True
            path = [each.title for each in headings if each.title and not _says_nothing(each.title, day)]
            prefix = " > ".join([day, *path] if day else path)
            for entry in _entries_of(kind, found):
                _keep(parsed, into, prefix, entry)
    if lonely := sum(not each.is_used and not _says_nothing(each.title, day) for each in met):
        parsed.aside["headings with nothing below"] += lonely
    return parsed


def _status(comment: re.Match[str]) -> str:
    found = _STATUS.search(comment[0])
    return f"\n{_SUPERSEDED if found[1] == 'superseded' else _ACTIVE}\n" if found else ""


def _says_nothing(title: str, day: str) -> bool:
    return bool(_FILE_NAME.fullmatch(title)) or (bool(day) and bool(_DATE.fullmatch(title)))


def _keep(parsed: ParsedEntries, into: list[str], prefix: str, entry: str) -> None:
    if _EMPTY_FIELD.fullmatch(entry) and "://" not in entry:
        parsed.aside["empty fields"] += 1
        return
    # A table or a block of code begins on a line of its own.
    gap = "\n" if _FENCE.match(entry) or _TABLE.match(entry.partition("\n")[0]) else " "
    whole = canonical(f"{prefix}:{gap}{entry}" if prefix else entry)
    if whole in into:
        parsed.aside["repetitions"] += 1
    elif whole:
        into.append(whole)


def _entries_of(kind: str, lines: list[str]) -> list[str]:
    if kind in ("code", "table"):
        return ["\n".join(lines)]
    if kind == "list":
        return [entry for item in _items(lines) for entry in _of_item(item)]
    return [" ".join(line.strip().removeprefix("> ").removeprefix(">") for line in lines).strip()]


def _of_item(item: _Item) -> list[str]:
    whole = item.whole()
    if not item.below or len(whole) <= _LONGEST_WITH_ITEMS:
        return [whole] if whole.strip() else []
    own = item.text()
    prefix = own.removesuffix(":")
    return [f"{prefix}: {entry}" if prefix else entry for below in item.below for entry in _of_item(below)]


def _items(lines: list[str]) -> list[_Item]:
    """The items of a list, each with those that stand further in below it."""
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
        (path[-1].below if path else top).append(item)
        path.append(item)
    return top


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """A text in its parts: headings (level, title), rules, lists, tables, code and paragraphs."""
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
    """Where a list ends: at a line that is neither an item nor belongs to one."""
    end = start + 1
    while end < len(lines):
        kind = _kind(lines[end])
        follows = kind == "text" and (lines[end - 1].strip() or lines[end][:2] == "  " or lines[end][:1] == "\t")
        inside = bool(kind) and lines[end][:2] in ("  ", "\t") and kind not in ("rule", "status", "heading")
        again = not kind and end + 1 < len(lines) and (
            _kind(lines[end + 1]) == "list" or lines[end + 1][:2] in ("  ",) or lines[end + 1][:1] == "\t"
        )  # fmt: skip
        if not (kind == "list" or follows or inside or again):
            break
        end += 1
    return end
