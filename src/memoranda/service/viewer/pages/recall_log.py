"""Recall log: what memory gave to which prompt, and why others received nothing.

The log has the hooks of hosts, our own agent, and programs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import Any

from memoranda.home import config
from memoranda.importers.session_writer import session_name
from memoranda.safety.redaction import Redactor
from memoranda.search.recall_log import (
    HIDDEN,
    PROMPT,
    QUESTION,
    TURN,
    hook_calls_path,
    mask_words,
    read_calls,
    recalls_path,
)
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_links
from memoranda.service.viewer.page import Page, PageRequest, View
from memoranda.support.lazy_dataclass import dataclass

PAGE_SIZE = 50
_PROMPTS = ("UserPromptSubmit", TURN, PROMPT, QUESTION)
_PROGRAMS = (TURN, PROMPT, QUESTION)
# The same words may be asked again and again; the host's clock and the recorded time differ by less.
_MAX_SECONDS_BETWEEN = 3_600.0
# Of a prompt without a plain word, only the time is known.
_MAX_SECONDS_BY_TIME = 60.0
_MAX_GIVEN = 3
_KINDS = {
    "question": "a question",
    "asks_about_the_past": "about the past",
    "personal": "personal",
    "points_at_something": "pointing at something",
    "how_to": "asking how something is done",
}


# One recall as a page shows it; `_describe` has its fields.
RecallCall = dict[str, Any]


def read_log(
    home: Path,
    user: str | None,
    redactor: Redactor,
    *,
    outcome: str = "",
    host: str = "",
    sessions: Collection[str] = (),
    skip: int = 0,
) -> dict[str, Any]:
    """The recalls for a user, the newest first; those of an outcome, an agent or sessions, if given.

    `counts` has all outcomes, and `older` is how many to skip for the next page.
    """
    calls = [call for call in _calls_for(home, user) if not sessions or _record_id(call, user) in sessions]
    counts = Counter(_text(call, "outcome") for call in calls)
    wanted = [call for call in calls if outcome in ("", _text(call, "outcome")) and host in ("", _text(call, "host"))]
    return {
        "calls": [_describe(call, user, redactor) for call in wanted[skip : skip + PAGE_SIZE]],
        "counts": counts.most_common(),
        "hosts": sorted({_text(call, "host") for call in calls}),
        "total": len(wanted),
        "older": skip + PAGE_SIZE if len(wanted) > skip + PAGE_SIZE else 0,
    }


def find_call(home: Path, user: str | None, redactor: Redactor, call_id: str) -> RecallCall | None:
    found = (call for call in _calls_for(home, user) if call["id"] == call_id)
    call = next(found, None)
    return None if call is None else _describe(call, user, redactor)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A user's message of a conversation."""

    id: int
    timestamp: float
    text: str


@dataclass(frozen=True, slots=True)
class SessionRecalls:
    """The recalls of some prompts by the ids of their messages, and how many others the conversation has."""

    by_message: Mapping[int, tuple[RecallCall, ...]]
    others: int


def recalls_of_session(
    home: Path, user: str | None, redactor: Redactor, session_ids: Collection[str], prompts: Sequence[PromptMessage]
) -> SessionRecalls:
    """The recalls of a conversation, by the ids of its sessions in the record, at the prompts of one page.

    Our own agent logs the message. A hook does not know it: its prompt is the one with the same words, the nearest in
    time if there are several.
    """
    calls = [call for call in reversed(_calls_for(home, user)) if _record_id(call, user) in session_ids]
    words = {prompt.id: mask_words(prompt.text) for prompt in prompts} if calls else {}
    found: dict[int, list[RecallCall]] = {}
    for call in calls:
        message_id = _prompt_of(call, prompts, words)
        if message_id in words:
            found.setdefault(message_id, []).append(_describe(call, user, redactor))
    shown = {message_id: tuple(recalls) for message_id, recalls in found.items()}
    return SessionRecalls(shown, len(calls) - sum(map(len, shown.values())))


@dataclass(slots=True)
class GivenRecalls:
    """What the prompts of one conversation received on one day; `call_id` names the last recall, and `at` is its time.

    `given` has the first few messages, each once, and `text` what was recalled if that is no message of the record.
    """

    call_id: str
    at: float
    host: str
    session_id: str
    prompts: int = 0
    given: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""


def read_given(home: Path, user: str | None, redactor: Redactor, before: float, limit: int) -> list[GivenRecalls]:
    """The latest recalls before a time that gave something to a prompt, the newest first."""
    found: dict[tuple[str, str, date], GivenRecalls] = {}
    for call in _calls_for(home, user):
        at = float(call["at"])
        if at >= before or call.get("outcome") != "given" or call.get("event") not in _PROMPTS:
            continue
        session_id, host = _record_id(call, user), _text(call, "host")
        key = session_id, host, date.fromtimestamp(at)
        if key not in found and len(found) == limit:
            break
        group = found.setdefault(key, GivenRecalls(call["id"], at, host, session_id))
        group.prompts += 1
        for item in _objects(call, "given"):
            message = _message(item, 0, 0.0)
            if message not in group.given and len(group.given) < _MAX_GIVEN:
                group.given.append(message)
        if not group.given and not group.text:
            group.text = redactor.text(_text(call, "text"))[0]
    return list(found.values())


def _prompt_of(call: Mapping[str, Any], prompts: Sequence[PromptMessage], words: Mapping[int, str]) -> int:
    """The message that a recall was for; 0 if it is not among the prompts."""
    if call.get("event") not in _PROMPTS:
        return 0
    if message_id := int(_number(call, "message_id")):
        return message_id
    asked, at = _text(call, "prompt"), float(call["at"])
    limit = _MAX_SECONDS_BETWEEN if asked.replace(HIDDEN, "").strip() else _MAX_SECONDS_BY_TIME
    same = [(abs(prompt.timestamp - at), prompt.id) for prompt in prompts if words[prompt.id] == asked]
    seconds, message_id = min(same, default=(limit + 1, 0))
    return message_id if seconds <= limit else 0


