"""The routes of curated memory: its entries, its log with undo, and the proposals that await a person.

The paths of files stay on the server.
"""

from typing import get_args

from memoranda.api.curate import curate
from memoranda.api.project_memory import find_target
from memoranda.api.status import memory_status
from memoranda.errors import SessionError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.approval_queue import Proposal
from memoranda.memory.curated.facts import Category, EntryFacts
from memoranda.memory.curated.moves import move_entry, write_notes
from memoranda.memory.curated.operations import (
    Add,
    AwaitsApproval,
    MemoryReceipt,
    MemoryRefusal,
    MemoryRefusalReason,
    MemoryWriteResult,
    Operation,
    Put,
    Remove,
    Replace,
)
from memoranda.memory.curated.settings import NOTES, Target, is_target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import similar_to
from memoranda.search.request import show_time
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.sessions import PAGE_FIELDS
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Object, Text, Whole, optional
from memoranda.support.canonical_text import digest
from memoranda.support.origin import PERSON, Origin
from memoranda.support.tool import JsonObject

_STATUS: dict[MemoryRefusalReason, int] = {
    "invalid": 422,
    "disabled": 403,
    "blocked": 422,
    "over_budget": 409,
    "no_match": 404,
    "ambiguous": 409,
    "approval": 403,
    "drift": 409,
    "conflict": 409,
    "unreadable": 503,
    "undecodable": 503,
    "symlink": 503,
    "locked": 503,
    "storage": 503,
}
TAG = "memory"
_MAX_CHARS = 100_000
_BLOCKED = "The text looks like an attack or has a secret; it is not shown."
ENTRY = Object(
    (
        Field("id", Text(8, 8), "Derived from the text: a changed entry has another id.", required=True),
        Field("text", Text(0, _MAX_CHARS), "The entry, or a placeholder if it is blocked.", required=True),
        Field("shown", Text(0, _MAX_CHARS), "The same with its day, if it says yesterday or the like.", required=True),
        Field("blocked", ListOf(Text(), 0, 100), f"What the scanner found. {_BLOCKED}", required=True),
        Field("written", Text(), "When it was written, in UTC.", required=True),
        Field("confirmed", optional(Text(), "a time"), "When it was last confirmed; null if never.", required=True),
        Field("actor", Text(0, 1_000), "Who wrote it: person, agent, review …", required=True),
        Field("session_id", Text(0, 1_000), "The conversation in which it was written.", required=True),
        Field("message_id", optional(Whole(), "a number"), "The user's message that it followed.", required=True),
        Field("category", Text(choices=get_args(Category)), "What it is about, by rules.", required=True),
        Field("until", Text(0, 10), "Its last day; empty if it has none.", required=True),
        Field("expired", Flag(), "Whether that day is over; prompts leave it out then.", required=True),
    ),
    name="Entry",
)
_ENTRIES = Object(
    (
        Field("target", Text(1, 300), "memory, user, or that of a project.", required=True),
        Field("entries", ListOf(ENTRY, 0, 100_000), "All entries, in order.", required=True),
        Field("used", Whole(), "How many characters they use.", required=True),
        Field("limit", Whole(), "How many they may use.", required=True),
    ),
    name="Entries",
)
_NEW_ENTRY = Object(
    (
        Field("text", Text(1, _MAX_CHARS), "The entry.", required=True),
        Field(
            "origin", Text(choices=("person", "agent")),
            "Who wants it: a person, or an agent whose writes may await approval (memory.write_approval). person "
            "without it.",
        ),
        Field("session_id", Text(1, 200), "The session in which it was said, for the log."),
        Field("key", Text(1, 60), "The text becomes the value of this key, in place of the earlier one."),
        Field("until", Text(1, 40), "The last day on which it is true: 2027-01-31, 2w, or never."),
    ),
    name="NewEntry",
)  # fmt: skip
RECEIPT = Object(
    (
        Field("success", Flag(), "With status 202: false, because nothing was saved."),
        Field("staged", Flag(), "With status 202: true, a person decides."),
        Field("target", Text(1, 300), "memory, user, or that of a project.", required=True),
        Field("message", Text(0, 2_000), "What was done.", required=True),
        Field("change", optional(Whole(), "a number"), "The number in the log; null if nothing changed.", True),
        Field("ids", ListOf(Text(8, 8), 0, 1_000), "The ids of the entries that were written.", required=True),
        Field(
            "similar",
            ListOf(Text(0, _MAX_CHARS), 0, 2),
            "The entries or notes of the same memory that share most with "
            "the new text, the closest first: is it a new value of the same thing? Empty in a repeated answer.",
            True,
        ),
        Field("proposal", Text(8, 8), "With status 202: the proposal that awaits a person."),
    ),
    name="Receipt",
)
_CHANGE = Object(
    (
        Field("number", Whole(), "The number of the change.", required=True),
        Field("target", Text(1, 300), "memory, user, or that of a project.", required=True),
        Field("action", Text(), "add, replace, remove, undo …", required=True),
        Field("actor", Text(), "Who: person, agent, review …", required=True),
        Field("at", Text(), "When, in UTC.", required=True),
        Field("edits", ListOf(Anything(), 0, 100_000), "Each entry `before` and `after`; null for none.", True),
    ),
    extra=True,
    name="MemoryChange",
)
_PROPOSAL = Object((Field("id", Text(8, 8), "The id of the proposal.", True),), extra=True, name="Proposal")
_NOTE = "Bookings go through Ana."
_PATH = "/v1/memory/{target}/entries"
_ONE = f"{_PATH}/{{entry_id}}"
_CURATE = "/v1/memory/curate"
_CURATION = Object(
    (
        Field("changes", ListOf(Anything(), 0, 100_000), "Each with rule, target, before, after and reason.", True),
        Field("mode", Text(), "curate.mode of the service.", required=True),
        Field("applied", ListOf(Whole()), "The numbers of the changes that were made."),
        Field("refused", ListOf(Text()), "Why changes were not made."),
        Field("without_model", Text(0, 2_000), "Why the model of curate.model was not asked."),
    ),
    name="Curation",
)
_WRITE_PROBLEMS = (403, 404, 409, 412)
_MOVE = Object(
    (
        Field("target", Text(1, 300), "Where it is: memory, user, notes, or that of a project.", required=True),
        Field("to", Text(1, 300), "Where it goes.", required=True),
        Field("old_text", Text(1, _MAX_CHARS), "A part of it that no other has, or entry: with its id.", required=True),
        Field("origin", Text(choices=("person", "agent")), "Who wants it; person without it."),
        Field("session_id", Text(1, 200), "The session in which it was asked for, for the log."),
    ),
    name="Move",
)


