"""The answers of `session_search`: which conversations match best, and what of them fits into the answer."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memoranda.memory.curated.settings import NOTES_NAMESPACE, file_name
from memoranda.memory.record.conversations import Conversations, SessionFacts
from memoranda.memory.record.messages import NO_LIVE_IDS
from memoranda.search import guidance
from memoranda.search.browse import browse, explain_empty, read, scroll
from memoranda.search.continue_prompts import asks_what_was_done
from memoranda.search.dates import time_ranges
from memoranda.search.evidence import Evidence, ShownPart, share_room, title_by_question
from memoranda.search.excerpts import excerpt
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import Filters
from memoranda.search.query import Query
from memoranda.search.ranking import Sort
from memoranda.search.relevance import CONFIDENCES, Confidence, HitRater, read_evidence
from memoranda.search.request import FILTERS, SearchFilter, SearchRequest, echo_input, echo_list, fit_json, show_time
from memoranda.search.search import Hit, SearchResult
from memoranda.search.searchable_store import SearchableStore
from memoranda.search.settings import RecallSettings
from memoranda.search.summaries import NOTE_CHARS, Summarize, add_summaries
from memoranda.support.projects import projects_named
from memoranda.support.shorten import json_size
from memoranda.support.tool import InvalidArgumentsError, JsonObject

if TYPE_CHECKING:
    from memoranda.search.item_evidence import ItemEvidence

# Room for the counts, a cursor or a note about the end, and a message about no results.
_REST_CHARS = 250
# How many characters of the query and of the filters an answer repeats.
_MAX_QUERY_CHARS = 200
_MAX_MATCHED_CHARS = 150
_MAX_NOTE_CHARS = 300
_MAX_TERMS_CHARS = 300
_MAX_MISSING = 10
_MAX_FILTER_CHARS = 150
_MAX_NAME_CHARS = 60
_CONTROL = {number: " " for number in range(32)}
_OPENING_MESSAGES = 3
# How many of the latest conversations are shown to a query that asks what was done, and how many are looked at.
_SHOWN_WORK, _LOOKED_AT = 3, 16
_MIN_SPACES = 2
# The characters of a snippet; more for the answer to a question, which may lack the words of the question.
_SNIPPET_CHARS = 240
_ANSWER_CHARS = 400
_REQUIRED_FIELDS = (
    "session_id", "title", "when", "source", "matched_role", "match_message_id", "matches", "confidence",
)  # fmt: skip


class SearchAnswers:
    """Answers requests of one scope of the store and, if there is one, of its current session."""

    def __init__(
        self,
        settings: RecallSettings,
        current_session_id: str | None,
        summarize: Summarize | None,
        current_project: Callable[[], str | None],
    ) -> None:
        self._settings = settings
        self._current = current_session_id
        self._summarize = summarize
        self._current_project = current_project
        self._live = NO_LIVE_IDS

    def answer(self, request: SearchRequest, db: SearchableStore) -> JsonObject:
        """Answers in the mode that the request asks for; raises InvalidArgumentsError or StorageError."""
        if request.around is not None:
            return scroll(db, request, self._settings, request.around, self._in_context(db))
        if request.session_id:
            return read(db, request, self._settings, self._in_context(db))
        filters = self._build_filters(db, request)
        if request.query:
            live = [db.messages.live_rows(self._current, self._live)] if self._current else []
            with db.index.one_head(db.messages, db.feed.any_item, *live) as (any_item, *rows):
                if self._current:
                    self._live = db.messages.live_ids(self._current, self._live, rows[0])
                found = {} if request.cursor else self._find_items(db, request, any_item=bool(any_item))
                found |= self._find_last_work(db, request, filters, self._settings.answer_chars - json_size(found))
                answer = self._discover(db, request, filters, self._settings.answer_chars - json_size(found))
            return answer | found
        is_asked = "items" in request.filters and not request.cursor
        found = self._find_items(db, request, any_item=db.feed.has_items()) if is_asked else {}
        room = replace(self._settings, answer_chars=self._settings.answer_chars - json_size(found))
        if self._live.conversation_id is None:
            self._in_context(db)
        return browse(db, request, room, self._live.conversation_id, filters) | found

    def _find_items(self, db: SearchableStore, request: SearchRequest, *, any_item: bool) -> JsonObject:
        """Notes and items, in at most half of the room of an answer. Most records have none."""
        if not any_item:
            return {"items": []} if "items" in request.filters else {}
        found = _find_items(db, request)
        for name in ("items", "notes"):
            while found.get(name) and json_size(found) > self._settings.answer_chars // 2:
                found[name].pop()
        return found

    def _find_last_work(self, db: SearchableStore, request: SearchRequest, filters: Filters, room: int) -> JsonObject:
        """The last conversations of the time that a query names, if it asks what was done, in half of the room.

        Its words match nothing that was said then. With filters or an order it is a search like any other, and so are
        one or two words.
        """
        is_short = request.query.isascii() and request.query.count(" ") < _MIN_SPACES
        if is_short or request.filters or request.sort or request.cursor or not asks_what_was_done(request.query):
            return {}
        several = replace(request, limit=_LOOKED_AT)
        ranges = sorted(time_ranges(request.query, request.now or time.time(), on_weekdays=True), reverse=True)
        for within in [replace(filters, since=each.start, until=each.end) for each in ranges] or [filters]:
            found = browse(db, several, self._settings, self._live.conversation_id, within)["results"]
            # In some only an agent spoke, or what was asked is the same as now.
            asked = [each for each in found if "last_question" in each][:_SHOWN_WORK]
            while asked and json_size(asked) > room // 2:
                asked.pop()
            if asked:
                return {"last_work": asked}
        return {}

    def _discover(self, db: SearchableStore, request: SearchRequest, filters: Filters, room: int) -> JsonObject:
        filters = replace(filters, without=self._live.ids)
        if self._summarize is None:
            return discover(db, request, room, self._live.conversation_id, filters)
        answer = discover(db, request, room - NOTE_CHARS, self._live.conversation_id, filters)
        add_summaries(answer, request.query, db, self._summarize, replace(self._settings, answer_chars=room))
        return answer

    def _build_filters(self, db: SearchableStore, request: SearchRequest) -> Filters:
        """The filters of a request, with the values that the record has for the names that were typed."""
        chosen = request.filters
        hidden = frozenset() if "source" in chosen else frozenset(self._settings.hidden_sources)
        filters = Filters(
            db.scope,
            excluded_sources=hidden,
            roles=chosen.get("role_filter"),
            since=chosen.get("since"),
            until=chosen.get("until"),
            titles="role_filter" not in chosen,
        )
        for each in FILTERS:
            if each.column and each.name in chosen:
                filters = filters.with_values(each.column, self._known_values(db, each, chosen[each.name]))
        return filters

    def _known_values(self, db: SearchableStore, column: SearchFilter, typed: frozenset[str]) -> frozenset[str]:
        if column.name == "project":
            return self._projects(db, *typed)
        if not column.contains:
            return typed
        known, parts = db.listing.known_values(column.column), [text.casefold() for text in typed]
        return frozenset(value for value in known if any(part in value.casefold() for part in parts))

    def _projects(self, db: SearchableStore, project: str) -> frozenset[str]:
        """The names of the requested project in the record."""
        if project.lower() == "this":
            row = (db.sessions.get_session(self._current) if self._current else None) or {}
            project = row.get("project") or self._current_project() or ""
            if not project:
                raise InvalidArgumentsError(guidance.NOWHERE)
        return projects_named(db.listing.known_projects(), project)

    def _in_context(self, db: SearchableStore) -> frozenset[int]:
        if self._current is not None:
            self._live = db.messages.live_ids(self._current, self._live)
        return self._live.ids


def discover(
    db: SearchableStore,
    request: SearchRequest,
    room: int,
    current: str | None,
    filters: Filters,
) -> JsonObject:
    """The conversations that match best, each with the messages around its best match, in `room` characters of JSON.

    Messages of the `current` conversation that the filters exclude do not count, nor does its title.
    """
    found = db.find(
        request.query,
        filters,
        limit=request.cursor + request.limit + 1,
        sort=request.sort,
        now=request.now,
        explain=request.why,
        longer=True,
    )
    if current is not None:
        others = [hit for hit in found.hits if hit.message_id or hit.conversation_id != current]
        found = replace(found, hits=tuple(others))
    answer = _envelope(request, found, filters)
    if not found.hits:
        del answer["confidence"]
        return answer | explain_empty(db, filters, found, current)
    used = _add_results(db, answer, found, request, filters.without, room - json_size(answer))
    answer["count"] = len(answer["results"])
    if len(found.hits) > request.cursor + used:
        answer["cursor"] = str(request.cursor + used)
    elif found.unlisted:
        answer.setdefault("note", guidance.BEST_ONLY)
    if not answer["results"]:
        del answer["confidence"]
        beyond = request.cursor >= len(found.hits)
        answer["message"] = guidance.NO_MORE.format(len(found.hits)) if beyond else guidance.NO_ROOM
    return answer


def _add_results(
    db: SearchableStore,
    answer: JsonObject,
    found: SearchResult,
    request: SearchRequest,
    in_context: frozenset[int],
    room: int,
) -> int:
    """Adds the results that fit; returns how many hits were used."""
    room -= _REST_CHARS
    hits = found.hits[request.cursor : request.cursor + request.limit]
    used = 0
    by_time = request.sort is not None
    with db.conversations.view_in_file():
        store = read_evidence(db.conversations, hits, found.query, in_context, by_time=by_time)
        rater, evidence = HitRater(store, found, by_time=by_time), Evidence(store, in_context)
        for number, (hit, confidence) in enumerate(zip(hits, rater.rate(hits), strict=True)):
            share = room // (len(hits) - number) - 2
            result = _result(store, hit, found.query, evidence, share, request, confidence)
            size = 0 if result is None else json_size(result) + 2
            if size > room and answer["results"]:
                break
            used = number + 1
            if result is not None and size > room:
                result = _shrink_result(result, room)
                size = 0 if result is None else json_size(result) + 2
            room -= size
            if result is not None:
                answer["results"].append(result)
    # Results may be ordered by time, so the surest need not be the first.
    found_words = [result["confidence"] for result in answer["results"]]
    answer["confidence"] = max(found_words, key=CONFIDENCES.index, default="unsure")
    return used


def _shrink_result(result: JsonObject, room: int) -> JsonObject | None:
    """A result without the fields that a further call can return; None if it is still too large."""
    kept = {key: value for key, value in result.items() if key in _REQUIRED_FIELDS}
    kept["snippet"] = fit_json(result["snippet"], room - json_size(kept | {"snippet": ""}))
    return kept if json_size(kept) <= room - 2 else None


def _envelope(request: SearchRequest, found: SearchResult, filters: Filters) -> JsonObject:
    """The answer without results; the query is shortened, so that there is room for them."""
    answer: JsonObject = {
        "success": True,
        "mode": "discover",
        "query": echo_input(request.query, _MAX_QUERY_CHARS),
        "matched": echo_input(found.how, _MAX_MATCHED_CHARS),
        "results": [],
        "count": 0,
        "confidence": "unsure",
        "sessions_matched": found.matched_sessions,
    }
    if found.missing:
        answer["not_found"] = echo_list(found.missing[:_MAX_MISSING], _MAX_TERMS_CHARS)
    if found.note:
        answer["note"] = echo_input(found.note, _MAX_NOTE_CHARS)
    if request.why:
        order = guidance.BY_TIME[request.sort] if request.sort else guidance.BY_RELEVANCE
        answer["why"] = {
            "order": order,
            "terms": echo_list(found.terms, _MAX_TERMS_CHARS),
            "filters": _describe(filters),
        }
        if found.expanded:
            answer["why"]["expanded"] = echo_list(found.expanded, _MAX_TERMS_CHARS)
    return answer


def _describe(filters: Filters) -> JsonObject:
    described: JsonObject = {
        "user": "everyone"
        if filters.scope.all
        else filters.scope.user and echo_input(filters.scope.user, _MAX_NAME_CHARS),
        **{f"{column}s": echo_list(sorted(values), _MAX_FILTER_CHARS) for column, values in filters.columns},
        "hidden_sources": echo_list(sorted(filters.excluded_sources), _MAX_FILTER_CHARS) or None,
        "roles": sorted(filters.roles) if filters.roles else None,
        "since": show_time(filters.since),
        "until": show_time(filters.until),
        "messages_in_context": len(filters.without) or None,
    }
    return {name: value for name, value in described.items() if value is not None}


def _result(
    store: Conversations,
    hit: Hit,
    query: Query,
    evidence: Evidence,
    room: int,
    request: SearchRequest,
    confidence: Confidence,
) -> JsonObject | None:
    session = store.session_facts(hit.session_id)
    if session is None:
        # The session was deleted after the search read the index.
        return None
    result: JsonObject = {
        "session_id": hit.session_id,
        "title": session.title and echo_input(session.title),
        "when": None,
        "source": echo_input(session.source),
        "model": session.model and echo_input(session.model),
        "matched_role": hit.role,
        "match_message_id": hit.message_id,
        "matches": hit.matches,
        "confidence": confidence,
        "snippet": "",
    }
    if session.project:
        result["project"] = echo_input(session.project)
    if session.parent_session_id:
        result["parent_session_id"] = session.parent_session_id
    if request.why:
        result["why"] = _explain_score(hit, request.sort)
    if hit.message_id is None:
        return _title_result(store, hit, session, result, room)
    if hit.asked > 1:
        result["asked"] = hit.asked
    if hit.repeated:
        result["repeated"] = hit.repeated
    # A search limited to roles wants the matching message itself, not the answer to it.
    fixed = request.sort is not None or bool(hit.asked)
    chosen = evidence.choose(
        hit.message_id, hit.messages, query, fixed=fixed, answers=request.filters.get("role_filter") is None
    )
    if chosen is None:
        return None
    message = chosen.anchor.message
    words = searchable_text(message)
    shown = excerpt(words.text, query, _ANSWER_CHARS if message.id != hit.message_id else _SNIPPET_CHARS)
    if shown.at is None and words.tool_text:
        # The match is in the arguments of a tool, not in the text.
        shown = excerpt(words.tool_text, query)._replace(at=0)
    result |= {
        "title": result["title"] or echo_input(title_by_question(chosen.anchor)) or None,
        "matched_role": echo_input(message.role),
        "match_message_id": message.id,
        "when": show_time(message.timestamp),
        "snippet": shown.text.translate(_CONTROL),
    }
    return result | evidence.show(chosen, shown.at or 0, query, room - json_size(result))


def _explain_score(hit: Hit, sort: Sort | None) -> JsonObject:
    """The score of a result and its signals; and the order, if that is not by score."""
    order = {} if sort is None else {"order": guidance.BY_TIME[sort]}
    return order | {"score": round(hit.score, 3)} | {name: round(value, 3) for name, value in hit.signals.items()}


def _title_result(
    store: Conversations, hit: Hit, session: SessionFacts, result: JsonObject, room: int
) -> JsonObject | None:
    """The result for a conversation that matches only by its title: its first messages."""
    conversation = store.conversation_of(hit.session_id)
    if conversation is None:
        return None
    window = store.messages_behind(conversation, 0, _OPENING_MESSAGES)
    fitted = share_room([ShownPart(message) for message in window.messages], room - json_size(result) - 200)
    return result | {
        "when": show_time(session.started_at),
        "snippet": f"Title: {result['title']}",
        "match_message_id": window.messages[0].id if window.messages else None,
        "bookend_start": [],
        "messages": [fitted[message.id].entry for message in window.messages if message.id in fitted],
        "bookend_end": [],
        "messages_before": window.before,
        "messages_after": window.after,
    }


_MAX_NOTES = 3
_MAX_NAMED_CHARS = 200


def _find_items(db: SearchableStore, request: SearchRequest) -> JsonObject:
    """The notes that have most of a query, and the items of programs if they are asked for."""
    asked = "items" in request.filters
    # Most records have no items, and need not load these.
    from memoranda.search.item_evidence import find_items  # noqa: PLC0415

    notes = find_items(db.search_items, request.query, (NOTES_NAMESPACE,), _MAX_NOTES) if request.query else []
    shown = [
        {
            "text": found.text,
            "noted": note.written[:10],
            "beside": file_name(note.owner),
            **({"until": note.until} if note.until else {}),
            **({"replaced": note.at[:10]} if note.replaced else {}),
        }
        for found in notes
        if found.answers(request.query) and (note := found.note) is not None
    ]
    answer: JsonObject = {"notes": shown} if shown else {}
    if asked:
        prefix, limit = request.filters["items"], request.limit
        others = find_items(db.search_items, request.query, prefix, limit + _MAX_NOTES)
        answer["items"] = [_show_item(found) for found in others if found.note is None][:limit]
    return answer


def _show_item(found: "ItemEvidence") -> JsonObject:
    return {
        "namespace": echo_list(found.item.namespace, _MAX_NAMED_CHARS),
        "key": echo_input(found.item.key, _MAX_NAMED_CHARS),
        "text": found.text,
        "when": show_time(found.item.updated_at),
        **({"score": round(found.score, 3)} if found.score else {}),
    }
