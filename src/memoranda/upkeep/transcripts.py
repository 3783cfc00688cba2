"""Conversations as documents that a person reads without Memoranda: Markdown and HTML.

The HTML is one file that needs nothing else: no script, no network, no other file. What was said is rendered Markdown,
all text is escaped, and the page forbids itself everything but its own style sheet, which is named by its hash. So a
text that contains HTML is shown as it was written, and does nothing.

The Markdown is readable as text, and the same in every program that renders it. What was said is quoted, so that a
heading or a list in it stays inside its message. Tool calls and their output are code. HTML and images in the text are
escaped: a program that renders the file loads and runs nothing from it.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.memory.record.message_rows import DAMAGED, text_of
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.markdown_html import render_markdown as markdown_to_html
from memoranda.support.projects import project_name


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message: who said it, when, its text, and its tool calls as (name, arguments)."""

    number: int
    role: str
    tool: str
    timestamp: float | None
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    is_damaged: bool = False

    @property
    def speaker(self) -> str:
        return f"{self.role} {self.tool}".strip()

    @property
    def facts(self) -> str:
        damaged = " · damaged: it does not match its checksum" if self.is_damaged else ""
        return f"{show_time(self.timestamp)} · #{self.number}{damaged}"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chain of sessions; messages are read when they are asked for, so that no conversation must fit into memory."""

    db: SessionDB
    members: tuple[str, ...]
    first: dict[str, Any]
    last: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.last["id"])

    @property
    def title(self) -> str:
        return str(self.last["title"] or self.first["title"] or self.id)

    @property
    def facts(self) -> dict[str, str]:
        """What is known about the conversation, by name, without what is unknown."""
        found = {
            "id": self.id,
            "source": self.first["source"],
            "model": self.last["model"],
            "project": project_name(self.last["project"]),
            "started": show_time(self.first["started_at"]),
            "ended": show_time(self.last["ended_at"]),
            "resume": resume_command(self.last),
        }
        return {name: str(value) for name, value in found.items() if value}

    def messages(self) -> Iterator[ShownMessage]:
        """What was said, in order, without copies and summaries that compression wrote."""
        for session_id in self.members:
            for message in self.db.messages.iter_messages(session_id):
                if message["copy_of"] is None and not message["is_summary"]:
                    yield _show_message(message)


def read_conversations(db: SessionDB, session_ids: Sequence[str]) -> Iterator[Conversation]:
    """The conversations to which sessions belong, each once, in the order of the sessions."""
    seen: set[str] = set()
    for session_id in session_ids:
        if session_id in seen:
            continue
        members = tuple(db.get_compression_lineage(session_id)) or (session_id,)
        seen.update(members)
        first, last = db.get_session(members[0]), db.get_session(members[-1])
        # Another process may have deleted it since it was listed.
        if first is not None and last is not None:
            yield Conversation(db, members, first, last)


def show_time(seconds: float | None) -> str:
    """A timestamp in the local time zone with its offset; "" if it is unknown or out of range."""
    if seconds is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S %z}"
    except (ValueError, OverflowError, OSError):
        return ""


def without_controls(text: str) -> str:
    """A text without characters that a document must not contain: controls but tab and newline, and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char in "\n\t" or not _is_control(char) else "\ufffd" for char in text)


def _is_control(char: str) -> bool:
    code = ord(char)
    return code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE


def _show_message(message: dict[str, Any]) -> ShownMessage:
    calls = message["tool_calls"]
    listed = calls if isinstance(calls, list) else [calls] if calls else []
    return ShownMessage(
        message["id"],
        str(message["role"]),
        str(message["tool_name"] or ""),
        message["timestamp"],
        text_of(message["content"]),
        tuple(map(_show_call, listed)),
        bool(message.get(DAMAGED)),
    )


def _show_call(call: Any) -> tuple[str, str]:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "tool", call if isinstance(call, str) else json.dumps(call, ensure_ascii=False)
    arguments = function.get("arguments", function.get("input", ""))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=2)
    return str(function.get("name") or "tool"), text


