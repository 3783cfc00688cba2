"""Writes conversations as one HTML file that needs nothing else: no script, no network, no other file.

All text is escaped, and the page forbids itself everything but its own style sheet, which is named by its hash. So a
text that contains HTML is shown as it was written, and does nothing.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from html import escape

from memoranda.upkeep.transcripts.conversation import Conversation, ShownMessage, show_time, without_controls

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
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
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
        f"<title>{_escape(name)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
    )
    if len(listed) > 1:
        yield _contents(listed, title)
    for number, conversation in enumerate(listed, start=1):
        yield f'<section id="c{number}">\n{_head(conversation)}'
        for message in conversation.messages():
            yield _message(message)
        yield "</section>\n"
    yield "</main>\n</body>\n</html>\n"


def _contents(conversations: Iterable[Conversation], title: str) -> str:
    items = (
        f'<li><a href="#c{number}"><bdi>{_escape(conversation.title)}</bdi></a> '
        f"<small>{_escape(show_time(conversation.first['started_at'])[:10])}</small></li>\n"
        for number, conversation in enumerate(conversations, start=1)
    )
    return f"<nav>\n<h1>{_escape(title)}</h1>\n<ol>\n{''.join(items)}</ol>\n</nav>\n"


def _head(conversation: Conversation) -> str:
    facts = "".join(
        f"<dt>{_escape(name)}</dt><dd><bdi>{_escape(value)}</bdi></dd>\n" for name, value in conversation.facts.items()
    )
    return f"<header>\n<h1><bdi>{_escape(conversation.title)}</bdi></h1>\n<dl>\n{facts}</dl>\n</header>\n"


def _message(message: ShownMessage) -> str:
    kind = message.role if message.role in ("user", "assistant", "tool", "system") else "other"
    damaged = " · damaged: it does not match its checksum" if message.is_damaged else ""
    facts = f"{show_time(message.timestamp)} · #{message.number}{damaged}"
    parts = [
        f'<article class="{kind}" id="m{message.number}">\n'
        f"<h2><bdi>{_escape(message.speaker)}</bdi> <small>{_escape(facts)}</small></h2>\n"
    ]
    if message.text and message.role == "tool":
        parts.append(_folded("output", message.text))
    elif message.text:
        parts.append(f'<div class="text" dir="auto">{_escape(message.text)}</div>\n')
    parts += [_folded(f"calls {name}", arguments) for name, arguments in message.calls]
    return "".join([*parts, "</article>\n"])


def _folded(name: str, text: str) -> str:
    opened = " open" if len(text) <= _MAX_OPEN_CHARS else ""
    return (
        f"<details{opened}><summary><bdi>{_escape(name)}</bdi> ({len(text):,} characters)</summary>"
        f'<pre dir="auto">{_escape(text)}</pre></details>\n'
    )


def _escape(text: str) -> str:
    return escape(without_controls(text), quote=True)
