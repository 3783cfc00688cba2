"""The `session_search` tool: browse, discover, scroll and read past conversations, by one schema.

Which fields are set decides the mode. The answer is always a JSON object, and never larger than the settings allow.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.errors import StorageError
from memoranda.recall import guidance
from memoranda.recall.discovery import discover, with_project
from memoranda.recall.evidence import outwards, show, size_of
from memoranda.recall.request import MOST_RESULTS, MOST_WINDOW, InvalidRequestError, Request, read_request
from memoranda.recall.session_db import SessionDB
from memoranda.recall.settings import RecallSettings
from memoranda.recall.summaries import Summarize, add_summaries
from memoranda.recall.times import show_time
from memoranda.sessions.feed import FeedMessage
from memoranda.sessions.views import Window
from memoranda.support.projects import among
from memoranda.tools import JsonObject, Tool

_log = logging.getLogger(__name__)

_READ_AT_ONCE = 60
_READ_MESSAGE = 1_500
_TOOL_OUTPUT = 300
_NEIGHBOUR_SHARE = 700
# What the counts, a cursor and the word about it take.
_CURSOR = 300
_NAME = 100

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": guidance.QUERY},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "description": guidance.LIMIT},
        "sort": {"type": "string", "enum": ["newest", "oldest"], "description": guidance.SORT},
        "role_filter": {"type": "string", "description": guidance.ROLES},
        "since": {"type": "string", "description": guidance.SINCE},
        "until": {"type": "string", "description": guidance.UNTIL},
        "source": {"type": "string", "description": guidance.SOURCE},
        "project": {"type": "string", "description": guidance.PROJECT},
        "session_id": {"type": "string", "description": guidance.SESSION_ID},
        "around_message_id": {"type": "integer", "description": guidance.AROUND},
        "window": {"type": "integer", "minimum": 1, "maximum": MOST_WINDOW, "description": guidance.WINDOW},
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
            return self._answer(read_request(arguments, time.time()), self._open_db())
        except InvalidRequestError as error:
            return _refuse("invalid", str(error))
        except StorageError as error:
            return _refuse("unavailable", str(error))
        except Exception as error:
            # The last line of defence for a promise: a tool answers, it never raises.
            _log.exception("session_search failed")
            return _refuse("internal", f"Search failed unexpectedly ({type(error).__name__}: {error}).")

    def _answer(self, request: Request, db: SessionDB) -> JsonObject:
        if request.around is not None:
            return self._scroll(db, request, request.around)
        if request.session_id:
            return self._read(db, request)
        projects = self._projects(db, request.project)
        if request.query:
            answer = discover(db, request, self._settings, self._current, self._in_context(db), projects)
            if self._summarize is not None:
                add_summaries(answer, request.query, db, self._summarize, self._settings)
            return answer
        return self._browse(db, request, projects)

    def _projects(self, db: SessionDB, wanted: str) -> frozenset[str] | None:
        """The projects that are meant, as sessions carry them; None when any will do."""
        if not wanted:
            return None
        if wanted.lower() == "this":
            row = (db.get_session(self._current) if self._current else None) or {}
            wanted = row.get("project") or self._here() or ""
            if not wanted:
                raise InvalidRequestError(guidance.NOWHERE)
        return among(db.known_projects(), wanted)

    def _in_context(self, db: SessionDB) -> frozenset[int]:
        return frozenset() if self._current is None else db.live_message_ids(self._current)

    def _browse(self, db: SessionDB, request: Request, projects: frozenset[str] | None) -> JsonObject:
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
        shown = [_list_entry(row) for row in others[: request.limit]]
        while size_of(shown) > self._settings.answer_chars - 200:
            shown.pop()
        answer: JsonObject = {"success": True, "mode": "browse", "results": shown, "count": len(shown)}
        if len(others) > len(shown):
            answer["cursor"] = str(request.cursor + rows.index(others[len(shown)]))
        if not shown:
            limited = request.sources or request.since or request.until or request.cursor or rows or projects
            answer["message"] = guidance.NO_OTHERS if limited else guidance.EMPTY
            if projects is not None and not projects:
                answer["message"] = guidance.NO_PROJECT
        return answer

    def _scroll(self, db: SessionDB, request: Request, around: int) -> JsonObject:
        place = db.conversation_of(request.session_id)
        if place is None:
            return _refuse("not_found", f"There is no session {request.session_id[:100]!r}.")
        in_context = self._in_context(db)
        if around in in_context:
            return _refuse("in_context", guidance.IN_CONTEXT)
        window = db.window_around(around, request.window, without=in_context)
        owner = next((m.session_id for m in window.messages if m.id == around), "") if window else ""
        # A branch repeats what was said in the conversation that it comes from.
        related = {row["id"] for row in db.get_ancestors(request.session_id)}
        if window is None or owner not in {*place.sessions, *related}:
            return _refuse("not_found", f"Message {around} is not in the conversation of {request.session_id[:100]!r}.")
        answer = {"success": True, "mode": "scroll", "around_message_id": around, "window": request.window}
        answer |= _meta(db, owner)
        return _fill_scroll(answer, window, around, request.cursor, self._settings.answer_chars)

    def _read(self, db: SessionDB, request: Request) -> JsonObject:
        place = db.conversation_of(request.session_id)
        if place is None:
            return _refuse("not_found", f"There is no session {request.session_id[:100]!r}.")
        window = db.messages_behind(place, request.cursor, _READ_AT_ONCE, without=self._in_context(db))
        answer: JsonObject = {"success": True, "mode": "read"} | _meta(db, request.session_id)
        answer |= {"messages": [], "messages_before": window.before, "messages_after": window.after}
        room = self._settings.answer_chars - size_of(answer) - 200
        for number, message in enumerate(window.messages):
            fitting = show(message, _most_of(message), room)
            if fitting is None:
                answer["messages_after"] += len(window.messages) - number
                break
            room -= fitting.size
            answer["messages"].append(fitting.entry)
        if answer["messages_after"] and answer["messages"]:
            answer |= {"cursor": str(answer["messages"][-1]["id"]), "message": guidance.READ_ON}
        return answer


def _meta(db: SessionDB, session_id: str) -> JsonObject:
    session = db.get_session(session_id) or {}
    return {
        "session_id": session_id,
        "session_meta": {
            "title": session.get("title"),
            "when": show_time(session.get("started_at")),
            "source": (session.get("source") or "")[:_NAME],
            "model": (session.get("model") or "")[:_NAME] or None,
        }
        | with_project(session),
    }


def _refuse(reason: str, error: str) -> JsonObject:
    return {"success": False, "reason": reason, "error": error}


def _list_entry(row: Mapping[str, Any]) -> JsonObject:
    return {
        "session_id": row["id"],
        "title": row["title"],
        "source": row["source"][:_NAME],
        "started": show_time(row["started_at"]),
        "last_active": show_time(row["last_active"]),
        "message_count": row["message_count"],
        "preview": row["preview"],
    } | with_project(row)


def _most_of(message: FeedMessage) -> int:
    return _READ_MESSAGE if message.role in ("user", "assistant") else _TOOL_OUTPUT


def _fill_scroll(answer: JsonObject, window: Window, around: int, start: int, budget: int) -> JsonObject:
    """The anchor with as much of its text as fits, from `start` on, and its neighbours in what room there is."""
    position = next(place for place, message in enumerate(window.messages) if message.id == around)
    room = budget - size_of(answer) - _CURSOR
    # Neighbours get a share, so that one long message does not hide what was said around it.
    for_anchor = room - min(room // 2, _NEIGHBOUR_SHARE * (len(window.messages) - 1))
    anchor = show(window.messages[position], for_anchor, for_anchor, start=start, anchor=True)
    shown = [] if anchor is None else [anchor.entry]
    room -= 0 if anchor is None else anchor.size
    before, after, _ = outwards(window.messages, position, shown, _READ_MESSAGE, room)
    answer |= {"messages": shown, "messages_before": window.before + before, "messages_after": window.after + after}
    end = start + len(anchor.entry["content"]) if anchor else start
    if anchor and anchor.entry.get("chars", 0) > end > start:
        answer |= {"cursor": str(end), "message": guidance.READ_ON}
    return answer
