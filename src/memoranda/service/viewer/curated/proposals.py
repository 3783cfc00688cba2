"""What awaits a person: proposed changes beside the entries that they would change, and entries that are withheld."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memoranda.errors import StorageError
from memoranda.memory.curated.approval_queue import Proposal
from memoranda.memory.curated.operations import (
    Add,
    EntryPlan,
    MemoryReceipt,
    MemoryRefusal,
    Operation,
    Remove,
    Replace,
    plan,
)
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.viewer.text_diff import DiffPart, diff_words
from memoranda.support.canonical_text import digest


@dataclass(frozen=True, slots=True)
class ProposedText:
    """One operation of a proposal: what it does, the text that it would write, and the difference that it makes."""

    action: str
    content: str | None
    parts: tuple[DiffPart, ...]


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """A proposal; `outdated` says that the entries which it would change are others by now."""

    proposal: Proposal
    file: str
    texts: tuple[ProposedText, ...]
    outdated: bool


@dataclass(frozen=True, slots=True)
class WithheldEntry:
    """An entry that agents do not see; `text` is the text itself, for the person who decides."""

    target: Target
    file: str
    id: str
    handle: str
    text: str
    findings: tuple[str, ...]


def list_proposals(store: MemoryStore) -> tuple[ProposalRow, ...]:
    """What awaits approval, the oldest first."""
    return tuple(describe_proposal(store, proposal) for proposal in store.proposals.all())


def list_rejected(store: MemoryStore) -> tuple[ProposalRow, ...]:
    """What was rejected and can be restored, the newest first."""
    return tuple(describe_proposal(store, proposal) for proposal in reversed(store.proposals.rejected()))


def describe_proposal(store: MemoryStore, proposal: Proposal) -> ProposalRow:
    """A proposal beside the entries as they are now."""
    target = proposal.target
    try:
        entries = [entry.text for entry in store.view(target).entries]
    except StorageError:
        entries = []
    whole = plan(entries, proposal.operations)
    outdated = not isinstance(whole, EntryPlan) or [edit.before for edit in whole.edits] != list(proposal.replaced)
    texts = []
    for operation in proposal.operations:
        planned = plan(entries, [operation])
        edit = planned.edits[0] if isinstance(planned, EntryPlan) and planned.edits else None
        content = None if isinstance(operation, Remove) else operation.content
        before = edit.before if edit else None if isinstance(operation, Add) else operation.old_text
        texts.append(
            ProposedText(
                type(operation).__name__.lower(),
                content,
                diff_words(_visible(store, target, before), _visible(store, target, content)),
            )
        )
        entries = list(planned.entries) if isinstance(planned, EntryPlan) else entries
    return ProposalRow(proposal, FILE_NAMES[target], tuple(texts), outdated)


def approve_edited(store: MemoryStore, proposal: Proposal, contents: Sequence[str]) -> MemoryReceipt | MemoryRefusal:
    """Approve a proposal with other texts: one for each operation that writes a text, in order."""
    remaining = iter(contents)
    operations = tuple(_with_content(operation, remaining) for operation in proposal.operations)
    return store.approve(replace(proposal, operations=operations))


def list_withheld(store: MemoryStore) -> tuple[WithheldEntry, ...]:
    """The entries of both files that the scanner withholds from agents."""
    found = []
    for target in TARGETS:
        try:
            entries = store.view(target).entries
        except StorageError:
            # The page Memory says that the file cannot be read.
            continue
        found += [
            WithheldEntry(target, FILE_NAMES[target], digest(entry.text), entry.handle, entry.text, entry.findings)
            for entry in entries
            if entry.findings
        ]
    return tuple(found)


def _with_content(operation: Operation, contents: Iterator[str]) -> Operation:
    if isinstance(operation, Add):
        return Add(next(contents, operation.content))
    if isinstance(operation, Replace):
        return Replace(operation.old_text, next(contents, operation.content))
    return operation


def _visible(store: MemoryStore, target: Target, text: str | None) -> str | None:
    return None if text is None else store.visible_text(target, text)
