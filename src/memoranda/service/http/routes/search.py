"""The routes of search, of recall and of the frozen prompt."""

from hashlib import sha256

from memoranda.api.recall import MAX_BLOCK_CHARS
from memoranda.errors import SessionError
from memoranda.models.tokens import estimate_text
from memoranda.search.request import FILTERS, SearchFilter
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.sessions import SESSION_ID
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Number, Object, OneOf, Shape, Text, Whole
from memoranda.support.tool import JsonObject

_RECALL_TAG = "recall"
TAG = "search"
_TIME = OneOf((Text(1, 60), Number()), "a time")


def _filter_shape(described: SearchFilter) -> Shape:
    if described.is_time:
        return _TIME
    name = Text(1, 1_000, described.choices)
    return OneOf((ListOf(name, 1, 50), name), "a name or a list of names") if described.several else name


SEARCH = Object(
    (
        Field("query", Text(0, 10_000), 'Words, "a phrase", AND OR NOT, or a question; the latest ones without it.'),
        Field("limit", Whole(1, 50), "How many conversations; 3 without it."),
        Field("sort", Text(choices=("newest", "oldest")), "Order by time instead of by relevance."),
        *(Field(each.name, _filter_shape(each), each.help) for each in FILTERS),
        Field("cursor", Text(1, 1_000), "The `cursor` of the answer before."),
        Field("why", Flag(), "With the signals that ranked each result."),
    ),
    name="Search",
)
_READ = Object(
    (
        Field("session_id", Text(1, 200), "The session.", required=True),
        Field("around_message_id", Whole(1), "The message in the middle; the start of the conversation without it."),
        Field("window", Whole(1, 20), "How many messages on either side of it."),
        Field("cursor", Text(1, 1_000), "The `cursor` of the answer before."),
    ),
    name="Read",
)


def recall(call: Call) -> Answer:
    """What every part of memory knows about a question, also as one block for a prompt."""
    call.service.metrics.add("memoranda_searches_total")
    body = call.body
    result = call.memory.recall(
        body["question"],
        limit=body.get("limit", 3),
        project=body.get("project"),
        source="http",
        session_id=body.get("session_id", ""),
    )
    block = result.block(body.get("max_chars", MAX_BLOCK_CHARS)) if result.is_known else ""
    return Answer(
        {
            "known": result.is_known,
            "block": block,
            "tokens": estimate_text(block),
            "entries": [{"target": target, "text": text} for target, texts in result.entries.items() for text in texts],
            "recalled": result.recalled,
            "results": result.search["results"],
        }
    )


def recent(call: Call) -> Answer:
    """What was going on: the last conversations, newest first, and the block for a prompt that asks to continue."""
    project = call.query.get("project")
    if project is not None and project.strip().lower() == "this":
        raise Problem(422, "invalid", "A service has no working directory: name the project.")
    return Answer({**call.memory.recent(project, limit=call.query.get("limit", 3))})


def prompt(call: Call) -> Answer:
    """The system prompt of a session. The first request freezes it: until compression it stays the same bytes.

    A key that only reads shows what it would be now.
    """
    session_id = call.query["session"]
    row = call.memory.sessions.get_session(session_id)
    if row is None:
        raise Problem(404, "not_found", f"There is no session {session_id[:200]!r}.")
    text = row.get("system_prompt")
    if not text:
        session = call.memory.session(session_id=session_id, source=row["source"])
        may_freeze = "append" in call.caller.scopes
        session_id, text = session.id, session.freeze_prompt() if may_freeze else session.prompt
        session.external.close()
    etag = f'"{sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'
    return Answer({"session_id": session_id, "prompt": text, "tokens": estimate_text(text)}, headers={"ETag": etag})


RECALL_ROUTES = (
    Route(
        "POST", "/v1/recall", "recall", "read", recall, "Ask every part of memory at once",
        Object((
            Field("known", Flag(), "Whether anything was found.", required=True),
            Field("block", Text(0, 1_000_000), "A fenced block for a prompt; empty if nothing is known.", True),
            Field("tokens", Whole(), "About how many tokens the block has.", required=True),
            Field("entries", ListOf(Anything(), 0, 100_000), "The curated entries: `target` and `text`.", True),
            Field("recalled", Text(0, 1_000_000), "What an external memory recalled.", required=True),
            Field("results", ListOf(Anything()), "The hits, as a search has them.", required=True),
        ), name="Recall"),
        body=Object((
            Field("question", Text(1, 10_000), "What to look for.", required=True),
            Field("limit", Whole(1, 10), "How many conversations; 3 without it."),
            Field("project", Text(1, 1_000), "Only conversations of this project."),
            Field("session_id", SESSION_ID, "The conversation whose prompt it is for; the recall log shows it there."),
            Field("max_chars", Whole(200, 100_000), f"The longest block; {MAX_BLOCK_CHARS} without it."),
        ), name="RecallQuestion"),
        tag=_RECALL_TAG, example=Example(body={"question": "Who makes the bookings?", "limit": 1}),
    ),
    Route(
        "GET", "/v1/recent", "recent", "read", recent, "See what was going on",
        Object((
            Field("conversations", ListOf(Anything(), 0, 20), "When, which agent, what was asked, how it ended.", True),
            Field("text", Text(0, 10_000), "A fenced block for a prompt; empty if there is nothing.", required=True),
        ), name="Recent"),
        query=(
            Field("project", Text(1, 1_000), "Only conversations of this project."),
            Field("limit", Whole(1, 20), "How many conversations; 3 without it."),
        ),
        tag=_RECALL_TAG, example=Example(query={"limit": 1}),
    ),
    Route(
        "GET", "/v1/prompt", "prompt", "read", prompt, "Read the frozen prompt of a session",
        Object((
            Field("session_id", Text(), "The session, or the one that continues it.", required=True),
            Field("prompt", Text(0, 10_000_000), "The system prompt.", required=True),
            Field("tokens", Whole(), "About how many tokens it has.", required=True),
        ), name="Prompt"),
        query=(Field("session", Text(1, 200), "The id of the session.", required=True),),
        problems=(404,), tag=_RECALL_TAG, example=Example(query={"session": "trip-to-lisbon"}),
    ),
)  # fmt: skip


def search(call: Call) -> Answer:
    """Find past conversations, each with the messages that match and those around them."""
    call.service.metrics.add("memoranda_searches_total")
    return _search(call, dict(call.body))


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
