"""Results of memory writes, entries and proposals as the service shows them; the paths of files stay on the server."""

from dataclasses import asdict

from memoranda.memory.curated.approval_queue import Proposal, encode_operation
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.write_result import AwaitsApproval, MemoryReceipt, MemoryRefusalReason, MemoryWriteResult
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer
from memoranda.support.canonical_text import digest
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


def entry_id(text: str) -> str:
    """The id of an entry, which its text decides."""
    return digest(text)[:8]


def etag_of(text: str) -> str:
    """The ETag of an entry."""
    return f'"{digest(text)[:32]}"'


def entry_json(entry: ScannedEntry) -> JsonObject:
    return {"id": entry_id(entry.text), "text": entry.visible_text, "blocked": list(entry.findings)}


def as_answer(outcome: MemoryWriteResult) -> Answer:
    """A receipt without any text of the entries, so that it can be stored; raises Problem for a refusal."""
    if isinstance(outcome, AwaitsApproval):
        body: JsonObject = {"target": outcome.target, "message": outcome.message, "change": None, "ids": []}
        return Answer(body | {"proposal": outcome.proposal}, 202)
    if isinstance(outcome, MemoryReceipt):
        written = [edit.after for edit in outcome.edits if edit.after is not None]
        is_new = any(edit.before is None for edit in outcome.edits)
        return Answer(
            {
                "target": outcome.target,
                "message": outcome.message,
                "change": outcome.change,
                "ids": [entry_id(text) for text in written],
            },
            201 if is_new else 200,
            {"ETag": etag_of(written[0])} if len(written) == 1 else {},
        )
    status = _STATUS[outcome.reason]
    headers = {"Retry-After": "1"} if status == 503 else {}
    findings = {"findings": list(outcome.findings)} if outcome.findings else {}
    raise Problem(status, outcome.reason, outcome.message, headers, **findings)


def operations_json(store: MemoryStore, proposal: Proposal) -> JsonObject:
    """A proposal with its texts as they may be shown."""

    def show(text: str) -> str:
        return store.visible_text(proposal.target, text)

    operations = [
        {name: text if name == "action" else show(text) for name, text in encode_operation(item).items()}
        for item in proposal.operations
    ]
    replaced = [None if text is None else show(text) for text in proposal.replaced]
    return asdict(proposal) | {"operations": operations, "replaced": replaced, "sources": list(proposal.sources)}
