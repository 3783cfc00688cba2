"""The routes of operators: is the process alive, can it use its stores, what has it done."""

from memoranda.errors import MemorandaError
from memoranda.service.http import metrics
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Route, WaitingAnswer
from memoranda.service.http.service import Service
from memoranda.service.http.shapes import Field, Object, Text
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
    """The counters of this process, and what the stores say now, as far as they can be read."""
    service = call.service

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
    spending = service.memory.services.spending_today()
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
