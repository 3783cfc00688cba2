"""The identity of the agent: SOUL.md in the home, or a default."""

import re
from dataclasses import dataclass
from pathlib import Path

from memoranda.agent.prompt.size_limits import shorten_file
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.canonical_text import BYTE_ORDER_MARK, unify_newlines
from memoranda.support.text_file import MissingFile, TextFile, read_text

FILE_NAME = "SOUL.md"
DEFAULT_IDENTITY = (
    "You are a helpful assistant with a memory. You answer plainly and to the point, say what you do not know, do "
    "what you were asked to the end, and claim nothing to be done that you have not done."
)
MAX_CHARS = 20_000
# Elsewhere "you are now" tries to give the model another identity; SOUL.md is the place that may say it.
_NEW_ROLE = re.compile(r"(?i)\b(you(?: are|'re|’re)) now\b")


@dataclass(frozen=True, slots=True)
class Identity:
    text: str
    notices: tuple[str, ...] = ()


def read_identity(home: Path) -> Identity:
    """Read SOUL.md and withhold suspicious passages; the default when nothing is left that may be shown."""
    path = home / FILE_NAME
    state = read_text(path)
    if isinstance(state, MissingFile):
        return Identity(DEFAULT_IDENTITY)
    if not isinstance(state, TextFile):
        return Identity(DEFAULT_IDENTITY, (f"{path} was left out of the prompt: {state.problem}.",))
    text = unify_newlines(state.text).removeprefix(BYTE_ORDER_MARK).strip()
    if not text:
        return Identity(DEFAULT_IDENTITY)
    withheld = withhold_passages(escape_tags(text), read_as=lambda line: _NEW_ROLE.sub(r"\1", line))
    notices: list[str] = []
    shown = withheld.text
    if withheld.passages:
        notices.append(f"{path}: passages withheld: {len(withheld.passages)} ({', '.join(withheld.findings)}).")
        placeholders = {passage.placeholder for passage in withheld.passages}
        if all(line in placeholders or not line.strip() for line in shown.split("\n")):
            return Identity(DEFAULT_IDENTITY, tuple(notices))
    if len(shown) > MAX_CHARS:
        notices.append(f"{path} has {len(shown):,} characters; the prompt shows {MAX_CHARS:,} of them.")
    return Identity(shorten_file(shown, MAX_CHARS, FILE_NAME), tuple(notices))