def _calls_for(home: Path, user: str | None) -> list[dict[str, Any]]:
    """All recalls for a user, newest first."""
    hooks = [call for call in read_calls(hook_calls_path(home)) if call.get("user") == user]
    programs = [call for call in read_calls(recalls_path(home, user)) if call.get("user") == user]
    return sorted([*hooks, *programs], key=lambda call: float(call["at"]), reverse=True)


def _record_id(call: Mapping[str, Any], user: str | None) -> str:
    """The session in the record; hooks log the id that the host gave it, from which an import makes ours."""
    session_id = _text(call, "session_id")
    if not session_id or call.get("event") in _PROGRAMS:
        return session_id
    return session_name(_text(call, "host"), session_id, user)


def _describe(raw: Mapping[str, Any], user: str | None, redactor: Redactor) -> RecallCall:
    """One recall. The log keeps only plain words of a prompt."""
    call: dict[str, Any] = redactor.value(dict(raw))[0]
    floor = call.get("floor") if isinstance(call.get("floor"), dict) else {}
    assert isinstance(floor, dict)
    needed_words, needed_points = int(_number(floor, "words")), _number(floor, "points")
    kinds = ", ".join(text for name, text in _KINDS.items() if floor.get(name)) or "a task" if floor else ""
    event = _text(call, "event")
    return {
        **{name: _text(call, name) for name in ("id", "host", "prompt", "outcome", "reason", "note")},
        "at": float(call["at"]),
        "event": event,
        "is_prompt": event in _PROMPTS,
        # The conversation in the record, if it was recorded.
        "session_id": _record_id(raw, user),
        # The prompt in the record; 0 if the log does not know it.
        "message_id": int(_number(call, "message_id")),
        "given": [_message(item, 0, 0.0) for item in _objects(call, "given")],
        "candidates": [_message(item, needed_words, needed_points) for item in _objects(call, "candidates")],
        "kinds": kinds,
        "floor_words": needed_words,
        "floor_points": needed_points,
        "words": list(map(str, _list(call, "words"))),
        "found_nowhere": list(map(str, _list(call, "found_nowhere"))),
        # What was recalled, if it is not a message of the record.
        "text": _text(call, "text"),
        "ms": int(_number(call, "ms")) if "ms" in call else None,
        "cpu_ms": int(_number(call, "cpu_ms")) if "cpu_ms" in call else None,
        "memory_given": call.get("memory") is True,
    }


def _message(item: Mapping[str, Any], needed_words: int, needed_points: float) -> dict[str, Any]:
    """A message that a prompt received, or a candidate for it, with the measures that decided."""
    words, points = int(_number(item, "words")), _number(item, "points")
    return {
        "session_id": _text(item, "session_id"),
        "message_id": int(_number(item, "message_id")),
        "share": _number(item, "share"),
        "words": words,
        "points": points,
        "clears": item.get("clears") is True,
        "words_too_low": words < needed_words,
        "points_too_low": points < needed_points,
    }


def _text(call: Mapping[str, Any], name: str) -> str:
    value = call.get(name)
    return value if isinstance(value, str) else ""


def _number(call: Mapping[str, Any], name: str) -> float:
    value = call.get(name)
    return value if isinstance(value, int | float) and abs(value) < 1e12 else 0.0


def _list(call: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = call.get(name)
    return value if isinstance(value, list) else ()


def _objects(call: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [item for item in _list(call, name) if isinstance(item, dict)]


def show(request: PageRequest) -> View:
    """The list of recalls, or of those of one conversation."""
    outcome, host, skip = request.query.get("outcome", ""), request.query.get("host", ""), request.number("skip", 0)
    session = request.query.get("session", "")
    log = read_log(
        request.memory.home.root,
        request.user,
        redactor_of(request),
        outcome=outcome,
        host=host,
        sessions=_sessions_of(request, session),
        skip=skip,
    )
    links = find_links(request, [(session, 0), *((call["session_id"], call["message_id"]) for call in log["calls"])])
    data = {
        "log": log,
        "outcome": outcome,
        "host": host,
        "skip": skip,
        "session": session,
        # The one that the list is limited to.
        "conversation": links.get((session, 0)),
        "links": links,
    }
    return View("recall_log.html", "Recall log", data)


def show_call(request: PageRequest) -> View:
    """One recall with everything that decided; raises Problem 404."""
    call = find_call(request.memory.home.root, request.user, redactor_of(request), request.path["call"])
    if call is None:
        raise Problem(404, "not_found", "The log does not have this recall any more: it keeps only the latest ones.")
    links = find_links(request, named_messages([call]))
    return View("recall_call.html", "Recall", {"call": call, "links": links})


def named_messages(calls: Iterable[RecallCall]) -> Iterator[tuple[str, int]]:
    """The conversations and messages that recalls name."""
    for call in calls:
        for named in (call, *call["given"], *call["candidates"]):
            yield named["session_id"], named["message_id"]


def redactor_of(request: PageRequest) -> Redactor:
    """Removes the credentials of this machine from the log; a hook knows only formats."""
    return Redactor(config.known_secrets(request.memory.home))


def _sessions_of(request: PageRequest, session: str) -> list[str]:
    if not session or not request.has_record:
        return [session] if session else []
    return request.memory.sessions.get_compression_lineage(session) or [session]


PAGE = Page("recall", "/recall", show, label="Recall log")
CALL = Page("recall-call", "/recall/{call}", show_call)
