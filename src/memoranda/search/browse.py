"""The modes of `session_search` without a query (list, read, scroll), and why a search found nothing.

An empty search is explained by where its words occur: nowhere, or where the filters exclude them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memoranda.memory.record.conversations import ReadAhead, SessionFacts, Window, WindowShape
from memoranda.memory.record.feed import FeedMessage
from memoranda.search import guidance
from memoranda.search.evidence import ShownPart, fit_message, from_the_middle, share_room, shown_run
from memoranda.search.index.postings import Filters
from memoranda.search.query import Query
from memoranda.search.recent_work import RecentConversation, describe_work
from memoranda.search.request import FILTERS, SearchRequest, echo_input, echo_list, refuse, show_time
from memoranda.search.search import SearchResult, occurs
from memoranda.search.searchable_store import SearchableStore
from memoranda.search.settings import RecallSettings
from memoranda.support.shorten import json_size, shorten_end
from memoranda.support.tool import JsonObject

_MAX_NAME_CHARS = 60
_MAX_NAMES_CHARS = 300


def impossible_filter(db: SearchableStore, filters: Filters) -> JsonObject | None:
    """The explanation for filters that nothing can pass; None if something can."""
    if filters.since is not None and filters.until is not None and filters.since > filters.until:
        return _blame(guidance.NO_TIME, "since", "until")
    for column, values in filters.columns:
        if not values:
            return _blame(guidance.NO_PROJECT if column == "project" else guidance.NO_MATCH.format(column), column)
    if sources := filters.values_of("source"):
        known = sorted(db.listing.known_values("source"))
        if unknown := sorted(sources.difference(known)):
            names = ", ".join(echo_list(known, _MAX_NAMES_CHARS))
            explanation = guidance.NO_SOURCE.format(echo_input(unknown[0], _MAX_NAME_CHARS))
            return _blame(f"{explanation} There are: {names}." if names else explanation, "source")
    return None


def explain_empty(db: SearchableStore, filters: Filters, result: SearchResult, current: str | None) -> JsonObject:
    """A `message` that says why nothing was found, and `left_out_by`, the filters that caused it, if any did."""
    if not result.terms:
        return {"message": guidance.NO_WORDS}
    if (explanation := impossible_filter(db, filters)) is not None:
        return explanation
    if set(result.missing).issuperset(result.terms):
        return {"message": guidance.NOTHING}
    return _Cause(db, result.query, current).find(filters)


class _Cause:
    """Says what excluded the words of one query, by looking for them with fewer filters. It ranks nothing."""

    def __init__(self, db: SearchableStore, query: Query, current: str | None) -> None:
        self._db = db
        self._query = query
        self._current = current

    def find(self, filters: Filters) -> JsonObject:
        visible = Filters(filters.scope)
        if not self._occurs(visible, with_current=True):
            return {"message": guidance.NOTHING}
        wider = _widen_each(filters)
        if single := [name for name, filters_without in wider.items() if self._occurs(filters_without)]:
            return _blame(guidance.LEFT_OUT.format(" or ".join(f"`{name}`" for name in single)), *single)
        if hidden := filters.excluded_sources:
            only_hidden = replace(filters.with_values("source", hidden), excluded_sources=frozenset())
            if self._occurs(only_hidden):
                names = ", ".join(echo_list(sorted(hidden), _MAX_NAMES_CHARS))
                return _blame(guidance.HIDDEN.format(names), "hidden_sources")
        if self._occurs(replace(filters, without=frozenset()), with_current=True):
            return _blame(guidance.ONLY_IN_CONTEXT, "context")
        if wider:
            return _blame(guidance.LEFT_OUT.format(" and ".join(f"`{name}`" for name in wider)), *wider)
        return {"message": guidance.NOTHING}

    def _occurs(self, filters: Filters, *, with_current: bool = False) -> bool:
        """Whether any word occurs; the title of the current conversation counts only `with_current`."""
        return occurs(self._db.index, self._query, filters, None if with_current else self._current)


def _widen_each(filters: Filters) -> dict[str, Filters]:
    """For each filter of the request, by the name of its argument, the filters without it."""
    wider = {
        "since": replace(filters, since=None),
        "until": replace(filters, until=None),
        "role_filter": replace(filters, roles=None, titles=True),
        **{each.name: filters.with_values(each.column, None) for each in FILTERS if each.column},
    }
    return {name: filters_without for name, filters_without in wider.items() if filters_without != filters}


def _blame(message: str, *names: str) -> JsonObject:
    return {"message": message, "left_out_by": list(names)}


_MAX_MESSAGES_READ = 60
_MAX_MESSAGE_CHARS = 1_500
_MAX_TOOL_OUTPUT_CHARS = 300
_NEIGHBOUR_CHARS = 700
_NEIGHBOUR_ROOM = 250
# Room for the counts, a cursor and the sentence about it.
_CURSOR_CHARS = 300
# Room for what a list contains besides its entries: the counts, a cursor, and why it is empty.
_REST_CHARS = 200
_ENDED_CHARS = 160


def browse(
    db: SearchableStore,
    request: SearchRequest,
    settings: RecallSettings,
    current: str | None,
    filters: Filters,
) -> JsonObject:
    """The conversations that were active last, without the current one."""
    rows = db.listing.list_sessions_rich(
        exclude_sources=filters.excluded_sources,
        # One more than requested, to know whether there are more, and one in case the current one is included.
        limit=request.limit + 2,
        offset=request.cursor,
        order_by_last_active=True,
        min_message_count=1,
        since=filters.since,
        until=filters.until,
        columns=dict(filters.columns),
    )
    others = [row for row in rows if row["conversation_id"] != current]
    answer: JsonObject = {"success": True, "mode": "browse", "results": [], "count": 0}
    room = settings.answer_chars - _REST_CHARS
    used = 0
    shown = others[: request.limit]
    for row, work in zip(shown, describe_work(db, shown), strict=True):
        entry = _list_entry(row)
        whole = entry | _how_it_ended(work)
        if json_size(whole) + 2 <= room:
            entry = whole
        size = json_size(entry) + 2
        if size > room and answer["results"]:
            break
        used += 1
        if size <= room:
            answer["results"].append(entry)
            room -= size
    answer["count"] = len(answer["results"])
    if len(others) > used:
        answer["cursor"] = str(request.cursor + rows.index(others[used]))
    if not answer["results"]:
        limited = request.filters or request.cursor or rows
        reason = {"message": guidance.NO_OTHERS if limited else guidance.EMPTY}
        answer |= impossible_filter(db, filters) or reason
    return answer


def scroll(
    db: SearchableStore, request: SearchRequest, settings: RecallSettings, message_id: int, in_context: frozenset[int]
) -> JsonObject:
    """The messages on either side of one message of a conversation."""
    # A branch repeats messages of the conversation that it comes from.
    related = {row["id"] for row in db.lineage.get_ancestors(request.session_id)}
    if not related:
        return refuse("not_found", f"There is no session {echo_input(request.session_id)!r}.")
    if message_id in in_context:
        return refuse("in_context", guidance.IN_CONTEXT)
    store = db.conversations
    if store.batches_reads:
        store = ReadAhead(store)
        store.read_windows([message_id], [WindowShape(request.window, (), in_context)])
    window = store.window_around(message_id, request.window, without=in_context)
    owner = next((m.session_id for m in window.messages if m.id == message_id), "") if window else ""
    if window is None or not (owner in related or request.session_id in window.conversation.sessions):
        return refuse(
            "not_found", f"Message {message_id} is not in the conversation of {echo_input(request.session_id)!r}."
        )
    answer = {"success": True, "mode": "scroll", "around_message_id": message_id, "window": request.window}
    answer |= _session_meta(owner, db.conversations.session_facts(owner))
    return _fill_scroll(answer, window, message_id, request.cursor, settings.answer_chars)


def read(
    db: SearchableStore, request: SearchRequest, settings: RecallSettings, in_context: frozenset[int]
) -> JsonObject:
    """A conversation from its start, or from after the message that the cursor names."""
    conversation = db.conversations.conversation_of(request.session_id)
    if conversation is None:
        return refuse("not_found", f"There is no session {echo_input(request.session_id)!r}.")
    window = db.conversations.messages_behind(conversation, request.cursor, _MAX_MESSAGES_READ, without=in_context)
    facts = db.conversations.facts_by_session([request.session_id, conversation.conversation_id], parents=True)
    answer: JsonObject = {"success": True, "mode": "read"}
    answer |= _session_meta(request.session_id, facts.get(request.session_id))
    first = facts.get(conversation.conversation_id)
    parent = first and first.parent_session_id
    if parent and not window.before and parent in facts:
        answer |= {"parent_session_id": parent, "note": guidance.BRANCHED}
    answer |= {"messages": [], "messages_before": window.before, "messages_after": window.after}
    room = settings.answer_chars - json_size(answer) - 200
    for number, message in enumerate(window.messages):
        fitting = fit_message(message, _max_chars(message), room)
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


def _project_field(project: str | None) -> JsonObject:
    """The project of a session as a field of an answer; no field when it has none."""
    return {"project": echo_input(project)} if project else {}


def _session_meta(session_id: str, facts: SessionFacts | None) -> JsonObject:
    return {
        "session_id": session_id,
        "session_meta": {
            "title": facts and facts.title and echo_input(facts.title),
            "when": show_time(facts and facts.started_at),
            "source": echo_input(facts.source if facts else ""),
            "model": (facts and facts.model and echo_input(facts.model)) or None,
        }
        | _project_field(facts and facts.project),
    }


def _list_entry(row: Mapping[str, Any]) -> JsonObject:
    return {
        "session_id": row["id"],
        "title": row["title"] and echo_input(row["title"]),
        "source": echo_input(row["source"]),
        "started": show_time(row["started_at"]),
        "last_active": show_time(row["last_active"]),
        "message_count": row["message_count"],
        "preview": row["preview"],
    } | _project_field(row["project"])


def _how_it_ended(work: RecentConversation | None) -> JsonObject:
    """What was asked last, how it was answered, and the open tasks; without what there is none of."""
    if work is None:
        return {}
    texts = {"last_question": work.asked, "last_answer": work.ended}
    found = {name: shorten_end(text, _ENDED_CHARS) for name, text in texts.items() if text}
    tasks = [shorten_end(task, _ENDED_CHARS) for task in work.open_tasks]
    return found | ({"open_tasks": tasks} if tasks else {})


def _max_chars(message: FeedMessage) -> int:
    return _MAX_MESSAGE_CHARS if message.role in ("user", "assistant") else _MAX_TOOL_OUTPUT_CHARS


def _fill_scroll(answer: JsonObject, window: Window, message_id: int, start: int, budget: int) -> JsonObject:
    """Adds the anchor with as much of its text as fits, from `start` on, and its neighbours in the remaining room."""
    position = next(index for index, message in enumerate(window.messages) if message.id == message_id)
    room = budget - json_size(answer) - _CURSOR_CHARS
    # Neighbours get a share, so that one long message does not push them out.
    for_anchor = room - min(room * 2 // 3, _NEIGHBOUR_CHARS * (len(window.messages) - 1))
    anchor = fit_message(window.messages[position], for_anchor, for_anchor, start=start, anchor=True)
    fitted = {} if anchor is None else {message_id: anchor}
    if anchor is not None:
        around = from_the_middle(window.messages, position)
        fitted |= share_room([ShownPart(message, _NEIGHBOUR_ROOM) for message in around], room - anchor.size)
    run = shown_run(window.messages, position, fitted)
    answer |= {
        "messages": [fitted[window.messages[place].id].entry for place in run if fitted],
        "messages_before": window.before + run.start,
        "messages_after": window.after + len(window.messages) - run.stop,
    }
    end = start + len(anchor.entry["content"]) if anchor else start
    if anchor and anchor.entry.get("chars", 0) > end > start:
        answer |= {"cursor": str(end), "message": guidance.READ_ON}
    return answer
