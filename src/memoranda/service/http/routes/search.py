"""The routes of search and recall."""

from memoranda.errors import SessionError
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Number, Object, OneOf, Text, Whole
from memoranda.support.tool import JsonObject

TAG = "search"
_ROLES = ("user", "assistant", "tool", "system")
_TIME = OneOf((Text(1, 60), Number()), "a time")
_TIME_FORMS = "30d, 12h, 2026-11-01, 2026-11-01T14:30, or seconds since 1970"
SEARCH = Object(
    (
        Field("query", Text(0, 10_000), 'Words, "a phrase", AND OR NOT, or a question; the latest ones without it.'),
        Field("limit", Whole(1, 50), "How many conversations; 3 without it."),
        Field("sort", Text(choices=("newest", "oldest")), "Order by time instead of by relevance."),
        Field("roles", ListOf(Text(choices=_ROLES), 1, 4), "Only messages of these roles."),
        Field("sources", ListOf(Text(1, 100), 1, 50), "Only sessions with these sources."),
        Field("project", Text(1, 1_000), "Only sessions of this project."),
        Field("since", _TIME, f"Only messages since: {_TIME_FORMS}."),
        Field("until", _TIME, "Only messages until then."),
        Field("cursor", Text(1, 1_000), "The `cursor` of the answer before."),
        Field("why", Flag(), "With the signals that ranked each result."),
    ),
    name="Search",
)
_NAMES = {"roles": "role_filter", "sources": "source"}


def search(call: Call) -> Answer:
    """Find past conversations, each with the messages that match and those around them."""
    call.service.metrics.add("memoranda_searches_total")
    return _search(call, {_NAMES.get(name, name): value for name, value in call.body.items()})


def read(call: Call) -> Answer:
    """Read a part of one conversation, from its start or around a message."""
    return _search(call, dict(call.body))


def _search(call: Call, options: JsonObject) -> Answer:
    if "cursor" in options:
        (options["cursor"],) = read_cursor(options["cursor"], "search", (str,))
    try:
        answer: JsonObject = dict(call.memory.search(**options))
    except SessionError as error:
        raise Problem(422, "invalid", str(error)) from None
    if "cursor" in answer:
        answer["cursor"] = write_cursor("search", answer["cursor"])
    return Answer({name: value for name, value in answer.items() if name != "success"})


_READ = Object(
    (
        Field("session_id", Text(1, 200), "The session.", required=True),
        Field("around_message_id", Whole(1), "The message in the middle; the start of the conversation without it."),
        Field("window", Whole(1, 20), "How many messages on either side of it."),
        Field("cursor", Text(1, 1_000), "The `cursor` of the answer before."),
    ),
    name="Read",
)
ROUTES = (
    Route(
        "POST", "/v1/search", "search", "read", search, "Find past conversations",
        Object((
            Field("results", ListOf(Object((Field("session_id", Text(), "", True),), extra=True, name="Hit")),
                  "The hits, the best first: as the session_search tool answers.", True),
            Field("count", Whole(), "How many there are in this answer.", required=True),
            Field("mode", Text(), "discover with a query, browse without one.", required=True),
        ), extra=True, name="SearchResult"),
        body=SEARCH, tag=TAG, pool="search", example=Example(body={"query": "ferry", "limit": 1}),
    ),
    Route(
        "POST", "/v1/read", "read_conversation", "read", read, "Read a part of one conversation",
        Object((
            Field("session_id", Text(), "The session.", required=True),
            Field("messages", ListOf(Anything(), 0, 1_000), "Its messages, as search shows them.", required=True),
            Field("mode", Text(), "read from the start, scroll around a message.", required=True),
        ), extra=True, name="ConversationPart"),
        body=_READ, tag=TAG, example=Example(body={"session_id": "trip-to-lisbon"}),
    ),
)  # fmt: skip
