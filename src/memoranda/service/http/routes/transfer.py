"""The routes of whole sessions: export and import as JSON lines, forget, and usage."""

from collections.abc import Iterator
from itertools import chain, dropwhile
from typing import Any

from memoranda.memory.record.transfer.items import is_item, take_items
from memoranda.service.http.json_text import read_json
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import JSON_LINES, Answer, Call, Example, Route, Stream
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Object, Text, Whole
from memoranda.support.tool import JsonObject

TAG = "transfer"
_MAX_ERRORS = 100
_PART_BYTES = 64_000
_MAX_PAGE = 1_000


def export(call: Call) -> Stream:
    """All sessions of a user, one per line, the oldest first, and then all items.

    `after` continues an export that broke off; with a `source` there are no items, which have none. With a `limit`
    they come with the last page of sessions.
    """
    transfer = call.memory.sessions.transfer
    ids = transfer.exported_ids(call.query.get("source"))
    if "after" in call.query:
        if call.query["after"] not in ids:
            raise Problem(404, "not_found", "The session in 'after' is not a part of this export.")
        ids = list(dropwhile(lambda session_id: session_id != call.query["after"], ids))[1:]
    limit = call.query.get("limit", len(ids))
    ids, is_last = ids[:limit], len(ids) <= limit
    has_items = is_last and "source" not in call.query
    items = call.memory.sessions.item_transfer.export_lines() if has_items else iter(())

    def parts() -> Iterator[bytes]:
        buffer, size = list[bytes](), 0
        for part in chain(chain.from_iterable(map(transfer.export_line, ids)), items):
            # Half a surrogate pair becomes its escape, which is what JSON writes for it.
            buffer.append(part.encode("utf-8", "backslashreplace"))
            size += len(buffer[-1])
            if size >= _PART_BYTES:
                yield b"".join(buffer)
                buffer, size = [], 0
        if buffer:
            yield b"".join(buffer)

    return Stream(parts())


def import_sessions(call: Call) -> Answer:
    """Import exported sessions and items for one user; a second import adds nothing.

    Items need the scope that changes them elsewhere; without it, a body that has one is refused as a whole.
    """
    if "curate" not in call.caller.scopes and any(map(is_item, _read_lines(call.body, []))):
        call.caller.require("curate")
    errors: list[JsonObject] = []
    items: list[JsonObject] = []
    report = call.memory.sessions.import_sessions(take_items(_read_lines(call.body, errors), items))
    errors += [{"session_id": error["session_id"], "error": error["error"]} for error in report.errors]
    added = call.memory.sessions.item_transfer.import_items(_without_user(items))
    errors += [{"item": error["index"], "error": error["error"]} for error in added.errors]
    call.service.metrics.add("memoranda_appended_messages_total", report.messages)
    call.audit("import", f"{len(report.imported)} sessions")
    return Answer(
        {
            "imported": len(report.imported),
            "updated": len(report.updated),
            "unchanged": len(report.skipped),
            "messages": report.messages,
            "items": added.imported + added.updated,
            "renamed": report.renamed,
            "errors": errors[:_MAX_ERRORS],
        }
    )


def _without_user(items: list[JsonObject]) -> Iterator[JsonObject]:
    for each in items:
        item = each["item"]
        fields = {name: value for name, value in item.items() if name != "user_id"} if isinstance(item, dict) else item
        yield {"item": fields}


def _read_lines(raw: bytes, errors: list[JsonObject]) -> Iterator[Any]:
    """The sessions in a body. They belong to the user of the request, not to those they were exported for."""
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            session = read_json(line)
        except Problem as problem:
            errors.append({"line": number, "error": problem.detail})
            continue
        if not isinstance(session, dict):
            errors.append({"line": number, "error": "The line is not an object."})
            continue
        yield {name: value for name, value in session.items() if name != "user_id"}