def entry_id(text: str) -> str:
    """The id of an entry, which its text decides."""
    return digest(text)[:8]


def etag_of(text: str) -> str:
    return f'"{digest(text)[:32]}"'


def entry_json(facts: EntryFacts) -> JsonObject:
    entry = facts.entry
    return {
        "id": entry_id(entry.text),
        "text": entry.visible_text,
        "shown": facts.shown,
        "blocked": list(entry.findings),
        "written": show_time(facts.written),
        "confirmed": None if facts.confirmed is None else show_time(facts.confirmed),
        "actor": facts.actor,
        "session_id": facts.session,
        "message_id": facts.message,
        "category": facts.category,
        "until": facts.until,
        "expired": facts.expired,
    }


def _as_answer(outcome: MemoryWriteResult, store: MemoryStore) -> Answer:
    """A receipt; raises Problem for a refusal. Only `similar` has texts of entries: it is not stored for a retry."""
    if isinstance(outcome, AwaitsApproval):
        body: JsonObject = {"success": False, "staged": True, "target": outcome.target, "message": outcome.message}
        body |= {"change": None, "ids": [], "similar": similar_to(outcome, store), "proposal": outcome.proposal}
        return Answer(body, 202)
    if isinstance(outcome, MemoryReceipt):
        written = [edit.after for edit in outcome.edits if edit.after is not None]
        is_new = any(edit.before is None for edit in outcome.edits)
        return Answer(
            {
                "target": outcome.target,
                "message": outcome.message,
                "change": outcome.change,
                "ids": [entry_id(text) for text in written],
                "similar": similar_to(outcome, store),
            },
            201 if is_new else 200,
            {"ETag": etag_of(written[0])} if len(written) == 1 else {},
        )
    status = _STATUS[outcome.reason]
    headers = {"Retry-After": "1"} if status == 503 else {}
    findings = {"findings": list(outcome.findings)} if outcome.findings else {}
    raise Problem(status, outcome.reason, outcome.message, headers, **findings)


def _target(call: Call) -> Target:
    return _read_target(call, call.path["target"])


def _read_target(call: Call, target: str) -> Target:
    if target == NOTES:
        return target
    if not is_target(target):
        there_are = "there is memory, user, notes, and project: with the name of one"
        raise Problem(404, "not_found", f"There is no memory {target[:60]!r}; {there_are}.")
    try:
        return find_target(call.memory, target)
    except SessionError as error:
        raise Problem(404, "not_found", str(error)) from None


