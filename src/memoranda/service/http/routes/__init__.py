"""The table of all routes of the service's own API."""

from functools import cache

from memoranda.service.http.json_text import write_json
from memoranda.service.http.openapi import describe_api
from memoranda.service.http.route import Answer, Call, Route
from memoranda.service.http.routes import feed, items, memory, operation, search, sessions, transfer, turns
from memoranda.service.http.shapes import Object


@cache
def _description() -> bytes:
    return write_json(describe_api(ROUTES))


def _openapi(call: Call) -> Answer:
    return Answer(_description())


ROUTES: tuple[Route, ...] = (
    *sessions.ROUTES,
    *turns.MESSAGE_ROUTES,
    *turns.ROUTES,
    *search.ROUTES,
    *search.RECALL_ROUTES,
    *memory.ROUTES,
    *items.ROUTES,
    *feed.ROUTES,
    *transfer.ROUTES,
    *operation.AUDIT_ROUTES,
    *operation.ROUTES,
    Route(
        "GET",
        "/openapi.json",
        "openapi",
        None,
        _openapi,
        "This description",
        Object((), extra=True),
        for_user=False,
        tag=operation.TAG,
        pool=None,
    ),
)
