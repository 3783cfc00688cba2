"""The table of all routes of the service's own API."""

from functools import cache

from memoranda.service.http.json_text import write_json
from memoranda.service.http.openapi import describe_api
from memoranda.service.http.route import Answer, Call, Route
from memoranda.service.http.routes import (
    audit,
    feed,
    health,
    items,
    memory,
    messages,
    recall,
    search,
    sessions,
    transfer,
    turns,
)
from memoranda.service.http.shapes import Object


@cache
def _description() -> bytes:
    return write_json(describe_api(ROUTES))


def _openapi(call: Call) -> Answer:
    return Answer(_description())


ROUTES: tuple[Route, ...] = (
    *sessions.ROUTES,
    *messages.ROUTES,
    *turns.ROUTES,
    *search.ROUTES,
    *recall.ROUTES,
    *memory.ROUTES,
    *items.ROUTES,
    *feed.ROUTES,
    *transfer.ROUTES,
    *audit.ROUTES,
    *health.ROUTES,
    Route(
        "GET",
        "/openapi.json",
        "openapi",
        None,
        _openapi,
        "This description",
        Object((), extra=True),
        for_user=False,
        tag=health.TAG,
        pool=None,
    ),
)
