"""The results of a memory write, as values: a receipt, a proposal that awaits approval, or a refusal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoranda.memory.curated.settings import Target
from memoranda.support.origin import PERSON, Origin

__all__ = [
    "PERSON", "AwaitsApproval", "EntryEdit", "MemoryReceipt", "MemoryRefusal", "MemoryRefusalReason",
    "MemoryWriteResult", "Origin",
]  # fmt: skip

MemoryRefusalReason = Literal[
    "invalid",  # the arguments cannot be used
    "disabled",  # this target, or all of memory, is switched off
    "blocked",  # the scanner found something
    "over_budget",
    "no_match",
    "ambiguous",
    "approval",  # only a person may write
    "drift",  # another program changed the file
    "conflict",  # an undo or edit no longer fits the current entries
    "unreadable",
    "undecodable",
    "symlink",
    "locked",
    "storage",  # the disk refused
]


@dataclass(frozen=True, slots=True)
class EntryEdit:
    """One entry that changes: `before` is None for a new entry, `after` for a removed one."""

    index: int
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class MemoryReceipt:
    """A write that succeeded, or that had nothing to do (then `edits` is empty and `change` is None)."""

    target: Target
    stored_in: Path
    message: str
    edits: tuple[EntryEdit, ...] = ()
    change: int | None = None
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class AwaitsApproval:
    """A write that a person has to approve first."""

    target: Target
    proposal: str
    message: str


@dataclass(frozen=True, slots=True)
class MemoryRefusal:
    """A write that was refused; nothing was changed."""

    target: Target
    reason: MemoryRefusalReason
    message: str
    matches: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    backup: Path | None = None


MemoryWriteResult = MemoryReceipt | AwaitsApproval | MemoryRefusal
