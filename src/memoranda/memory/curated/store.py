"""`MemoryStore`: the small files that an agent keeps for itself (MEMORY.md), about its user (USER.md) and per project.

The store has two states. The *snapshot* is what the system prompt shows: `load_from_disk` creates it, and it does not
change by a byte until the next load, so that the model vendor's prefix cache stays valid. The *live* entries are those
on disk: a write is durable at once and visible in every tool result, but only the next session's prompt shows it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Self

from memoranda.errors import StorageError
from memoranda.memory.curated import refusals
from memoranda.memory.curated.approval_queue import ApprovalQueue, Proposal
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.facts import (
    EntryFacts,
    Use,
    choose_leaving,
    parse_until,
    read_facts,
    show_days,
    texts_expired,
)
from memoranda.memory.curated.journal import APPROVED, KEYED, MemoryAction, MemoryJournal
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER, ReadableMemoryFile, WritableState, handle, size
from memoranda.memory.curated.notes import Notes
from memoranda.memory.curated.operations import (
    Add,
    Ambiguous,
    AwaitsApproval,
    EntryPlan,
    MemoryReceipt,
    MemoryRefusal,
    MemoryWriteResult,
    NoMatch,
    Operation,
    Put,
    Remove,
    Replace,
    plan,
    rewrite_edits,
    value_of,
)
from memoranda.memory.curated.settings import (
    DEFAULT_MEMORY_CHAR_LIMIT,
    DEFAULT_USER_CHAR_LIMIT,
    PROJECT,
    TARGETS,
    CuratedSettings,
    Target,
    file_name,
)
from memoranda.memory.curated.snapshot import render, render_problem, usage
from memoranda.memory.curated.storage import FileStorage, MemoryStorage
from memoranda.memory.curated.writer import MemoryWriter, WriteRequest
from memoranda.safety.allowances import Allowances
from memoranda.safety.behaviour import changes_behaviour
from memoranda.storage.files.journaled_writer import WriteFailure, run_exclusively
from memoranda.support.canonical_text import canonical, unstorable_character
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin, utc_timestamp
from memoranda.support.text_file import UndecodableFile, UnreadableFile

# The constants are here too, because programs written for Hermes import them together with the store.
__all__ = ["DEFAULT_MEMORY_CHAR_LIMIT", "DEFAULT_USER_CHAR_LIMIT", "ENTRY_DELIMITER", "MemoryStore", "MemoryView"]


_log = logging.getLogger(__name__)

# NFC shrinks a text to no less than a quarter; a text that is still too long then can never fit.
_NFC_SHRINK_FACTOR = 4
# A text that is blank this far counts as blank; normalizing more of it would only cost time.
_BLANK_CHECK_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class MemoryView:
    """One target as it is on disk now, safe to show: blocked entries appear as placeholders."""

    target: Target
    path: Path
    entries: tuple[ScannedEntry, ...]
    used: int
    limit: int
    fingerprint: str

    @property
    def usage(self) -> str:
        return usage(self.used, self.limit)


class MemoryStore:
    """The curated memory of one user, whose storage stays the same for the lifetime of the store.

    Programs written for Hermes read `memory_entries`, `user_entries` and the two limits. The entries are copies: a
    change goes through `add`, `replace` and `remove`.
    """

    def __init__(self, directory: str | Path, settings: CuratedSettings | None = None) -> None:
        settings = settings or CuratedSettings()
        self._use(FileStorage(Path(directory).absolute(), settings.lock_timeout), settings)

    @classmethod
    def over(cls, storage: MemoryStorage, settings: CuratedSettings | None = None) -> Self:
        """Use another storage than a directory."""
        store = cls.__new__(cls)
        MemoryStore._use(store, storage, settings or CuratedSettings())
        return store

    def _use(self, storage: MemoryStorage, settings: CuratedSettings) -> None:
        self.storage = storage
        self.settings = settings
        self.proposals = ApprovalQueue(storage.proposals)
        self.allowances = Allowances(storage.allowances)
        self._writer = MemoryWriter(storage, settings, self.allowances)
        self._snapshot: dict[str, str | None] = {}
        self._snapshot_entries: dict[Target, tuple[str, ...]] = {}
        # What has no place in a prompt; None without a record. `uses` counts how often entries were of use.
        self.notes: Notes | None = None
        self.uses: Callable[[Sequence[EntryFacts]], Mapping[str, Use]] = lambda facts: {}
        # Finds the entries and notes of a target that share most with texts (`search.similar_entries`).
        self.similar: Callable[[Target, Sequence[str]], list[str]] = lambda target, texts: []
        # Called with every change that is written through this store; it must not raise.
        self.written: Callable[[MemoryReceipt, Origin], None] = lambda receipt, origin: None

    @property
    def directory(self) -> Path:
        return self.storage.directory

    @property
    def project(self) -> Target | None:
        """The target of the project that one works in; None without one, or where such memory is switched off."""
        return self._writer.project

    def use_project(self, identity: str | None) -> None:
        """Work in a project, given as sessions record it: its memory is shown, and `project` means it."""
        self._writer.project = None
        if identity and self.settings.project_enabled:
            # Sessions without a project need not load it.
            from memoranda.memory.curated.projects import find_target  # noqa: PLC0415

            self._writer.project = find_target(self.storage.targets(), identity)

    def targets(self) -> tuple[Target, ...]:
        """What a prompt shows: the notes and the profile as far as they are in use, and the memory of the project."""
        return (*self.settings.targets(), *([self.project] if self.project else []))

    @property
    def journal(self) -> MemoryJournal:
        return self.storage.journal

    def path(self, target: Target) -> Path:
        return self.storage.path(target)

    def exclusive(self, timeout: float | None = None) -> AbstractContextManager[None]:
        """Holds the lock of the memory, for work that changes no memory file."""
        return self.storage.exclusive(timeout)

    def settle(self) -> None:
        """Clean up after a killed writer, unless another process holds the lock or the disk refuses."""
        if self.storage.has_leftovers():
            try:
                with self.exclusive(timeout=0):
                    return
            except (StorageError, OSError) as error:
                _log.info("leftovers in %s stay for now: %s", self.directory, error)

    def load_from_disk(self) -> None:
        """Read the files and freeze what the system prompt shows. One bad file never hides another."""
        self.settle()
        self._snapshot_entries = {}
        targets = dict.fromkeys((*TARGETS, *self.targets()))
        self._snapshot = {target: self._render(target) for target in targets}

    def format_for_system_prompt(self, target: str) -> str | None:
        """The frozen block of a target, or None when it was empty or switched off at the last load."""
        return self._snapshot.get(target)

    def snapshot_entries(self, target: Target) -> tuple[str, ...] | None:
        """The entries as the frozen block shows them; None when the target is switched off or was unreadable."""
        return self._snapshot_entries.get(target)

    def view(self, target: Target) -> MemoryView:
        """The live state of a target; raises StorageError when its file cannot be read."""
        target = self._resolve(target)
        state = self._writer.read(target)
        if isinstance(state, UnreadableFile | UndecodableFile):
            raise StorageError(f"{state.path} cannot be read: {state.problem}. It was left as it is.")
        return self._view(target, state)

    def entries(self, target: Target) -> tuple[str, ...]:
        """The live entries of a target as they may be shown."""
        return tuple(entry.visible_text for entry in self.view(target).entries)

    def facts(self, target: Target) -> list[EntryFacts]:
        """The live entries of a target with their facts, in file order."""
        view = self.view(target)
        if not view.entries:
            return []
        modified = self.storage.texts.modified_at(file_name(view.target))
        return read_facts(self.journal, view.target, view.entries, modified)

    def valid_entries(self, target: Target) -> tuple[str, ...]:
        """The live entries of a target as they may be shown, without those whose last day is over."""
        expired = self._expired(target)
        return tuple(entry.visible_text for entry in self.view(target).entries if entry.text not in expired)

    def get(self, key: str) -> str | None:
        """The value of a keyed entry such as "time zone: Europe/Berlin"; that of the current project comes first."""
        values = (value_of(self.valid_entries(target), key) for target in reversed(self.targets()))
        return next((value for value in values if value is not None), None)

    def visible_text(self, target: Target, text: str) -> str:
        """The text of a past or present entry if it may be shown, or else its placeholder."""
        return ScannedEntry(text, self._writer.scanner(target).findings(text)).visible_text

    def add(self, target: Target, content: str, origin: Origin | None = None) -> MemoryWriteResult:
        return self.apply(target, [Add(content)], origin)

    def replace(self, target: Target, old_text: str, content: str, origin: Origin | None = None) -> MemoryWriteResult:
        return self.apply(target, [Replace(old_text, content)], origin)

    def remove(self, target: Target, old_text: str, origin: Origin | None = None) -> MemoryWriteResult:
        return self.apply(target, [Remove(old_text)], origin)

    def apply(
        self,
        target: Target,
        operations: Sequence[Operation],
        origin: Origin | None = None,
        allow: frozenset[str] = frozenset(),
    ) -> MemoryWriteResult:
        """Carry out operations as one change: all of them, or none."""
        origin = origin or Origin()
        if target == PROJECT and self.project is None:
            return refusals.no_project(self.settings)
        target = self._resolve(target)
        refusal = self._refuse_before_planning(target, operations)
        if refusal:
            return refusal
        try:
            wanted = [canonical_operation(item) for item in operations]
        except ValueError as error:
            return MemoryRefusal(target, "invalid", f"{error} Nothing was written.")
        request = _build_request(target, wanted, origin, allow)
        if not origin.explicit and (self.settings.write_approval != "off" or self._needs_approval(request)):
            return self._propose(request, wanted)
        outcome = self.commit_all([request], make_room=True)
        return outcome if isinstance(outcome, MemoryRefusal) else _explain_merge(request, outcome[0])

    def approve(self, proposal: Proposal) -> MemoryReceipt | MemoryRefusal:
        """Carry out a proposal, if it still changes the same entries that the person was shown."""
        operations = [canonical_operation(item) for item in proposal.operations]
        request = _build_request(proposal.target, operations, proposal.origin, frozenset())

        def plan_as_shown(current: Sequence[str]) -> EntryPlan | NoMatch | Ambiguous | MemoryRefusal:
            planned = plan(current, operations)
            if isinstance(planned, EntryPlan) and [edit.before for edit in planned.edits] != list(proposal.replaced):
                return refusals.proposal_outdated(proposal.target, proposal.id)
            return planned

        outcome = self.commit_all([with_changes(request, plan=plan_as_shown, note=APPROVED)], make_room=True)
        if isinstance(outcome, MemoryRefusal):
            return outcome
        try:
            self.proposals.remove(proposal)
        except (OSError, StorageError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"{outcome[0].message} The proposal could not be removed from the queue ({reason})."
            return with_changes(outcome[0], message=message)
        return outcome[0]

    def commit(self, request: WriteRequest) -> MemoryReceipt | MemoryRefusal:
        """Carry out any other change (edit, reset) on the same write path."""
        outcome = self.commit_all([request])
        return outcome if isinstance(outcome, MemoryRefusal) else outcome[0]

    def commit_all(
        self, requests: Sequence[WriteRequest], *, make_room: bool = False
    ) -> list[MemoryReceipt] | MemoryRefusal:
        """Carry out changes of different targets, which one undo takes back: all of them, or none.

        What becomes a note is a note before it leaves its file, so that it is never in neither. With `make_room`, a
        full target gives what is of least use to notes, if the settings say so.
        """
        for request in requests:
            if not self.settings.enabled(request.target):
                return refusals.disabled(request.target)
        noted = self._add_notes(requests)
        outcome = self._writer.commit_all([self._with_facts_of_notes(request) for request in requests])
        if isinstance(outcome, MemoryRefusal):
            for text, owner in noted:
                self._remove_note(text, owner)
            roomy = self._with_room(requests, outcome) if make_room and outcome.reason == "over_budget" else None
            return self.commit_all(roomy) if roomy else outcome
        for request, receipt in zip(requests, outcome, strict=True):
            for text, owner in request.from_notes.items():
                self._remove_note(text, owner)
            if receipt.edits:
                self.written(receipt, request.origin)
        return outcome

    def _add_notes(self, requests: Sequence[WriteRequest]) -> list[tuple[str, Target]]:
        """Store what requests give to notes; returns those that did not exist before."""
        new: list[tuple[str, Target]] = []
        for request in requests if self.notes is not None else ():
            assert self.notes is not None
            facts = {each.entry.text: each for each in (self.facts(request.target) if request.to_notes else ())}
            for text, owner in request.to_notes.items():
                replaced = request.replaced.get(text, "")
                if self.notes.add(text, owner, request.origin, entry=facts.get(text), replaced=replaced):
                    new.append((text, owner))
        return new

    def _with_facts_of_notes(self, request: WriteRequest) -> WriteRequest:
        """The request with what is known about the notes that become entries: the journal may never have had them."""
        if self.notes is None or not request.from_notes:
            return request
        notes = [note for each in request.from_notes.items() if (note := self.notes.get(*each)) is not None]
        # Of two equal texts, one of which untrusted text suggested, the entry keeps what is known about it.
        present = {entry.text for entry in self.view(request.target).entries}
        notes = [note for note in notes if not (note.sources and note.text in present)]
        # Who moves a note into the prompt says that it is true; an undo and the curator do not.
        confirmed = {"confirmed": utc_timestamp()} if request.action == "move" else {}
        until = {note.text: note.until for note in notes}
        facts = {note.text: note.history | confirmed for note in notes}
        return with_changes(request, until=dict(request.until) | until, facts=facts | dict(request.facts))

    def _remove_note(self, text: str, owner: Target) -> None:
        if self.notes is not None:
            self.notes.remove(text, owner)

    def commit_unannounced(self, request: WriteRequest) -> MemoryReceipt | MemoryRefusal:
        """Carry out a change without calling `written`, even in a target that is switched off: for forgetting."""
        return self._writer.commit(request)

    def _render(self, target: Target) -> str | None:
        state = self._writer.read(target)
        if not self.settings.enabled(target):
            return None
        if isinstance(state, UnreadableFile | UndecodableFile):
            return render_problem(target, file_name(target), state.problem)
        self._writer.note_seen(target, state.fingerprint)
        # Equal entries are shown once, and the scanner must see what is shown.
        expired = self._expired(target)
        shown = self._writer.scanner(target).scan_entries(
            [text for text in dict.fromkeys(state.entries) if text not in expired]
        )
        texts = show_days([entry.visible_text for entry in shown], lambda: self.facts(target))
        self._snapshot_entries[target] = tuple(texts)
        entries, limit = list(zip(shown, texts, strict=True)), self.settings.limit(target)
        return render(target, entries, size(state.entries), limit, self.journal.sources(target))

    def _resolve(self, target: Target) -> Target:
        if target != PROJECT:
            return target
        if self.project is None:
            raise StorageError(refusals.no_project(self.settings).message)
        return self.project

    def _with_room(self, requests: Sequence[WriteRequest], refusal: MemoryRefusal) -> list[WriteRequest]:
        """The requests, so that what is of least use in the full target moves to notes; nothing if that is not enough.

        Only if the settings want that.
        """
        if self.notes is None or self.settings.when_full != "make_room":
            return []
        request = next(each for each in requests if each.target == refusal.target)
        target, facts = request.target, self.facts(request.target)
        planned = request.plan([each.entry.text for each in facts])
        if request.origin.sources and not request.origin.explicit:
            facts = [each for each in facts if each.sources]
        if not isinstance(planned, EntryPlan):
            return []
        surplus = size(planned.entries) - self.settings.limit(target)
        leaving = choose_leaving(facts, self.uses(facts), {edit.after for edit in planned.edits}, surplus)
        gone = {each.entry.text: target for each in leaving}
        if sum(len(text) + len(ENTRY_DELIMITER) for text in gone) < surplus:
            return []

        def plan_without(current: Sequence[str]) -> EntryPlan | NoMatch | Ambiguous | MemoryRefusal:
            staying = [text for text in current if text not in gone]
            smaller = request.plan(staying)
            if not isinstance(smaller, EntryPlan):
                return smaller
            return EntryPlan(smaller.entries, (*rewrite_edits(current, staying), *smaller.edits))

        roomy = with_changes(
            request,
            action="move" if request.action == "move" else "batch",
            plan=plan_without,
            to_notes={**request.to_notes, **gone},
            done=f"{request.done} {len(gone)} moved to notes.",
            note=request.note or "made room: see the notes",
        )
        return [roomy if each is request else each for each in requests]

    def _expired(self, target: Target) -> frozenset[str]:
        """The entries whose last day is over: they stay in the file, and no prompt shows them."""
        return texts_expired(self.facts(target)) if self.journal.has_last_days() else frozenset()

    def _view(self, target: Target, state: WritableState) -> MemoryView:
        screened = tuple(self._writer.scanner(target).scan_entries(state.entries))
        limit = self.settings.limit(target)
        return MemoryView(target, state.path, screened, size(state.entries), limit, state.fingerprint)

    def _refuse_before_planning(self, target: Target, operations: Sequence[Operation]) -> MemoryRefusal | None:
        if not self.settings.enabled(target):
            return refusals.disabled(target)
        state = self._writer.read(target)
        # The write path reports whatever is wrong with the file.
        current_size = len(state.raw) if isinstance(state, ReadableMemoryFile) else 0
        max_chars = _NFC_SHRINK_FACTOR * max(self.settings.limit(target), current_size)
        for operation in operations:
            texts = [] if isinstance(operation, Remove) else [("content", operation.content)]
            texts += [("old_text", operation.old_text)] if isinstance(operation, Replace | Remove) else []
            texts += [("key", operation.key)] if isinstance(operation, Put) else []
            for name, text in texts:
                if unstorable := unstorable_character(text):
                    return refusals.unstorable_text(target, unstorable)
                if name == "content" and len(text) > max_chars:
                    return refusals.over_budget(target, len(text), self.settings.limit(target))
                if not canonical(text[: max(max_chars, _BLANK_CHECK_CHARS)]):
                    return refusals.empty(target, name)
        return None

    def _needs_approval(self, request: WriteRequest) -> bool:
        """Whether untrusted text may have suggested what a person must decide about.

        That is a change of behaviour, and whatever replaces, removes or ends an entry that is the user's own.
        """
        if not request.origin.sources or self.settings.untrusted_writes == "save":
            return False
        state = self._writer.read(request.target)
        # Not by the limit: the write may make room.
        planned = request.plan(state.entries) if isinstance(state, WritableState) else None
        if not isinstance(planned, EntryPlan):
            # A refusal is returned by the write itself.
            return False
        sides = [text for edit in planned.edits for text in (edit.before, edit.after) if text]
        displaced = [edit.before for edit in planned.edits if edit.before] + _ended(request, planned)
        sources = self.journal.sources(request.target) if displaced else {}
        return any(handle(text) not in sources for text in displaced) or any(map(changes_behaviour, sides))

    def _propose(self, request: WriteRequest, operations: Sequence[Operation]) -> MemoryWriteResult:
        target = request.target
        if self.settings.write_approval == "explicit-only":
            return refusals.explicit_only(target)
        planned = self._writer.plan_now(request)
        if isinstance(planned, MemoryRefusal):
            return planned
        if not planned.edits and not _ended(request, planned):
            return MemoryReceipt(target, self.path(target), request.nothing)
        replaced = [edit.before for edit in planned.edits]
        proposal = run_exclusively(
            self.exclusive, self.directory, lambda: self.proposals.add(target, operations, request.origin, replaced)
        )
        if isinstance(proposal, WriteFailure):
            return refusals.from_failure(target, proposal)
        return AwaitsApproval(target, proposal.id, _describe_proposal(proposal))

    @property
    def memory_entries(self) -> list[str]:
        """The live entries of MEMORY.md as they may be shown."""
        return list(self.entries("memory"))

    @property
    def user_entries(self) -> list[str]:
        """The live entries of USER.md as they may be shown."""
        return list(self.entries("user"))

    @property
    def memory_char_limit(self) -> int:
        """How many characters MEMORY.md may have."""
        return self.settings.memory_char_limit

    @property
    def user_char_limit(self) -> int:
        """How many characters USER.md may have."""
        return self.settings.user_char_limit


def _ended(request: WriteRequest, planned: EntryPlan) -> list[str]:
    """The entries that only get another last day."""
    written = {edit.after for edit in planned.edits}
    return [text for text, until in request.until.items() if until and text in planned.entries and text not in written]


def _describe_proposal(proposal: Proposal) -> str:
    reason = ""
    if proposal.sources:
        reason = f" It may come from {', '.join(proposal.sources)} instead of the user, and may be more than a fact."
    return (
        f"Proposed as {proposal.id}: a person decides with 'memoranda memory approve {proposal.id}'.{reason} "
        "Nothing is saved until then. Do not send it again."
    )


def _build_request(
    target: Target, operations: Sequence[Operation], origin: Origin, allow: frozenset[str]
) -> WriteRequest:
    action: MemoryAction = "batch"
    if len(operations) == 1:
        kinds: dict[type[Operation], MemoryAction] = {Add: "add", Replace: "replace", Remove: "remove", Put: "add"}
        action = kinds[type(operations[0])]
    name = file_name(target)
    done = {
        "add": f"Saved in {name}.",
        "replace": f"Replaced in {name}.",
        "remove": f"Removed from {name}.",
        "batch": f"Applied to {name} as one change.",
    }[action]
    nothing = (
        "Already there: nothing was changed." if action == "replace" else "Entry already exists (no duplicate added)."
    )
    return WriteRequest(
        target,
        action,
        origin,
        lambda current: plan(current, operations),
        done,
        nothing,
        allow=allow,
        note=KEYED if all(isinstance(item, Put) for item in operations) else "",
        until={_written_text(item): item.until for item in operations if not isinstance(item, Remove)},
    )


def _written_text(operation: Add | Replace | Put) -> str:
    return operation.text if isinstance(operation, Put) else operation.content


def canonical_operation(operation: Operation) -> Operation:
    """The operation with its texts as they are stored; raises ValueError for a last day that is no date."""
    if isinstance(operation, Remove):
        return Remove(canonical(operation.old_text))
    content = canonical(operation.content)
    until = parse_until(operation.until)
    if isinstance(operation, Add):
        return Add(content, until)
    if isinstance(operation, Put):
        return Put(" ".join(canonical(operation.key).split()).rstrip(":"), content, until)
    return Replace(canonical(operation.old_text), content, until)


def _explain_merge(request: WriteRequest, outcome: MemoryReceipt) -> MemoryReceipt:
    if request.action == "replace" and outcome.edits and outcome.edits[0].after is None and not outcome.moved:
        return with_changes(outcome, message="That text is an entry already, so the one it replaces was removed.")
    return outcome
