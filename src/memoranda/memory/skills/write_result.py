"""The results of a change to a skill, as values: a receipt or a refusal."""

from pathlib import Path
from typing import Literal

from memoranda.support.lazy_dataclass import dataclass

SkillRefusalReason = Literal[
    "invalid",  # the arguments, a name or the front matter cannot be used
    "disabled",  # skills are switched off
    "approval",  # only a person may change skills
    "protected",  # a review may not change what a person created, nor remove anything
    "exists",
    "not_found",
    "no_match",  # the file does not contain the text to be replaced
    "ambiguous",
    "blocked",  # the scanner found something
    "too_large",
    "not_seen",  # the caller has not read the current text
    "conflict",  # an undo no longer fits the file, or another program wrote at the same time
    "unreadable",
    "read_only",
    "symlink",
    "locked",
    "storage",  # the disk refused
]


@dataclass(frozen=True, slots=True)
class SkillReceipt:
    """A change that succeeded, or that had nothing to do (then `change` is None)."""

    skill: str
    stored_in: Path
    message: str
    change: int | None = None


@dataclass(frozen=True, slots=True)
class SkillRefusal:
    """A change that was refused, or a file that is not shown; nothing was changed."""

    skill: str
    reason: SkillRefusalReason
    message: str
    findings: tuple[str, ...] = ()


SkillWriteResult = SkillReceipt | SkillRefusal
