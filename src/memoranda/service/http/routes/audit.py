"""The route of the audit log."""

from dataclasses import asdict

from memoranda.home.access.keys import DEFAULT_TENANT
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.sessions import PAGE_FIELDS
from memoranda.service.http.shapes import Field, ListOf, Number, Object, Text, optional

_ENTRY = Object(
    (
        Field("at", Number(), "In seconds since 1970.", required=True),
        Field("key_id", Text(), "The API key; empty without one.", required=True),
        Field("tenant", Text(), "The tenant of the key.", required=True),
        Field("user", optional(Text(), "text"), "Whose data it was; null for the home's owner.", required=True),
        Field("action", Text(), "What was done: memory.add, session.delete, forget …", required=True),
        Field("subject", Text(), "The session, change, entry or proposal.", required=True),
        Field("request_id", Text(), "The id of the request.", required=True),
    ),
    name="AuditEntry",
)


def read_audit_log(call: Call) -> Answer:
    """One page of what keys changed and deleted, the newest first: of the caller's tenant, or of one user."""
    caller, limit = call.caller, call.query.get("limit", 20)
    before = None
    if "cursor" in call.query:
        (before,) = read_cursor(call.query["cursor"], "audit", (int,))
    named = call.query.get("user")
    is_owner = caller.tenant == DEFAULT_TENANT and caller.user is None
    user = call.stored_user(named) if named is not None or caller.user is not None else None
    entries = call.service.audit.read(
        # The owner of the home sees all tenants.
        tenant=None if is_owner else caller.tenant,
        user=user,
        before=before,
        limit=limit + 1,
    )
    page = entries[:limit]
    shown = [
        {name: value for name, value in asdict(entry).items() if name != "id"} | {"user": caller.shown_user(entry.user)}
        for entry in page
    ]
    more = {"next_cursor": write_cursor("audit", page[-1].id)} if len(entries) > limit else {}
    return Answer({"entries": shown, **more})


ROUTES = (
    Route(
        "GET", "/v1/audit", "audit_log", "admin", read_audit_log, "Read the audit log",
        Object((
            Field("entries", ListOf(_ENTRY), "One page, the newest first.", required=True),
            Field("next_cursor", Text(), "For the next page; missing on the last one."),
        ), name="AuditLog"),
        query=(*PAGE_FIELDS, Field("user", Text(1, 200), "Only what concerned this user.")),
        for_user=False, tag="operation", example=Example(query={"limit": 1}),
    ),
)  # fmt: skip
