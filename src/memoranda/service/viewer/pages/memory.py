"""Memory: the entries of each file with origin, age, use and last day, their forms, and the prompt that models see.

An entry that another tab changed after its form was opened is not written over: the page shows both texts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated import change_history
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.facts import NEVER, EntryFacts, Use
from memoranda.memory.curated.journal import APPROVED, MemoryChange
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.moves import move_entry, write_notes
from memoranda.memory.curated.operations import (
    Add,
    MemoryReceipt,
    MemoryRefusal,
    MemoryWriteResult,
    Operation,
    Remove,
    Replace,
)
from memoranda.memory.curated.settings import NOTES, Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.memory_writes import (
    MEMORY_PATH,
    apply_seen,
    explain_refusal,
    finish_write,
    read_allowed,
    read_target,
    refusal_status,
)
from memoranda.service.viewer.page import Page, PageRequest, Reply, View
from memoranda.service.viewer.pages.memory_history import ChangeRow, read_change
from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import PERSON

_BATCH = 200
_MAX_NOTES = 200
_ACTIONS = ("add", "remove", "move", "confirm")


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """The change that wrote an entry: who made it, in which session, and what untrusted text it may come from."""

    change: int
    actor: str
    session: str
    at: str
    sources: tuple[str, ...] = ()
    approved: bool = False


def _find_origins(changes: Iterable[MemoryChange], target: Target) -> Mapping[str, EntryOrigin]:
    """The origin of each text that the journal knows; an undo restores a text with the origin that it had."""
    found: dict[str, EntryOrigin] = {}
    for change in changes:
        if change.target != target:
            continue
        for text in (edit.after for edit in change.edits if edit.after is not None):
            if change.action != "undo" or text not in found:
                found[text] = EntryOrigin(
                    change.number,
                    change.actor,
                    change.session,
                    change.at,
                    tuple(change.sources.get(handle(text), ())),
                    change.note == APPROVED,
                )
    return found


def find_message(db: SessionDB, session_id: str, at: float) -> int | None:
    """The message in which a session made a change at a time: the last one with a tool call until then.

    Without a tool call it is the last message. None if the session has no message from before that time.
    """
    last = call = None
    after = 0
    while batch := db.get_messages(session_id, include_inactive=True, limit=_BATCH, after=after):
        for message in batch:
            if message["timestamp"] > at:
                return call or last
            last = message["id"]
            call = last if message.get("tool_calls") else call
        after = batch[-1]["id"]
    return call or last


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry. `id` is derived from its whole text, so a form that has it names this text and no other."""

    id: str
    handle: str
    text: str
    findings: tuple[str, ...]
    origin: EntryOrigin | None
    facts: EntryFacts
    use: Use | None = None
    """How often conversations since have used it; None if it was not counted, or never."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One of the two files. `problem` says why it cannot be read; `enabled` whether it is switched on."""

    target: Target
    name: str
    entries: tuple[EntryRow, ...] = ()
    used: int = 0
    limit: int = 0
    enabled: bool = True
    problem: str = ""
    fingerprint: str = ""

    @property
    def percent(self) -> int:
        return min(100, 100 * self.used // self.limit) if self.limit else 0


def read_files(store: MemoryStore, counted: Target | None = None) -> tuple[MemoryFile, ...]:
    """All files as they are now; in `counted` also how often entries were of use, which takes a search for each."""
    changes = change_history.log(store)
    files = []
    for target in store.storage.targets():
        name, enabled = file_name(target), store.settings.enabled(target)
        try:
            view, facts = store.view(target), store.facts(target)
        except StorageError:
            problem = f"{name} cannot be read. It was left as it is; the page Health says what is wrong with it."
            files.append(MemoryFile(target, name, enabled=enabled, problem=problem))
            continue
        origins = _find_origins(changes, target)
        uses = store.uses(facts) if target == counted else {}
        rows = tuple(_entry_row(each, origins.get(each.entry.text), uses) for each in facts)
        files.append(MemoryFile(target, name, rows, view.used, view.limit, enabled, fingerprint=view.fingerprint))
    return tuple(files)


def find_entry(store: MemoryStore, target: Target, entry_id: str) -> ScannedEntry | None:
    """The entry or note with an id; None if it was changed or removed."""
    if target == NOTES:
        texts = (note.text for note in (store.notes.all() if store.notes is not None else ()))
        return next((ScannedEntry(text, ()) for text in texts if digest(text) == entry_id), None)
    return next((entry for entry in store.view(target).entries if digest(entry.text) == entry_id), None)


def find_conflict(store: MemoryStore, target: Target, seen_id: str, mine: str) -> dict[str, Any]:
    """What became of an entry that a form names, by following the journal from the text that the form was opened with.

    Texts are those that may be shown. A text that the journal does not have is unknown. `current` is None if the entry
    was removed; `current_id` then is empty.
    """
    entries = {} if target == NOTES else {digest(entry.text): entry for entry in store.view(target).entries}
    texts: dict[str, str] = {}
    followed = seen_id
    for change in change_history.log(store, target):
        for edit in change.edits:
            if edit.before is not None:
                texts[digest(edit.before)] = edit.before
                if digest(edit.before) == followed and followed not in entries:
                    followed = "" if edit.after is None else digest(edit.after)
    seen = texts.get(seen_id)
    current = entries.get(followed)
    return {
        "seen": None if seen is None else store.visible_text(target, seen),
        "current": None if current is None else current.visible_text,
        "current_id": "" if current is None else digest(current.text),
        "mine": mine,
    }


def _entry_row(facts: EntryFacts, origin: EntryOrigin | None, uses: Mapping[str, Use]) -> EntryRow:
    entry = facts.entry
    use = uses.get(entry.handle)
    if origin is not None and not origin.approved:
        # The user may have said it since.
        origin = replace(origin, sources=facts.sources)
    return EntryRow(digest(entry.text), entry.handle, facts.shown, entry.findings, origin, facts, use)


def show(request: PageRequest) -> View:
    number = request.number("change", 0)
    receipt = read_change(request.memory.curated, number) if number else None
    return _view(request, receipt=receipt)


def submit(request: PageRequest) -> Reply:
    """Add an entry; a refusal shows the page again with the text in its form."""
    target, text = read_target(request.form.get("target", "")), request.form.get("text", "")
    fingerprint = request.form.get("file", "")
    outcome: MemoryWriteResult = apply_seen(
        request.memory.curated, target, Add(text), fingerprint, read_allowed(request)
    )
    if isinstance(outcome, MemoryRefusal):
        refused = {
            "target": target,
            "text": text,
            "reason": explain_refusal(outcome),
            # What a person may allow.
            "findings": outcome.findings,
        }
        return _view(request, refused=refused, status=refusal_status(outcome))
    return finish_write(request, "add", outcome)


def _view(
    request: PageRequest, *, receipt: ChangeRow | None = None, refused: dict[str, Any] | None = None, status: int = 200
) -> View:
    store, name = request.memory.curated, request.query.get("uses", "")
    counted = read_target(name) if name and request.has_record else None
    files = read_files(store, counted)
    origins = (entry.origin for file in files for entry in file.entries)
    recorded = find_recorded(request, (origin.session for origin in origins if origin is not None))
    notes = store.notes.all()[:_MAX_NOTES] if store.notes is not None and request.has_record else []
    view = {
        "files": files,
        "notes": [
            {"text": store.visible_text(note.owner, note.text), "note": note, "id": digest(note.text)} for note in notes
        ],
        "counts_uses": request.has_record,
        "counted": counted,
        "can_write": request.may("curate"),
        "receipt": receipt,
        "refused": refused,
    }
    return View("memory.html", "Memory", view, status, recorded)


PAGE = Page("memory", MEMORY_PATH, show, submit, label="Memory")


def show_entry(request: PageRequest) -> View:
    """The page; raises Problem 404 for an entry or note that was changed or removed."""
    target, entry_id = _read_source(request), request.path["entry"]
    store = request.memory.curated
    entry = find_entry(store, target, entry_id)
    if entry is None:
        raise Problem(404, "not_found", "There is no such entry any more. It was changed or removed; see the history.")
    origin = None if target == NOTES else _find_origins(change_history.log(store), target).get(entry.text)
    view = _entry_view(request, target, entry_id, entry.text) | {
        "findings": entry.findings,
        "origin": origin,
        "origin_message": _message_of(request, origin),
    }
    recorded = find_recorded(request, [origin.session] if origin is not None else [])
    return View("memory_entry.html", "Entry", view, recorded=recorded)


def submit_entry(request: PageRequest) -> Reply:
    """Change the entry or note that the form shows, if it is still the same; otherwise show both texts."""
    target, entry_id = _read_source(request), request.path["entry"]
    action, text = request.form.get("action", "save"), request.form.get("text", "")
    store = request.memory.curated
    if action != "add" and find_entry(store, target, entry_id) is None:
        return _conflict(request, target, entry_id, text)
    outcome = _change_entry(request, target, f"entry:{entry_id}", action, text)
    if not isinstance(outcome, MemoryRefusal):
        return finish_write(request, action if action in _ACTIONS else "replace", outcome)
    if outcome.reason == "no_match":
        # Another tab changed it between the two reads.
        return _conflict(request, target, entry_id, text)
    return _entry_form(
        request, target, entry_id, text, refusal_status(outcome),
        refusal=explain_refusal(outcome), findings=outcome.findings,
    )  # fmt: skip


def _change_entry(request: PageRequest, target: Target, handle: str, action: str, text: str) -> MemoryWriteResult:
    """Carry out what a button says, on the path of the command with its name."""
    store = request.memory.curated
    if action == "move":
        to = request.form.get("to", "")
        return move_entry(store, target, handle, to if to == NOTES else read_target(to), PERSON)
    if action == "confirm":
        found = change_history.confirm_entry(store, [read_target(target)], handle, PERSON)
        done = "Confirmed: the entry is still true, as of today."
        return found if isinstance(found, MemoryRefusal) else MemoryReceipt(target, store.path(target), done)
    operation: Operation = Remove(handle) if action == "remove" else Replace(handle, text, _read_until(request))
    if action == "add":
        operation = Add(text, _read_until(request))
    if target == NOTES:
        return write_notes(store, [operation], PERSON)
    return apply_seen(store, target, operation, request.form.get("file", ""), read_allowed(request))


def _read_until(request: PageRequest) -> str:
    """The last day that the form asks for: "" if it is the one that the form showed, and `never` if it was emptied."""
    wanted, shown = request.form.get("until", "").strip(), request.form.get("until_shown", "")
    return "" if wanted == shown else wanted or NEVER


def _read_source(request: PageRequest) -> Target:
    name = request.path["target"]
    return NOTES if name == NOTES else read_target(name)


def _conflict(request: PageRequest, target: Target, entry_id: str, text: str) -> View:
    conflict = find_conflict(request.memory.curated, target, entry_id, text)
    return _entry_form(request, target, conflict["current_id"], text, 409, conflict=conflict)


def _entry_form(
    request: PageRequest,
    target: Target,
    entry_id: str,
    text: str,
    status: int,
    *,
    conflict: dict[str, Any] | None = None,
    refusal: str = "",
    findings: tuple[str, ...] = (),
) -> View:
    view = _entry_view(request, target, entry_id, text) | {
        "conflict": conflict,
        "refusal": refusal,
        "refused_findings": findings,
    }
    return View("memory_entry.html", "Entry", view, status)


def _entry_view(request: PageRequest, target: Target, entry_id: str, text: str) -> dict[str, Any]:
    """What the page shows. `id` names the text that the form replaces; it is empty if the entry is gone."""
    store = request.memory.curated
    elsewhere = [(each, file_name(each)) for each in store.storage.targets() if each != target]
    if target != NOTES and store.notes is not None:
        elsewhere.append((NOTES, "the notes, which only search finds"))
    return {
        "target": target,
        "is_note": target == NOTES,
        "file": file_name(target),
        "elsewhere": elsewhere,
        "until": _until_of(store, target, text),
        "id": entry_id,
        "text": text,
        "fingerprint": "" if target == NOTES else store.view(target).fingerprint,
        "can_write": request.may("curate"),
        "findings": (),
        "origin": None,
        "origin_message": None,
        "conflict": None,
        "refusal": "",
        "refused_findings": (),
    }


def _until_of(store: MemoryStore, target: Target, text: str) -> str:
    """The last day of an entry or note; "" if it has none."""
    if target == NOTES:
        notes = store.notes.all() if store.notes is not None else ()
        return next((note.until for note in notes if note.text == text), "")
    return next((each.until for each in store.facts(target) if each.entry.text == text), "")


def _message_of(request: PageRequest, origin: EntryOrigin | None) -> int | None:
    if origin is None or not origin.session or not request.has_record:
        return None
    try:
        at = datetime.fromisoformat(origin.at.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
    return find_message(request.memory.sessions, origin.session, at)


ENTRY = Page("memory-entry", "/memory/{target}/{entry}", show_entry, submit_entry)


def show_prompt(request: PageRequest) -> View:
    return View("memory_prompt.html", "Prompt", request.memory.preview_prompt())


PROMPT = Page("memory-prompt", "/memory/prompt", show_prompt)
