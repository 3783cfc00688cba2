"""Search: results as one types, filters, the reasons for the order, and the command that resumes a conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.api.memory import Memory
from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.search.request import FILTERS, SearchFilter
from memoranda.search.tool import SessionSearchTool
from memoranda.service.viewer.conversation_lists import short_project
from memoranda.service.viewer.page import Page, PageRequest, View, page_url

PATH = "/search"
_MAX_RESULTS = 10
_MAX_ITEMS = 5
_MAX_QUERY_CHARS = 500
_MAX_CHOICES = 40
_PERIODS = (("1d", "the last day"), ("7d", "the last week"), ("30d", "the last month"), ("365d", "the last year"))
_SORTS = (("newest", "newest first"), ("oldest", "oldest first"))
# What docs/explanation/how-relevance-was-measured.md found.
_CONFIDENCES = {
    "sure": "about eight of ten such results contained the answer",
    "likely": "about six of ten such results contained the answer",
    "unsure": "about one of ten such results contained the answer",
}
_ARGUMENTS = (*(each.name for each in FILTERS), "sort")
_SIGNALS = {
    "score": "what the results are ordered by, made of the others",
    "message": "how much of the query the best message has; short messages count more",
    "neighbours": "what the messages before and after it add",
    "further_messages": "what the next best messages add",
    "conversation": "how often the whole conversation has the words",
    "coverage": "the share of the query that the conversation has",
    "related": "what related words add",
    "standing": "what a standing instruction adds",
    "date": "a factor: near the date that the query names",
    "newer_statement": "it states what the next one stated before",
    "older_statement": "the one before states it later",
    "asked_before": "it answers the same question: the share of words in common",
    "semantic": "how alike it is in meaning, from -1 to 1",
    "standing_meaning": "how alike in meaning its standing instruction is, from 0 to 1",
    "rerank": "what the model that orders results says, from 0 to 1",
    "expanded": "what words add that a model suggested",
    "asked": "how many sessions only repeat the question",
    "order": "the order that you chose",
}


def show(request: PageRequest) -> View:
    asked = {
        name: text for name in ("q", *_ARGUMENTS) if (text := request.query.get(name, "").strip()[:_MAX_QUERY_CHARS])
    }
    query = asked.get("q", "")
    memory = request.memory
    settings = memory.config.recall
    data = {
        "query": query,
        # Results appear as one types, unless a model would be asked each time.
        "live": not (settings.expand or settings.rerank),
        "filters": _filters(memory, asked) if request.has_record else [],
        "meanings": _CONFIDENCES,
        **(_search(memory, asked, request.number("cursor", 0)) if request.has_record else _nothing("")),
    }
    return View("search.html", f"Search: {query}" if query else "Search", data)


def _search(memory: Memory, asked: Mapping[str, str], cursor: int) -> dict[str, Any]:
    if "q" not in asked:
        return _nothing("")
    # Not `memory.search`: with search.summarize that would ask a model with every key that is pressed.
    tool = SessionSearchTool(lambda: memory.sessions, memory.config.recall)
    filters = {name: text for name, text in asked.items() if name in _ARGUMENTS}
    options = {"limit": _MAX_RESULTS, "why": True, "cursor": cursor, "items": "all"}
    answer = tool.call({"query": asked["q"], **options, **filters})
    if not answer["success"]:
        return _nothing(answer["error"])
    results = answer["results"]
    following = answer.get("cursor")
    return {
        "results": [
            _show_result(memory.sessions, result, cursor + place) for place, result in enumerate(results, start=1)
        ],
        "message": answer.get("message", "") if not results else answer.get("note", ""),
        "kept": _show_kept(answer),
        "matched": answer.get("sessions_matched", 0),
        "how": answer.get("matched", ""),
        "next_url": page_url(PATH, **asked, cursor=following) if following else "",
    }


def _nothing(message: str) -> dict[str, Any]:
    return {"results": [], "kept": [], "message": message, "matched": 0, "how": "", "next_url": ""}


def _show_kept(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The notes and items that have words of the query, each with its kind, its name and when it was written."""
    notes = [
        {"kind": "note", "name": note["beside"], "when": _timestamp(note["noted"]), "text": note["text"]}
        for note in answer.get("notes", ())
    ]
    items = [
        {"kind": "item", "name": " / ".join([*item["namespace"], item["key"]]), "when": _timestamp(item["when"])}
        | {"text": item["text"]}
        for item in answer.get("items", ())[:_MAX_ITEMS]
    ]
    return notes + items


def _show_result(db: SessionDB, result: Mapping[str, Any], number: int) -> dict[str, Any]:
    session = result["session_id"]
    return {
        "number": number,
        "session": session,
        "message": result.get("match_message_id"),
        "title": result["title"] or "(no title)",
        "agent": result["source"],
        "project": short_project(result.get("project")),
        "role": "title" if result.get("matched_role") == "session_title" else result.get("matched_role", ""),
        "when": _timestamp(result.get("when")),
        "confidence": result.get("confidence", ""),
        "snippet": result.get("snippet", ""),
        "matches": result.get("matches", 0),
        "resume": resume_command(db.get_session(session) or {}),
        "signals": [
            {"name": name, "meaning": _SIGNALS.get(name, name.replace("_", " ")), "value": str(value)}
            for name, value in result.get("why", {}).items()
        ],
    }


def _timestamp(when: str | None) -> float | None:
    try:
        return datetime.fromisoformat(when).timestamp() if when else None
    except ValueError:
        return None


def _filters(memory: Memory, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    """The filters as choices of the form; one that offers nothing is there only while it is set."""
    offered = [(each.label, each.name, f"any {each.label.lower()}", _choices(memory, each)) for each in FILTERS]
    offered.append(("Order", "sort", "best first", _SORTS))
    filters = []
    for label, name, nothing, values in offered:
        chosen, known = asked.get(name, ""), dict(values)
        known |= {} if chosen in known or not chosen else {chosen: chosen}
        if chosen or len(known) > 1:
            filters.append({"label": label, "name": name, "chosen": chosen, "choices": {"": nothing, **known}})
    return filters


def _choices(memory: Memory, described: SearchFilter) -> Sequence[tuple[str, str]]:
    """What a filter offers, each with its label."""
    if described.name == "since":
        return _PERIODS
    if not described.column:
        return [(choice, choice) for choice in described.choices]
    hidden = memory.config.recall.hidden_sources if described.column == "source" else ()
    known = [value for value in memory.sessions.listing.known_values(described.column) if value not in hidden]
    return [(value, short_project(value) or value) for value in known[:_MAX_CHOICES]]


PAGE = Page("search", PATH, show, label="Search")
