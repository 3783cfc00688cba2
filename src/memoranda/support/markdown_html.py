"""Markdown as HTML that is safe to show: what models write most, and nothing that loads or runs.

Every character of the text is escaped, so HTML in it is shown as it was written. An image becomes a link with its
description. Only addresses with http or https become links. Underscores stay, because names in code begin and end with
them. A line break stays a line break: the style of a paragraph is `white-space: pre-wrap`. Patterns are limited in
length, so that the time grows with the text and not faster.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape

_MAX_DEPTH = 6
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*[\w+#.-]{0,30}[^`]{0,80}$")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(\S.*)$")
_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_QUOTE = re.compile(r"[ \t]{0,3}>[ \t]?")
_RULE = re.compile(r"[ \t]{0,3}(?:-[ \t]*){3,80}$|[ \t]{0,3}(?:\*[ \t]*){3,80}$")
_DIVIDER = re.compile(r"[ \t]*\|?[ \t]*:?-{2,50}:?[ \t]*(?:\|[ \t]*:?-{1,50}:?[ \t]*){0,30}\|?[ \t]*$")
_INLINE = re.compile(
    r"(?P<ticks>`{1,3})(?!`)(?P<code>[^\n]{1,1000}?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<image>!?)\[(?P<label>[^\[\]\n]{1,300})\]\((?P<target>[^\s()<>]{1,1000}(?:\([^\s()<>]{0,200}\))?)"
    r"(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
    r"|\*\*(?=[^\s*])(?P<bold>(?:[^*\n]|\*(?!\*)){1,500}?)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<italic>[^*\n]{1,500}?)(?<=\S)\*(?![\w*])"
    r"|~~(?=\S)(?P<struck>[^~\n]{1,500})(?<=\S)~~"
    r"|(?P<address>https?://[^\s<>\"'`()\[\]]{1,1000})"
)
_TRAILING = ".,;:!?*"
Block = tuple[str, int]
"""The HTML of a block, and the line after it."""


def render_markdown(text: str, depth: int = 0) -> str:
    """The HTML of a text from which control characters were removed."""
    return "".join(_blocks(text.split("\n"), depth))


def _blocks(lines: Sequence[str], depth: int) -> Iterator[str]:
    place = 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        found = _code(lines, place) or _heading(lines, place) or _table(lines, place)
        if found is None and depth < _MAX_DEPTH:
            found = _quote(lines, place, depth) or _list(lines, place, depth)
        shown, place = found or _paragraph(lines, place, depth)
        yield shown


def _code(lines: Sequence[str], place: int) -> Block | None:
    """A block between fences; one without an end ends with the text."""
    opened = _FENCE.match(lines[place])
    if opened is None:
        return None
    mark, end = opened[1], place + 1
    while end < len(lines):
        line = lines[end].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            break
        end += 1
    body = "\n".join(lines[place + 1 : end])
    return f"<pre><code>{escape(body)}</code></pre>", end + 1


def _heading(lines: Sequence[str], place: int) -> Block | None:
    """A heading within a message is a line of its own, and none of the headings of the page."""
    if _RULE.match(lines[place]):
        return "<hr>", place + 1
    found = _HEADING.match(lines[place])
    return None if found is None else (f"<p><strong>{_inline(found[1])}</strong></p>", place + 1)


def _table(lines: Sequence[str], place: int) -> Block | None:
    if not _starts_table(lines, place):
        return None
    end = place + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    head, *rows = [_cells(line) for line in (lines[place], *lines[place + 2 : end])]
    titles = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>', end


def _starts_table(lines: Sequence[str], place: int) -> bool:
    return "|" in lines[place] and place + 1 < len(lines) and _DIVIDER.match(lines[place + 1]) is not None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _quote(lines: Sequence[str], place: int, depth: int) -> Block | None:
    end = place
    while end < len(lines) and _QUOTE.match(lines[end]):
        end += 1
    if end == place:
        return None
    body = "\n".join(_QUOTE.sub("", line, count=1) for line in lines[place:end])
    return f"<blockquote>{render_markdown(body, depth + 1)}</blockquote>", end


def _list(lines: Sequence[str], place: int, depth: int) -> Block | None:
    """Items of one kind and indentation; what is indented further belongs to its item."""
    first = _ITEM.match(lines[place])
    if first is None:
        return None
    is_numbered, items = first[2][0].isdigit(), []
    while place < len(lines):
        found = _ITEM.match(lines[place])
        if found is None or found[2][0].isdigit() != is_numbered or len(found[1]) != len(first[1]):
            break
        end = _end_of_item(lines, place + 1, len(found[1]))
        width = found.end()
        body = [lines[place][width:], *(_without_indent(line, width) for line in lines[place + 1 : end])]
        items.append(f"<li>{_item_html(body, depth + 1)}</li>")
        place = end
    start = f' start="{int(first[2][:-1])}"' if is_numbered and first[2][:-1] != "1" else ""
    name = "ol" if is_numbered else "ul"
    return f"<{name}{start}>{''.join(items)}</{name}>", place


def _end_of_item(lines: Sequence[str], place: int, indent: int) -> int:
    while place < len(lines):
        line = lines[place]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return place
        if not line.strip():
            following = place + 1
            while following < len(lines) and not lines[following].strip():
                following += 1
            if following == len(lines):
                return following
            indented = lines[following]
            if len(indented) - len(indented.lstrip()) <= indent:
                # The next item of a list whose items have blank lines between them.
                return following if _ITEM.match(indented) else place
            place = following
        place += 1
    return place


def _without_indent(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip())) :]


def _item_html(lines: Sequence[str], depth: int) -> str:
    blocks = list(_blocks(lines, depth))
    if blocks and blocks[0].startswith("<p>"):
        blocks[0] = blocks[0].removeprefix("<p>").removesuffix("</p>")
    return "".join(blocks)


def _paragraph(lines: Sequence[str], place: int, depth: int) -> Block:
    end = place + 1
    while end < len(lines) and lines[end].strip() and not _begins_block(lines, end, depth):
        end += 1
    return f"<p>{_inline(chr(10).join(lines[place:end]))}</p>", end


def _begins_block(lines: Sequence[str], place: int, depth: int) -> bool:
    line = lines[place]
    if any(pattern.match(line) for pattern in (_FENCE, _HEADING, _RULE)) or _starts_table(lines, place):
        return True
    return depth < _MAX_DEPTH and (_QUOTE.match(line) is not None or _ITEM.match(line) is not None)


def _inline(text: str, nested: bool = False) -> str:
    parts, place = [], 0
    for found in _INLINE.finditer(text):
        parts += [escape(text[place : found.start()]), _inline_html(found, nested)]
        place = found.end()
    return "".join([*parts, escape(text[place:])])


def _inline_html(found: re.Match[str], nested: bool) -> str:
    if found["code"]:
        return f"<code>{escape(found['code'])}</code>"
    if found["target"]:
        return _link(found["label"], found["target"], "image: " if found["image"] else "")
    if found["address"]:
        address = found["address"].rstrip(_TRAILING)
        return _link(address, address) + escape(found["address"][len(address) :])
    for group, element in (("bold", "strong"), ("italic", "em"), ("struck", "del")):
        if found[group]:
            inner = escape(found[group]) if nested else _inline(found[group], nested=True)
            return f"<{element}>{inner}</{element}>"
    return escape(found[0])


def _link(label: str, target: str, before: str = "") -> str:
    shown = f"{before}{escape(label.replace('`', ''))}"
    if not target.startswith(("https://", "http://")):
        # A path in a project, which leads nowhere from here.
        return shown if label.strip("`") == target else f"{shown} <code>{escape(target)}</code>"
    # The title says where it leads, whatever its text says.
    return f'<a href="{escape(target)}" title="{escape(target)}" rel="noopener noreferrer nofollow">{shown}</a>'