_STYLE = """
:root { color-scheme: light dark; --edge: #8885; --soft: #8881; --dim: #666; --user: #0a6cce; }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa; --user: #6ab7ff; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 1rem; }
header { border-bottom: 1px solid var(--edge); margin-bottom: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; color: var(--dim); font-size: .9rem; }
dd { margin: 0; overflow-wrap: anywhere; }
article { margin: 0 0 1rem; padding: .1rem 1rem .6rem; border-left: 3px solid var(--edge); }
article.user { border-color: var(--user); background: var(--soft); }
h2 { font-size: 1rem; margin: .5rem 0; }
h2 small { font-weight: normal; color: var(--dim); }
.text, pre { overflow-wrap: anywhere; margin: 0 0 .5rem; }
pre, .text p, .text li { white-space: pre-wrap; }
.text p { margin: 0 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
td, th { border: 1px solid var(--edge); padding: .1rem .5rem; }
blockquote { margin: 0 0 .5rem; padding-left: 1rem; border-left: 2px solid var(--edge); }
pre { font: .85rem/1.4 ui-monospace, monospace; background: var(--soft); padding: .5rem; }
details { margin-top: .5rem; }
summary { cursor: pointer; color: var(--dim); }
section + section { border-top: 3px double var(--edge); margin-top: 3rem; }
@media print { article { break-inside: avoid; } }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
# A longer output of a tool is folded.
_MAX_OPEN_CHARS = 400


def render_html(conversations: Iterable[Conversation], title: str = "Conversations") -> Iterator[str]:
    """One document with all conversations, in parts; the title of a single one is that of the document."""
    listed = list(conversations)
    name = listed[0].title if len(listed) == 1 else title
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_html_escape(name)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
    )
    if len(listed) > 1:
        yield _contents(listed, title)
    for number, conversation in enumerate(listed, start=1):
        yield f'<section id="c{number}">\n{_html_head(conversation)}'
        for message in conversation.messages():
            yield _html_message(message)
        yield "</section>\n"
    yield "</main>\n</body>\n</html>\n"


def _contents(conversations: Iterable[Conversation], title: str) -> str:
    items = (
        f'<li><a href="#c{number}"><bdi>{_html_escape(conversation.title)}</bdi></a> '
        f"<small>{_html_escape(show_time(conversation.first['started_at'])[:10])}</small></li>\n"
        for number, conversation in enumerate(conversations, start=1)
    )
    return f"<nav>\n<h1>{_html_escape(title)}</h1>\n<ol>\n{''.join(items)}</ol>\n</nav>\n"


def _html_head(conversation: Conversation) -> str:
    facts = "".join(
        f"<dt>{_html_escape(name)}</dt><dd><bdi>{_html_escape(value)}</bdi></dd>\n"
        for name, value in conversation.facts.items()
    )
    return f"<header>\n<h1><bdi>{_html_escape(conversation.title)}</bdi></h1>\n<dl>\n{facts}</dl>\n</header>\n"


def _html_message(message: ShownMessage) -> str:
    kind = message.role if message.role in ("user", "assistant", "tool", "system") else "other"
    parts = [
        f'<article class="{kind}" id="m{message.number}">\n'
        f"<h2><bdi>{_html_escape(message.speaker)}</bdi> <small>{_html_escape(message.facts)}</small></h2>\n"
    ]
    if message.text and message.role == "tool":
        parts.append(_folded("output", message.text))
    elif message.text:
        parts.append(f'<div class="text" dir="auto">{markdown_to_html(without_controls(message.text))}</div>\n')
    parts += [_folded(f"calls {name}", arguments) for name, arguments in message.calls]
    return "".join([*parts, "</article>\n"])


def _folded(name: str, text: str) -> str:
    opened = " open" if len(text) <= _MAX_OPEN_CHARS else ""
    return (
        f"<details{opened}><summary><bdi>{_html_escape(name)}</bdi> ({len(text):,} characters)</summary>"
        f'<pre dir="auto">{_html_escape(text)}</pre></details>\n'
    )


def _html_escape(text: str) -> str:
    return escape(without_controls(text), quote=True)


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
    lines = ["", f"## {_escape(message.speaker)}", "", f"*{message.facts}*", ""]
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
