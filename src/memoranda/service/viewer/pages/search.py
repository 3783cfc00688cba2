"""Search: results as one types, filters, the reasons for the order, and the command that resumes a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoranda.api.memory import Memory
from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.search.request import ROLES
from memoranda.search.tool import SessionSearchTool
from memoranda.service.viewer.conversation_rows import short_project
from memoranda.service.viewer.filter_chips import ChipGroup, chip_group
from memoranda.service.viewer.page import Page, PageRequest, View, page_url

PATH = "/search"
_MAX_RESULTS = 10
_MAX_QUERY_CHARS = 500
_MAX_CHIPS = 8
_PERIODS = (("1d", "a day"), ("7d", "a week"), ("30d", "a month"), ("365d", "a year"))
_SORTS = (("newest", "newest first"), ("oldest", "oldest first"))
_FILTERS = ("q", "agent", "project", "since", "until", "role", "sort")
# The names of the filters as arguments of the search.
_ARGUMENTS = {name: name for name in _FILTERS if name != "q"} | {"agent": "source", "role": "role_filter"}
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
    "recency": "a factor: how recent it is",
    "semantic": "how alike it is in meaning, from -1 to 1",
    "standing_meaning": "how alike in meaning its standing instruction is, from 0 to 1",
    "rerank": "what the model that orders results says, from 0 to 1",
    "expanded": "what words add that a model suggested",
    "asked": "how many sessions only repeat the question",
    "order": "the order that you chose",
}


@dataclass(frozen=True, slots=True)
class Signal:
    """One part of a result's score."""

    name: str
    meaning: str
    value: str


@dataclass(frozen=True, slots=True)
class ResultView:
    """One conversation that was found."""

    number: int
    session: str
    message: int | None
    title: str
    agent: str
    project: str
    role: str
    when: float | None
    confidence: str
    snippet: str
    matches: int
    resume: str
    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class SearchView:
    """What the page shows."""

    query: str
    hidden: tuple[tuple[str, str], ...]
    """The chosen filters, which the form repeats."""
    live: bool
    """Whether results appear as one types; not if a model would be asked each time."""
    groups: tuple[ChipGroup, ...]
    results: tuple[ResultView, ...]
    message: str
    matched: int
    how: str
    next_url: str


def show(request: PageRequest) -> View:
    """The page."""
    asked = {name: text for name in _FILTERS if (text := request.query.get(name, "").strip()[:_MAX_QUERY_CHARS])}
    query = asked.get("q", "")
    memory = request.memory
    settings = memory.config.recall
    data = SearchView(
        query,
        tuple((name, text) for name, text in asked.items() if name != "q"),
        not (settings.expand or settings.rerank),
        _chip_groups(memory, asked) if request.has_record else (),
        **_search(memory, asked, request.number("cursor", 0)) if request.has_record else _nothing(""),
    )
    return View("search.html", f"Search: {query}" if query else "Search", data)


def _search(memory: Memory, asked: Mapping[str, str], cursor: int) -> dict[str, Any]:
    if "q" not in asked:
        return _nothing("")
    # Not `memory.search`: with search.summarize that would ask a model with every key that is pressed.
    tool = SessionSearchTool(lambda: memory.sessions, memory.config.recall)
    filters = {_ARGUMENTS[name]: text for name, text in asked.items() if name in _ARGUMENTS}
    answer = tool.call({"query": asked["q"], "limit": _MAX_RESULTS, "why": True, "cursor": cursor, **filters})
    if not answer["success"]:
        return _nothing(answer["error"])
    results = answer["results"]
    following = answer.get("cursor")
    return {
        "results": tuple(
            _show_result(memory.sessions, result, cursor + place) for place, result in enumerate(results, start=1)
        ),
        "message": answer.get("message", "") if not results else answer.get("note", ""),
        "matched": answer.get("sessions_matched", 0),
        "how": answer.get("matched", ""),
        "next_url": page_url(PATH, **asked, cursor=following) if following else "",
    }


def _nothing(message: str) -> dict[str, Any]:
    return {"results": (), "message": message, "matched": 0, "how": "", "next_url": ""}


def _show_result(db: SessionDB, result: Mapping[str, Any], number: int) -> ResultView:
    session = result["session_id"]
    why = result.get("why", {})
    return ResultView(
        number,
        session,
        result.get("match_message_id"),
        result["title"] or db.listing.first_words(session) or "(no title)",
        result["source"],
        short_project(result.get("project")),
        "title" if result.get("matched_role") == "session_title" else result.get("matched_role", ""),
        _timestamp(result.get("when")),
        result.get("confidence", ""),
        result.get("snippet", ""),
        result.get("matches", 0),
        resume_command(db.get_session(session) or {}),
        tuple(Signal(name, _SIGNALS.get(name, name.replace("_", " ")), str(value)) for name, value in why.items()),
    )


def _timestamp(when: str | None) -> float | None:
    try:
        return datetime.fromisoformat(when).timestamp() if when else None
    except ValueError:
        return None


def _chip_groups(memory: Memory, asked: Mapping[str, str]) -> tuple[ChipGroup, ...]:
    db = memory.sessions
    hidden = memory.config.recall.hidden_sources
    agents = [(name, name) for name in db.statistics()["by_source"] if name not in hidden][:_MAX_CHIPS]
    projects = [(name, short_project(name) or name) for name in db.listing.known_projects()][:_MAX_CHIPS]
    roles = [(role, role) for role in ROLES]
    offered = (
        ("Agent", "agent", agents),
        ("Project", "project", projects),
        ("Time", "since", _PERIODS),
        ("Role", "role", roles),
        ("Order", "sort", _SORTS),
    )
    groups = (chip_group(label, name, values, path=PATH, query=asked) for label, name, values in offered)
    return tuple(group for group in groups if len(group.chips) > 1 or any(chip.chosen for chip in group.chips))


PAGE = Page("search", PATH, show, label="Search")
