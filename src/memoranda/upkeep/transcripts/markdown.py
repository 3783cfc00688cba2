"""Writes conversations as Markdown: readable as text, and the same in every program that renders it.

What was said is quoted, so that a heading or a list in it stays inside its message. Tool calls and their output are
code. HTML and images in the text are escaped: a program that renders the file loads and runs nothing from it.
"""

import re
from collections.abc import Iterable, Iterator

from memoranda.upkeep.transcripts.conversation import Conversation, ShownMessage, show_time, without_controls

# Only at the beginning of a line: what an indented fence means depends on the markup before it.
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#.-]{0,30})[ \t]*$")
_FENCE_MARK = re.compile(r"`{3,}|~{3,}")
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_BACKTICKS = re.compile(r"`+")


def render_markdown(conversations: Iterable[Conversation]) -> Iterator[str]:
    """One document with all conversations, in parts."""
    separator = ""
    for conversation in conversations:
        yield separator + _head(conversation)
        for message in conversation.messages():
            yield _message(message)
        separator = "\n---\n\n"


def _head(conversation: Conversation) -> str:
    lines = [f"# {_escape(conversation.title)}", ""]
    lines += [f"- {name}: {_code(value)}" for name, value in conversation.facts.items()]
    return "\n".join(lines) + "\n"


def _message(message: ShownMessage) -> str:
    damaged = " · damaged: it does not match its checksum" if message.is_damaged else ""
    facts = f"{show_time(message.timestamp)} · #{message.number}{damaged}"
    lines = ["", f"## {_escape(message.speaker)}", "", f"*{facts}*", ""]
    if message.text:
        lines += _code_block(message.text) if message.role == "tool" else _quote(message.text)
    for name, arguments in message.calls:
        lines += ["", f"Calls {_code(name)}:", "", *_code_block(arguments)]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> list[str]:
    """The lines of a quotation. Code gets a fence that no line of the text ends, and nothing else is a fence."""
    text = without_controls(text)
    lines, opening = [], ""
    fence = _fence_around(text)
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if opening:
            closing = line.strip(" \t")
            is_end = closing.startswith(opening) and not closing.strip(opening[0])
            lines.append(f"> {fence}" if is_end else f"> {line}")
            opening = "" if is_end else opening
        elif found:
            opening = found[1]
            lines.append(f"> {fence}{found[2] or ''}")
        else:
            lines.append(f"> {_escape_active(line)}".rstrip(" "))
    return [*lines, f"> {fence}"] if opening else lines


def _escape_active(line: str) -> str:
    """A line without HTML, images and fences; as entities, because the text may have a backslash before them."""
    line = _HTML.sub("&lt;", line).replace("![", "!&#91;")
    return _FENCE_MARK.sub(lambda run: f"&#{ord(run[0][0])};" * len(run[0]), line)


def _fence_around(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(3, longest + 1)


def _code_block(text: str) -> list[str]:
    text = without_controls(text)
    fence = _fence_around(text)
    return [f"{fence}text", *text.split("\n"), fence]


def _code(text: str) -> str:
    line = " ".join(without_controls(text).split())
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    marks = "`" * (longest + 1)
    return f"{marks} {line} {marks}" if longest else f"`{line}`"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(without_controls(text).split()))