def forget(call: Call) -> Answer:
    """Forget a text, a session, an entry or everything of the user, everywhere, and report what is left."""
    body = dict(call.body)
    dry_run, whole_words = body.pop("dry_run", False), body.pop("whole_words", False)
    if len(body) != 1:
        raise Problem(422, "invalid", "Name exactly one of text, session, entry and everything.")
    if body.pop("everything", None) is not None:
        if call.user is None:
            raise Problem(422, "invalid", "The home's owner cannot be forgotten; name a user.")
        body = {"user": call.user}
    report = call.memory.forget(**body, whole_words=whole_words, dry_run=dry_run)
    if not dry_run:
        call.audit("forget", report.subject, user_is_forgotten=report.subject == "user")
    hide, shown = call.service.hide_home, report.as_data()
    places = [[{**place, "where": hide(str(place["where"]))} for place in shown[name]] for name in ("found", "left")]
    names = ("subject", "count", "complete", "dry_run", "warning", "notes", "at_services", "files_read", "bytes_read")
    problems = [hide(text) for text in report.problems]
    return Answer({name: shown[name] for name in names} | {"found": places[0], "left": places[1], "problems": problems})


def usage(call: Call) -> Answer:
    """How many sessions, messages and tokens a user has."""
    found = call.memory.sessions.statistics()
    return Answer({name: value for name, value in found.items() if name != "redacted_secrets"})


_PLACES = ListOf(Anything(), 0, 1_000_000)
ROUTES = (
    Route(
        "GET", "/v1/export", "export", "read", export, "Export all sessions and items of a user as JSON lines", None,
        query=(
            Field("source", Text(1, 100), "Only sessions with this source."),
            Field("after", Text(1, 200), "Continue after this session."),
            Field("limit", Whole(1, _MAX_PAGE), "At most so many sessions; fewer mean that there are no more."),
        ),
        media_type=JSON_LINES, problems=(404,), tag=TAG, example=Example(),
    ),
    Route(
        "POST", "/v1/import", "import_sessions", "append", import_sessions,
        "Import exported sessions; with the scope `curate` also items",
        Object((
            Field("imported", Whole(), "How many sessions are new.", required=True),
            Field("updated", Whole(), "How many got new messages.", required=True),
            Field("unchanged", Whole(), "How many were complete.", required=True),
            Field("messages", Whole(), "How many messages are new.", required=True),
            Field("items", Whole(), "How many items are new or newer.", required=True),
            Field("renamed", Object((), extra=True), "The titles of sessions whose title was taken.", required=True),
            Field("errors", ListOf(Anything(), 0, _MAX_ERRORS), "What was refused, and why.", required=True),
        ), name="Imported"),
        body=Anything(), body_type=JSON_LINES, large_body=True, tag=TAG,
    ),
    Route(
        "POST", "/v1/forget", "forget", "admin", forget, "Forget something everywhere",
        Object((
            Field("count", Whole(), "In how many places it was.", required=True),
            Field("complete", Flag(), "Whether nothing is left in the home.", required=True),
            Field("found", _PLACES, "Where it was, and what was done there.", required=True),
            Field("left", _PLACES, "Where it still is.", required=True),
        ), extra=True, name="Forgotten"),
        body=Object((
            Field("text", Text(1, 10_000), "A text, in any case and spacing."),
            Field("session", Text(1, 200), "A conversation, by the id of a session."),
            Field("entry", Text(1, 1_000), "An entry of curated memory: `entry:<id>`, or a part of it."),
            Field("everything", Flag(), "Everything of the user."),
            Field("whole_words", Flag(), "Match the text only as whole words."),
            Field("dry_run", Flag(), "Only list where it is."),
        ), name="Forget"),
        tag=TAG, example=Example(body={"text": "Cacilhas", "dry_run": True}),
    ),
    Route(
        "GET", "/v1/usage", "usage", "read", usage, "Count the sessions, messages and tokens of a user",
        Object((), extra=True, name="Usage"), tag=TAG, example=Example(),
    ),
)  # fmt: skip
