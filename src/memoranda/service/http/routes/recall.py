"""The routes of recall and of the frozen prompt."""

from hashlib import sha256

from memoranda.api.recall import MAX_BLOCK_CHARS
from memoranda.models.tokens import estimate_text
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.sessions import SESSION_ID
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Object, Text, Whole

TAG = "recall"


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


def prompt(call: Call) -> Answer:
    """The system prompt of a session. The first request freezes it: until compression it stays the same bytes."""
    session_id = call.query["session"]
    row = call.memory.sessions.get_session(session_id)
    if row is None:
        raise Problem(404, "not_found", f"There is no session {session_id[:200]!r}.")
    text = row.get("system_prompt")
    if not text:
        session = call.memory.session(session_id=session_id, source=row["source"])
        session_id, text = session.id, session.freeze_prompt()
        session.external.close()
    etag = f'"{sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'
    return Answer({"session_id": session_id, "prompt": text, "tokens": estimate_text(text)}, headers={"ETag": etag})


ROUTES = (
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
        tag=TAG, example=Example(body={"question": "Who makes the bookings?", "limit": 1}),
    ),
    Route(
        "GET", "/v1/prompt", "prompt", "read", prompt, "Read the frozen prompt of a session",
        Object((
            Field("session_id", Text(), "The session, or the one that continues it.", required=True),
            Field("prompt", Text(0, 10_000_000), "The system prompt.", required=True),
            Field("tokens", Whole(), "About how many tokens it has.", required=True),
        ), name="Prompt"),
        query=(Field("session", Text(1, 200), "The id of the session.", required=True),),
        problems=(404,), tag=TAG, example=Example(query={"session": "trip-to-lisbon"}),
    ),
)  # fmt: skip
