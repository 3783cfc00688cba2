"""The `session_search` tool: browse, discover, scroll and read past conversations, by one schema.

Which fields are set decides the mode. The answer is always a JSON object, and never larger than the settings allow.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from memoranda.errors import StorageError
from memoranda.recall import guidance
from memoranda.recall.discovery import discover, project_field
from memoranda.recall.evidence import add_neighbours, fit_message
from memoranda.recall.explain_empty import impossible_filter
from memoranda.recall.json_size import echo_input, fit_json, size_of
from memoranda.recall.request import MAX_RESULTS, MAX_WINDOW, SearchRequest, read_request
from memoranda.recall.session_db import SessionDB
from memoranda.recall.settings import RecallSettings
from memoranda.recall.summaries import NOTE, Summarize, add_summaries
from memoranda.recall.times import show_time
from memoranda.sessions.conversations import Conversation, Window
from memoranda.sessions.feed import FeedMessage
from memoranda.support.projects import matching_projects
from memoranda.tools import InvalidArgumentsError, JsonObject, Tool, tool_refusal

_log = logging.getLogger(__name__)

_READ_AT_ONCE = 60
_READ_MESSAGE = 1_500
_TOOL_OUTPUT = 300
_NEIGHBOUR_SHARE = 700
# What the counts, a cursor and the word about it take.
_CURSOR = 300
# What there is in a list beside its entries: the counts, a cursor, and why it is empty.
_REST = 200
_LONGEST_ERROR = 1_000

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": guidance.QUERY},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": guidance.LIMIT},
        "sort": {"type": "string", "enum": ["newest", "oldest"], "description": guidance.SORT},
        "role_filter": {"type": "string", "description": guidance.ROLES},
        "since": {"type": "string", "description": guidance.SINCE},
        "until": {"type": "string", "description": guidance.UNTIL},
        "source": {"type": "string", "description": guidance.SOURCE},
        "project": {"type": "string", "description": guidance.PROJECT},
        "session_id": {"type": "string", "description": guidance.SESSION_ID},
        "around_message_id": {"type": "integer", "description": guidance.AROUND},
        "window": {"type": "integer", "minimum": 1, "maximum": MAX_WINDOW, "description": guidance.WINDOW},
        "cursor": {"type": "string", "description": guidance.CURSOR},
        "why": {"type": "boolean", "default": False, "description": guidance.WHY},
    },
}  # fmt: skip


class SessionSearchTool:
    """The tool for one scope of the store, and for one conversation that is going on, if there is one."""

    def __init__(
        self,
        open_db: Callable[[], SessionDB],
        settings: RecallSettings | None = None,
        *,
        current_session_id: str | None = None,
        summarize: Summarize | None = None,
        here: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`here` is the project that is meant by "this" when the conversation that is going on has none."""
        self._open_db = open_db
        self._settings = settings or RecallSettings()
        self._current = current_session_id
        self._summarize = summarize
        self._here = here

    def definitions(self) -> tuple[Tool, ...]:
        return (Tool("session_search", guidance.TOOL_DESCRIPTION, PARAMETERS, self.call),)

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Answer one call; never raises."""
        try:
            answer = self._answer(read_request(arguments, time.time()), self._open_db())
        except InvalidArgumentsError as error:
            return _refused("invalid", str(error))
        except StorageError as error:
            return _refused("unavailable", str(error))
        except Exception as error:
            # The last line of defence for a promise: a tool answers, it never raises.
            _log.exception("session_search failed")
            return _refused("internal", f"Search failed unexpectedly ({type(error).__name__}: {error}).")
        return answer if size_of(answer) <= self._settings.answer_chars else _refused("too_large", guidance.TOO_LARGE)

    def _answer(self, request: SearchRequest, db: SessionDB) -> JsonObject:
        if request.around is not None:
            return self._scroll(db, request, request.around)
        if request.session_id:
            return self._read(db, request)
        projects = self._projects(db, request.project)
        if request.query:
            return self._discover(db, request, projects)
        return self._browse(db, request, projects)

    def _discover(self, db: SessionDB, request: SearchRequest, projects: frozenset[str] | None) -> JsonObject:
        in_context, settings = self._in_context(db), self._settings
        if self._summarize is None:
            return discover(db, request, settings, self._current, in_context, projects)
        smaller = replace(settings, answer_chars=settings.answer_chars - NOTE)
        answer = discover(db, request, smaller, self._current, in_context, projects)
        add_summaries(answer, request.query, db, self._summarize, settings)
        return answer

    def _projects(self, db: SessionDB, wanted: str) -> frozenset[str] | None:
        """The projects that are meant, as sessions carry them; None when any will do."""
        if not wanted:
            return None
        if wanted.lower() == "this":
            row = (db.get_session(self._current) if self._current else None) or {}
            wanted = row.get("project") or self._here() or ""
            if not wanted:
                raise InvalidArgumentsError(guidance.NOWHERE)
        return matching_projects(db.known_projects(), wanted)

    def _in_context(self, db: SessionDB) -> frozenset[int]:
        return frozenset() if self._current is None else db.live_message_ids(self._current)

    def _browse(self, db: SessionDB, request: SearchRequest, projects: frozenset[str] | None) -> JsonObject:
        rows = db.list_sessions_rich(
            source=request.sources,
            exclude_sources=() if request.sources else self._settings.hidden_sources,
            # One more than asked for, to know whether there are more; the current one may be among them.
            limit=request.limit + 2,
            offset=request.cursor,
            order_by_last_active=True,
            min_message_count=1,
            since=request.since,
            until=request.until,
            projects=projects,
        )
        place = db.conversation_of(self._current) if self._current else None
        others = [row for row in rows if place is None or row["conversation_id"] != place.conversation_id]
        answer: JsonObject = {"success": True, "mode": "browse", "results": [], "count": 0}
        room = self._settings.answer_chars - _REST
        looked_at = 0
        for row in others[: request.limit]:
            entry = _list_entry(row)
            size = size_of(entry) + 2
            if size > room and answer["results"]:
                break
            looked_at += 1
            if size <= room:
                answer["results"].append(entry)
                room -= size
        answer["count"] = len(answer["results"])
        if len(others) > looked_at:
            answer["cursor"] = str(request.cursor + rows.index(others[looked_at]))
        if not answer["results"]:
            limited = request.sources or request.since or request.until or request.cursor or rows or projects
            said = {"message": guidance.NO_OTHERS if limited else guidance.EMPTY}
            answer |= impossible_filter(db, request, projects) or said
        return answer

    def _scroll(self, db: SessionDB, request: SearchRequest, around: int) -> JsonObject:
        place = db.conversation_of(request.session_id)
        if place is None:
            return _refused("not_found", f"There is no session {echo_input(request.session_id)!r}.")
        in_context = self._in_context(db)
        if around in in_context:
            return _refused("in_context", guidance.IN_CONTEXT)
        window = db.window_around(around, request.window, without=in_context)
        owner = next((m.session_id for m in window.messages if m.id == around), "") if window else ""
        # A branch repeats what was said in the conversation that it comes from.
        related = {row["id"] for row in db.get_ancestors(request.session_id)}
        if window is None or owner not in {*place.sessions, *related}:
            return _refused(
                "not_found", f"Message {around} is not in the conversation of {echo_input(request.session_id)!r}."
            )
        answer = {"success": True, "mode": "scroll", "around_message_id": around, "window": request.window}
        answer |= _meta(db, owner)
        return _fill_scroll(answer, window, around, request.cursor, self._settings.answer_chars)

    def _read(self, db: SessionDB, request: SearchRequest) -> JsonObject:
        place = db.conversation_of(request.session_id)
        if place is None:
            return _refused("not_found", f"There is no session {echo_input(request.session_id)!r}.")
        window = db.messages_behind(place, request.cursor, _READ_AT_ONCE, without=self._in_context(db))
        answer: JsonObject = {"success": True, "mode": "read"} | _meta(db, request.session_id)
        if not window.before and (parent := _parent(db, place)):
            answer |= {"parent_session_id": parent, "note": guidance.BRANCHED}
        answer |= {"messages": [], "messages_before": window.before, "messages_after": window.after}
        room = self._settings.answer_chars - size_of(answer) - 200
        for number, message in enumerate(window.messages):
            fitting = fit_message(message, _most_of(message), room)
            if fitting is None:
                answer["messages_after"] += len(window.messages) - number
                break
            room -= fitting.size
            answer["messages"].append(fitting.entry)
        if answer["messages_after"] and answer["messages"]:
            answer |= {"cursor": str(answer["messages"][-1]["id"]), "message": guidance.READ_ON}
        elif not answer["messages"] and request.cursor:
            answer["message"] = guidance.NOTHING_FURTHER
        return answer


def _refused(reason: str, error: str) -> JsonObject:
    return tool_refusal(reason, fit_json(error, _LONGEST_ERROR))


def _meta(db: SessionDB, session_id: str) -> JsonObject:
    session = db.get_session(session_id) or {}
    return {
        "session_id": session_id,
        "session_meta": {
            "title": session.get("title") and echo_input(session["title"]),
            "when": show_time(session.get("started_at")),
            "source": echo_input(session.get("source") or ""),
            "model": echo_input(session.get("model") or "") or None,
        }
        | project_field(session),
    }


def _parent(db: SessionDB, place: Conversation) -> str | None:
    """The session in which a conversation has its beginning, when it came out of another one."""
    first = db.get_session(place.conversation_id) or {}
    parent = first.get("parent_session_id")
    return parent if parent and db.get_session(parent) else None


def _list_entry(row: Mapping[str, Any]) -> JsonObject:
    return {
        "session_id": row["id"],
        "title": row["title"] and echo_input(row["title"]),
        "source": echo_input(row["source"]),
        "started": show_time(row["started_at"]),
        "last_active": show_time(row["last_active"]),
        "message_count": row["message_count"],
        "preview": row["preview"],
    } | project_field(row)


def _most_of(message: FeedMessage) -> int:
    return _READ_MESSAGE if message.role in ("user", "assistant") else _TOOL_OUTPUT


def _fill_scroll(answer: JsonObject, window: Window, around: int, start: int, budget: int) -> JsonObject:
    """The anchor with as much of its text as fits, from `start` on, and its neighbours in what room there is."""
    position = next(place for place, message in enumerate(window.messages) if message.id == around)
    room = budget - size_of(answer) - _CURSOR
    # Neighbours get a share, so that one long message does not hide what was said around it.
    for_anchor = room - min(room // 2, _NEIGHBOUR_SHARE * (len(window.messages) - 1))
    anchor = fit_message(window.messages[position], for_anchor, for_anchor, start=start, anchor=True)
    shown = [] if anchor is None else [anchor.entry]
    room -= 0 if anchor is None else anchor.size
    before, after, _ = add_neighbours(window.messages, position, shown, _READ_MESSAGE, room)
    answer |= {"messages": shown, "messages_before": window.before + before, "messages_after": window.after + after}
    end = start + len(anchor.entry["content"]) if anchor else start
    if anchor and anchor.entry.get("chars", 0) > end > start:
        answer |= {"cursor": str(end), "message": guidance.READ_ON}
    return answer
