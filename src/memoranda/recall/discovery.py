"""Discover: from a query to a few conversations with their evidence, under one size."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memoranda.index.content import words_of
from memoranda.index.postings import Filter
from memoranda.recall import guidance
from memoranda.recall.evidence import Evidence, show, size_of
from memoranda.recall.query import Query
from memoranda.recall.request import Request
from memoranda.recall.search import Found, Hit
from memoranda.recall.session_db import SessionDB
from memoranda.recall.settings import RecallSettings
from memoranda.recall.snippets import excerpt
from memoranda.recall.times import show_time
from memoranda.tools import JsonObject

_CURSOR = 40
_NAME = 100
_CONTROL = {number: " " for number in range(32)}
_OPENING = 3


def discover(
    db: SessionDB,
    request: Request,
    settings: RecallSettings,
    current: str | None,
    in_context: frozenset[int],
    projects: frozenset[str] | None = None,
) -> JsonObject:
    """The conversations that match best, each with the messages around its best match.

    Of the `current` session, what is `in_context` does not count, and neither does its title. `projects` are the only
    ones that count, unless it is None.
    """
    among = replace(_filter(db, request, settings), without=in_context, projects=projects)
    found = db.find(
        request.query,
        among,
        limit=request.cursor + request.limit + 1,
        sort=request.sort,
    )
    place = db.conversation_of(current) if current else None
    if place is not None:
        others = [hit for hit in found.hits if hit.message_id or hit.conversation_id != place.conversation_id]
        found = replace(found, hits=tuple(others))
    answer = _envelope(request, found, among)
    hits = found.hits[request.cursor : request.cursor + request.limit]
    evidence = Evidence(db, in_context)
    room = settings.answer_chars - size_of(answer) - _CURSOR
    looked_at = 0
    with db.one_view():
        for number, hit in enumerate(hits):
            result = _result(db, hit, found.query, evidence, room // (len(hits) - number) - 2, why=request.why)
            size = 0 if result is None else size_of(result) + 2
            if size > room and answer["results"]:
                break
            looked_at = number + 1
            room -= size
            if result is not None:
                answer["results"].append(result)
    answer["count"] = len(answer["results"])
    if len(found.hits) > request.cursor + looked_at:
        answer["cursor"] = str(request.cursor + looked_at)
    return answer


def _filter(db: SessionDB, request: Request, settings: RecallSettings) -> Filter:
    return Filter(
        db.scope,
        sources=request.sources,
        excluded_sources=frozenset() if request.sources else frozenset(settings.hidden_sources),
        roles=request.roles,
        since=request.since,
        until=request.until,
        titles=request.roles is None,
    )


def _envelope(request: Request, found: Found, among: Filter) -> JsonObject:
    answer: JsonObject = {
        "success": True,
        "mode": "discover",
        "query": request.query[:200],
        "matched": found.how,
        "results": [],
        "count": 0,
        "sessions_matched": found.matched_sessions,
    }
    if found.missing:
        answer["not_found"] = list(found.missing)[:10]
    if found.note:
        answer["note"] = found.note
    if not found.hits:
        answer["message"] = guidance.NOTHING if found.terms else guidance.NO_WORDS
        if among.projects is not None and not among.projects:
            answer["message"] = guidance.NO_PROJECT
    if request.why:
        answer["why"] = {"terms": list(found.terms)[:20], "filters": _describe(among)}
    return answer


def _describe(among: Filter) -> JsonObject:
    filters: JsonObject = {
        "user": "everyone" if among.scope.all else among.scope.user,
        "sources": sorted(among.sources) if among.sources else None,
        "hidden_sources": sorted(among.excluded_sources) or None,
        "roles": sorted(among.roles) if among.roles else None,
        "projects": [name[:_NAME] for name in sorted(among.projects)[:5]] if among.projects is not None else None,
        "since": show_time(among.since),
        "until": show_time(among.until),
    }
    return {name: value for name, value in filters.items() if value is not None}


def _result(db: SessionDB, hit: Hit, query: Query, evidence: Evidence, room: int, *, why: bool) -> JsonObject | None:
    session = db.get_session(hit.session_id)
    if session is None:
        # Gone since the index was asked.
        return None
    result: JsonObject = {
        "session_id": hit.session_id,
        "title": session["title"],
        "when": None,
        "source": session["source"][:_NAME],
        "model": session["model"] and session["model"][:_NAME],
        "matched_role": hit.role,
        "match_message_id": hit.message_id,
        "matches": hit.matches,
        "snippet": "",
    }
    result |= with_project(session)
    if session["parent_session_id"]:
        result["parent_session_id"] = session["parent_session_id"]
    if why:
        result["why"] = {"score": round(hit.score, 3), **{key: round(value, 3) for key, value in hit.signals.items()}}
    if hit.message_id is None:
        return _opening(db, hit, session, result, room)
    message = db.find_message(hit.message_id)
    if message is None:
        return None
    words = words_of(message)
    shown = excerpt(words.said, query)
    if shown.at is None and words.beside:
        # What a tool was asked is beside the text, which has no match.
        shown = excerpt(words.beside, query)._replace(at=0)
    result |= {
        "matched_role": message.role[:_NAME],
        "when": show_time(message.timestamp),
        "snippet": shown.text.translate(_CONTROL),
    }
    around = evidence.around(hit.message_id, shown.at or 0, room - size_of(result))
    return None if around is None else result | around


def with_project(session: Mapping[str, Any]) -> JsonObject:
    """The project of a session as a field of what is shown of it; nothing when it has none."""
    return {"project": session["project"][:_NAME]} if session.get("project") else {}


def _opening(db: SessionDB, hit: Hit, session: dict[str, Any], result: JsonObject, room: int) -> JsonObject | None:
    """For a conversation that is found by its title: how it began."""
    place = db.conversation_of(hit.session_id)
    if place is None:
        return None
    window = db.messages_behind(place, 0, _OPENING)
    share = (room - size_of(result) - 200) // _OPENING
    fitting = [show(message, 500, share) for message in window.messages]
    shown = [each.entry for each in fitting if each is not None]
    return result | {
        "when": show_time(session["started_at"]),
        "snippet": f"Title: {session['title']}",
        "match_message_id": window.messages[0].id if window.messages else None,
        "bookend_start": [],
        "messages": shown,
        "bookend_end": [],
        "messages_before": window.before,
        "messages_after": window.after,
    }
