"""Renders the block of a system prompt that shows one memory file, under a header with its usage."""

from collections.abc import Sequence

from memoranda.curated.entry_format import ENTRY_DELIMITER
from memoranda.curated.entry_scanner import ScannedEntry
from memoranda.curated.settings import Target

_BAR = "═" * 46
_LABELS: dict[Target, str] = {
    "memory": "MEMORY (your personal notes)",
    "user": "USER PROFILE (who the user is)",
}


def usage(used: int, limit: int) -> str:
    """How full a file is, for people and models: `67% — 1,474/2,200 chars`."""
    percent = min(100, 100 * used // limit) if limit > 0 else 0
    return f"{percent}% — {used:,}/{limit:,} chars"


def render(target: Target, entries: Sequence[ScannedEntry], used: int, limit: int) -> str | None:
    """The block for these entries, or None when there are none."""
    if not entries:
        return None
    return _block(target, usage(used, limit), ENTRY_DELIMITER.join(entry.visible_text for entry in entries))


def render_problem(target: Target, file_name: str, problem: str) -> str:
    """The block for a file that could not be read: the model must not believe that it is empty."""
    return _block(target, "unavailable", f"[{file_name} could not be read: {problem}. It was left as it is.]")


def _block(target: Target, state: str, body: str) -> str:
    return f"{_BAR}\n{_LABELS[target]} [{state}]\n{_BAR}\n{body}"