def _origin(call: Call) -> Origin:
    body = call.body or {}
    session_id = body.get("session_id", "")
    if body.get("origin") == "agent":
        # Nothing shows that the text is the user's.
        return Origin("agent", session_id, sources=("a program over HTTP",))
    return Origin(PERSON.actor, session_id, explicit=True)


def _find(call: Call, target: Target) -> EntryFacts:
    """The entry that the path names, unless If-Match asks for another state of it; raises Problem 404 or 412."""
    wanted = call.path["entry_id"]
    every = _facts(call, target)
    found = next((facts for facts in every if entry_id(facts.entry.text) == wanted), None)
    if found is None:
        raise Problem(404, "not_found", f"There is no entry {wanted[:60]!r}; it may have changed.")
    condition = call.headers.get("if-match")
    etag = etag_of(found.entry.text)
    if condition not in (None, "*") and etag not in [item.strip() for item in condition.split(",")]:
        raise Problem(412, "changed", "The entry is not the one that If-Match names. Read it again.")
    return found


def _facts(call: Call, target: Target) -> list[EntryFacts]:
    store = call.memory.curated
    if target != NOTES:
        return store.facts(target)
    notes = [note.as_entry() for note in store.notes.all()] if store.notes is not None else []
    return [note for note in notes if store.visible_text(note.target, note.entry.text) == note.entry.text]


def _write(call: Call, target: Target, action: str, operation: Operation) -> Answer:
    """Carry out one operation. Entries are found by the digest of their whole text, under the lock of the store."""
    store, origin = call.memory.curated, _origin(call)
    is_note = target == NOTES
    outcome = write_notes(store, [operation], origin) if is_note else store.apply(target, [operation], origin)
    return _report(call, action, outcome)


def _report(call: Call, action: str, outcome: MemoryWriteResult) -> Answer:
    answer = _as_answer(outcome, call.memory.curated)
    body = answer.body
    if body["change"] is not None:
        call.service.metrics.add("memoranda_curated_changes_total")
        call.audit(f"memory.{action}", f"{body['target']} change {body['change']}")
    elif "proposal" in body:
        call.audit(f"memory.{action}.proposed", f"{body['target']} proposal {body['proposal']}")
    return answer


def list_entries(call: Call) -> Answer:
    """All entries of a target as they are now; notes have no limit."""
    target = _target(call)
    if target == NOTES:
        notes = [entry_json(facts) for facts in _facts(call, target)]
        used = sum(len(note["text"]) for note in notes)
        return Answer({"target": target, "entries": notes, "used": used, "limit": 0})
    view = call.memory.curated.view(target)
    body = {
        "target": view.target,
        "entries": [entry_json(facts) for facts in call.memory.curated.facts(view.target)],
        "used": view.used,
        "limit": view.limit,
    }
    return Answer(body, headers={"ETag": f'"{view.fingerprint}"'})


def get_entry(call: Call) -> Answer:
    """One entry, with the ETag for If-Match."""
    found = _find(call, _target(call))
    return Answer(entry_json(found), headers={"ETag": etag_of(found.entry.text)})


def add_entry(call: Call) -> Answer:
    """Add an entry; one that exists is not added twice."""
    text, key, until = call.body["text"], call.body.get("key", ""), call.body.get("until", "")
    return _write(call, _target(call), "add", Put(key, text, until) if key else Add(text, until))


def replace_entry(call: Call) -> Answer:
    target = _target(call)
    found = _find(call, target)
    operation = Replace(f"entry:{digest(found.entry.text)}", call.body["text"], call.body.get("until", ""))
    return _write(call, target, "replace", operation)


def remove_entry(call: Call) -> Answer:
    """Remove an entry; undo restores it."""
    target = _target(call)
    found = _find(call, target)
    return _write(call, target, "remove", Remove(f"entry:{digest(found.entry.text)}"))


def confirm_entry(call: Call) -> Answer:
    """Note in the log that an entry is still true; its text stays."""
    target = _target(call)
    wanted = f"entry:{digest(_find(call, target).entry.text)}"
    outcome = change_history.confirm_entry(call.memory.curated, (target,), wanted, PERSON)
    if isinstance(outcome, MemoryRefusal):
        return _as_answer(outcome, call.memory.curated)
    call.audit("memory.confirm", f"{target} entry {call.path['entry_id']}")
    return get_entry(call)


