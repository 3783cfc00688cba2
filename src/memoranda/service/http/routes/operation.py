"""The routes of operators: is the process alive, can it use its stores, what has it done, and the audit log."""

from dataclasses import asdict

from memoranda.errors import MemorandaError
from memoranda.service.http import metrics
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route, WaitingAnswer
from memoranda.service.http.routes.sessions import PAGE_FIELDS
from memoranda.service.http.service import Service
from memoranda.service.http.shapes import Field, ListOf, Number, Object, Text, optional
from memoranda.service.http.workers import CHECK_SECONDS

TAG = "operation"
# Name, kind, meaning, the statistic of the pool, and how many of its units are one of ours.
_CONNECTIONS = (
    ("memoranda_database_connections", "gauge", "Connections to the database.", "pool_size", 1),
    ("memoranda_database_idle_connections", "gauge", "Connections that no request uses.", "pool_available", 1),
    ("memoranda_database_waiting", "gauge", "Requests that wait for a connection now.", "requests_waiting", 1),
    ("memoranda_database_waits_total", "counter", "Requests that waited for a connection.", "requests_queued", 1),
    ("memoranda_database_wait_seconds_total", "counter", "How long they waited.", "requests_wait_ms", 1_000),
    ("memoranda_database_timeouts_total", "counter", "Attempts that got no connection.", "requests_errors", 1),
    ("memoranda_database_lost_connections_total", "counter", "Connections that broke.", "connections_lost", 1),
)
_STATE = Object((Field("status", Text(), "ok", required=True),), name="State")
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


def livez(call: Call) -> Answer:
    """The process answers."""
    return Answer({"status": "ok"})


def readyz(call: Call) -> WaitingAnswer:
    """The record and the service's own database can be read; Problem 503 otherwise, after a few seconds at most."""
    service = call.service

    def check() -> None:
        if service.stopping.is_set():
            raise Problem(503, "stopping", "The service is stopping.")
        try:
            service.memory.sessions.get_session("readyz")
            service.keys.exist()
        except MemorandaError as error:
            raise Problem(503, "not_ready", str(error), {"Retry-After": "1"}) from error

    async def answer() -> Answer:
        await service.workers.run(check, pool_name="check", seconds=CHECK_SECONDS)
        return Answer({"status": "ok"})

    return WaitingAnswer(answer)


def show_metrics(call: Call) -> WaitingAnswer:
    """The counters of this process, and what the stores say now, as far as they can be read; they count all users."""
    service = call.service
    if not call.caller.is_owner:
        raise Problem(403, "forbidden", "The counters are for keys of the home itself, without a tenant or user.")

    async def answer() -> Answer:
        try:
            gauges = await service.workers.run(lambda: _read_stores(service), pool_name="check", seconds=CHECK_SECONDS)
            is_up = True
        except (Problem, MemorandaError):
            # The counters are needed most when something is wrong.
            gauges, is_up = {}, False
        gauges["memoranda_stores_up"] = ("gauge", "Whether the stores could be read for this answer.", is_up)
        gauges["memoranda_feed_streams"] = ("gauge", "Clients that follow the feed.", service.feed.streams)
        if connections := service.database.connection_statistics():
            gauges |= {name: (kind, text, connections[key] / unit) for name, kind, text, key, unit in _CONNECTIONS}
        return Answer(service.metrics.text(gauges).encode(), media_type=metrics.MEDIA_TYPE)

    return WaitingAnswer(answer)


def _read_stores(service: Service) -> dict[str, tuple[str, str, float]]:
    # The indexes of single users catch up when a user is searched for.
    index = None if service.memory.config.recall.user_index_mb else service.memory.sessions.index.state()
    spending = service.memory.services.ledger.today()
    return {
        "memoranda_follower_lag_messages": (
            "gauge",
            "Messages that the search index has yet to read.",
            0 if index is None else max(0, index.head.count - index.indexed.count),
        ),
        "memoranda_redacted_secrets_total": (
            "counter",
            "Credentials that were removed before text was stored.",
            int(service.memory.sessions.get_meta("redacted_secrets") or 0),
        ),
        "memoranda_spent_usd_today": ("gauge", "US dollars that background work spent today.", spending.usd),
        "memoranda_spent_tokens_today": ("gauge", "Tokens that background work used today.", spending.tokens),
    }


ROUTES = (
    Route("GET", "/livez", "livez", None, livez, "Whether the process is alive", _STATE, for_user=False, tag=TAG,
          pool=None),
    Route(
        "GET", "/readyz", "readyz", None, readyz, "Whether the service can use its stores", _STATE, for_user=False,
        problems=(503,), tag=TAG, pool=None,
    ),
    Route(
        "GET", "/metrics", "metrics", "admin", show_metrics, "Counters in the format of Prometheus", None,
        for_user=False, media_type=metrics.MEDIA_TYPE, tag=TAG, pool=None, during_outage=True,
    ),
)  # fmt: skip


def read_audit_log(call: Call) -> Answer:
    """One page of what keys changed and deleted, the newest first: of the caller's tenant, or of one user."""
    caller, limit = call.caller, call.query.get("limit", 20)
    before = None
    if "cursor" in call.query:
        (before,) = read_cursor(call.query["cursor"], "audit", (int,))
    named = call.query.get("user")
    user = call.stored_user(named) if named is not None or caller.user is not None else None
    entries = call.service.audit.read(
        # The owner of the home sees all tenants.
        tenant=None if caller.is_owner else caller.tenant,
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


AUDIT_ROUTES = (
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
