"""Renders the block of a system prompt that shows one memory file, under a header with its usage."""

from collections.abc import Mapping, Sequence

from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER
from memoranda.memory.curated.settings import Target, project_in
from memoranda.support.lazy_pattern import compile_later
from memoranda.support.projects import project_name

_BAR = "═" * 46
_LABELS: dict[Target, str] = {
    "memory": "MEMORY (your personal notes)",
    "user": "USER PROFILE (who the user is)",
}
# A name of a tool is text from outside.
_NO_NAME = compile_later(r"[^\w .:/-]")
_MAX_NAME_CHARS = 40
_MAX_SOURCES = 4
_ORIGIN = compile_later(r"\s?\[origin: [^\[\]\n]{1,200}; not said by the user\]\s*$")


def usage(used: int, limit: int) -> str:
    """How full a file is, for people and models: `67% — 1,474/2,200 chars`."""
    percent = min(100, 100 * used // limit) if limit > 0 else 0
    return f"{percent}% — {used:,}/{limit:,} chars"


def render(
    target: Target,
    entries: Sequence[tuple[ScannedEntry, str]],
    used: int,
    limit: int,
    sources: Mapping[str, Sequence[str]],
) -> str | None:
    """The block for these entries with what is shown of each, or None when there are none.

    `sources` are those of `MemoryJournal.sources`.
    """
    if not entries:
        return None
    shown = [text + describe_sources(sources.get(entry.handle, ())) for entry, text in entries]
    return _block(target, usage(used, limit), ENTRY_DELIMITER.join(shown))


def entries_in_block(block: str) -> tuple[str, ...]:
    """The entries as a block that `render` returned shows them, without their origin."""
    body = block.rpartition(f"{_BAR}\n")[2]
    return tuple(entry for text in body.split(ENTRY_DELIMITER) if (entry := remove_origin(text)))


def remove_origin(text: str) -> str:
    """A text without the origin that a prompt shows after an entry: a model may copy it."""
    return _ORIGIN.sub("", text)


def describe_sources(sources: Sequence[str]) -> str:
    """What is said after a text that untrusted text may have suggested; nothing after the user's own."""
    names = ", ".join(_NO_NAME.sub("", name)[:_MAX_NAME_CHARS] for name in sources[:_MAX_SOURCES])
    return f" [origin: {names}; not said by the user]" if names else ""


def render_problem(target: Target, file_name: str, problem: str) -> str:
    """The block for a file that could not be read: the model must not believe that it is empty."""
    return _block(target, "unavailable", f"[{file_name} could not be read: {problem}. It was left as it is.]")


def _block(target: Target, state: str, body: str) -> str:
    return f"{_BAR}\n{_label(target)} [{state}]\n{_BAR}\n{body}"


def _label(target: Target) -> str:
    name = _NO_NAME.sub("", project_name(project_in(target)))[-_MAX_NAME_CHARS:]
    return _LABELS.get(target) or f"PROJECT MEMORY (what holds in {name} and nowhere else)"