def move(call: Call) -> Answer:
    """Move an entry to another target or to the notes, or a note to a target; one undo takes it back."""
    source, to = (_read_target(call, call.body[name]) for name in ("target", "to"))
    return _report(call, "move", move_entry(call.memory.curated, source, call.body["old_text"], to, _origin(call)))


def get_value(call: Call) -> Answer:
    """The value that was remembered under a key."""
    return Answer({"value": call.memory.curated.get(call.query["key"])})


def propose_curation(call: Call) -> Answer:
    """What the curator would change, by rules; nothing is written, and no model is asked."""
    return Answer({**curate(call.memory.services, call.memory.curated, call.memory.user, apply=False, model=False)})


def apply_curation(call: Call) -> Answer:
    """Do what the curator would change: what leaves a memory is kept as a note, and each change can be undone."""
    answer = curate(call.memory.services, call.memory.curated, call.memory.user, apply=True)
    for change in answer.get("applied", ()):
        call.audit("memory.curate", f"change {change}")
    return Answer({**answer})


def status(call: Call) -> Answer:
    """How full and old memory is, what awaits a decision, and what was saved this week."""
    return Answer(memory_status(call.memory.services, call.memory.curated, call.memory.user))


def log(call: Call) -> Answer:
    """One page of the changes, the newest first."""
    store, limit = call.memory.curated, call.query.get("limit", 20)
    target = _read_target(call, call.query["target"]) if "target" in call.query else None
    changes = change_history.log(store, target)[::-1]
    if "cursor" in call.query:
        (before,) = read_cursor(call.query["cursor"], "log", (int,))
        changes = [change for change in changes if change.number < before]
    page = changes[:limit]
    described = [change_history.change_data(store, change) for change in page]
    more = {"next_cursor": write_cursor("log", page[-1].number)} if len(changes) > limit else {}
    return Answer({"changes": described, **more})


def difference(call: Call) -> Answer:
    """The entries that were added and removed since a change, outside changes of the files included."""
    found = change_history.difference_data(call.memory.curated, call.query.get("since"))
    if found is None:
        raise Problem(404, "not_found", f"There is no change {call.query['since']}.")
    return Answer({"targets": found})


def undo(call: Call) -> Answer:
    """Undo one change, as a new change of its own."""
    outcome = change_history.undo(call.memory.curated, (call.body or {}).get("change"), PERSON)
    return _report(call, "undo", outcome)


def list_proposals(call: Call) -> Answer:
    """The proposals that await a person, the oldest first."""
    store = call.memory.curated
    return Answer({"proposals": [change_history.proposal_data(store, proposal) for proposal in store.proposals.all()]})


def _proposal(call: Call) -> Proposal:
    found = call.memory.curated.proposals.get(call.path["proposal_id"])
    if found is None:
        raise Problem(404, "not_found", f"There is no proposal {call.path['proposal_id'][:60]!r}.")
    return found


def approve(call: Call) -> Answer:
    """Apply a proposal, if it still changes the entries that the person was shown."""
    return _report(call, "approve", call.memory.curated.approve(_proposal(call)))


def reject(call: Call) -> Answer:
    """Reject a proposal; its text is kept until the history is purged."""
    found = _proposal(call)
    call.memory.curated.proposals.reject(found)
    call.audit("memory.reject", f"{found.target} proposal {found.id}")
    return Answer(status=204)


_ENTRY_PATH = {"target": "memory", "entry_id": entry_id(_NOTE)}
ROUTES = (
    Route(
        "GET", _PATH, "list_entries", "read", list_entries, "List the entries of curated memory", _ENTRIES,
        problems=(404,), tag=TAG, example=Example({"target": "memory"}),
    ),
    Route(
        "POST", _PATH, "add_entry", "curate", add_entry, "Add an entry", RECEIPT, 201, body=_NEW_ENTRY,
        other_statuses=(200, 202), idempotent=True, problems=(403, 404, 409), tag=TAG,
        example=Example({"target": "user"}, body={"text": "Prefers window seats."}),
    ),
    Route(
        "GET", _ONE, "get_entry", "read", get_entry, "Read an entry", ENTRY,
        problems=(404, 412), conditional=True, tag=TAG, example=Example(_ENTRY_PATH),
    ),
    Route(
        "PATCH", _ONE, "replace_entry", "curate", replace_entry, "Replace an entry", RECEIPT, body=_NEW_ENTRY,
        other_statuses=(202,), conditional=True, problems=_WRITE_PROBLEMS, tag=TAG,
        example=Example(_ENTRY_PATH, headers={"If-Match": etag_of(_NOTE)}, body={"text": "Bookings go through Bo."}),
    ),
    Route(
        "DELETE", _ONE, "remove_entry", "curate", remove_entry, "Remove an entry", RECEIPT, conditional=True,
        problems=_WRITE_PROBLEMS, tag=TAG,
        example=Example(_ENTRY_PATH | {"entry_id": entry_id("The office is closed on Fridays.")}),
    ),
    Route(
        "POST", f"{_ONE}/confirm", "confirm_entry", "curate", confirm_entry, "Confirm that an entry is still true",
        ENTRY, conditional=True, problems=_WRITE_PROBLEMS, tag=TAG, example=Example(_ENTRY_PATH),
    ),
    Route(
        "POST", "/v1/memory/move", "move_entry", "curate", move, "Move an entry or a note", RECEIPT, body=_MOVE,
        other_statuses=(201,), problems=(403, 404, 409), tag=TAG,
        example=Example(body={"target": "user", "to": "notes", "old_text": "window seats"}),
    ),
    Route(
        "GET", "/v1/memory/value", "get_value", "read", get_value, "Read the value of a keyed entry",
        Object((Field("value", optional(Text(0, _MAX_CHARS), "text"), "The value; null if there is none.", True),),
               name="KeyedValue"),
        query=(Field("key", Text(1, 60), "What stands before the colon of the entry.", required=True),),
        tag=TAG, example=Example(query={"key": "time zone"}),
    ),
    Route(
        "GET", _CURATE, "propose_curation", "read", propose_curation, "See what the curator would change", _CURATION,
        tag=TAG, example=Example(),
    ),
    Route(
        "POST", _CURATE, "apply_curation", "curate", apply_curation, "Tidy up curated memory", _CURATION,
        tag=TAG, example=Example(),
    ),
    Route(
        "GET", "/v1/memory/status", "memory_status", "read", status, "See how full and old memory is, and what waits",
        Object((
            Field("memory", ListOf(Anything(), 0, 100_000), "Each memory: used, limit, entries, oldest_days …", True),
            Field("notes", Whole(), "How many notes there are.", required=True),
            Field("waiting", Anything(), "The number of `proposals`, and of changes of the `curator`.", required=True),
            Field("week", Anything(), "What was saved, and the conversations by agent, in seven days.", required=True),
        ), name="MemoryStatus"),
        tag=TAG, example=Example(),
    ),
    Route(
        "GET", "/v1/memory/log", "memory_log", "read", log, "List the changes of curated memory",
        Object((
            Field("changes", ListOf(_CHANGE), "One page, the newest first.", required=True),
            Field("next_cursor", Text(), "For the next page; missing on the last one."),
        ), name="MemoryLog"),
        query=(*PAGE_FIELDS, Field("target", Text(1, 300), "Only changes of this memory.")),
        tag=TAG, example=Example(query={"limit": 1}),
    ),
    Route(
        "GET", "/v1/memory/diff", "memory_diff", "read", difference, "See what is different since a change",
        Object((Field("targets", Anything(), "By target, what was `added` and `removed`.", True),), name="Difference"),
        query=(Field("since", Whole(1), "The number of the change that counts first; the latest without it."),),
        problems=(404,), tag=TAG, example=Example(query={"since": 1}),
    ),
    Route(
        "POST", "/v1/memory/undo", "undo_change", "curate", undo, "Undo a change of curated memory", RECEIPT,
        other_statuses=(201,),
        body=Object((Field("change", Whole(1), "Its number in the log; the latest without it."),), name="Undo"),
        problems=(404, 409), tag=TAG, example=Example(body={"change": 3}),
    ),
    Route(
        "GET", "/v1/memory/proposals", "list_proposals", "read", list_proposals, "List what awaits approval",
        Object((Field("proposals", ListOf(_PROPOSAL, 0, 100_000), "The oldest first.", True),), name="Proposals"),
        tag=TAG, example=Example(),
    ),
    Route(
        "POST", "/v1/memory/proposals/{proposal_id}/approve", "approve_proposal", "curate", approve,
        "Apply a proposal", RECEIPT, other_statuses=(201,), problems=_WRITE_PROBLEMS, tag=TAG,
    ),
    Route(
        "POST", "/v1/memory/proposals/{proposal_id}/reject", "reject_proposal", "curate", reject,
        "Reject a proposal", None, 204, problems=(404,), tag=TAG,
    ),
)  # fmt: skip
