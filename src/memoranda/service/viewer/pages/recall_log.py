"""Recall log: what memory gave to which prompt, and why others received nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memoranda.home import config
from memoranda.safety.redaction import Redactor
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import ConversationLink, Links, find_links
from memoranda.service.viewer.operation.recall_log import RecallCall, RecallLogPage, find_call, read_log
from memoranda.service.viewer.page import Page, PageRequest, View


@dataclass(frozen=True, slots=True)
class RecallLogView:
    """What the list shows; `conversation` is the one that the list is limited to."""

    log: RecallLogPage
    outcome: str
    host: str
    skip: int
    session: str
    conversation: ConversationLink | None
    links: Links


@dataclass(frozen=True, slots=True)
class RecallCallView:
    """One recall with everything that decided."""

    call: RecallCall
    links: Links


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
    links = find_links(request, [(session, 0), *((call.session_id, call.message_id) for call in log.calls)])
    data = RecallLogView(log, outcome, host, skip, session, links.get((session, 0)), links)
    return View("recall_log.html", "Recall log", data)


def show_call(request: PageRequest) -> View:
    """One recall with everything that decided; raises Problem 404."""
    call = find_call(request.memory.home.root, request.user, redactor_of(request), request.path["call"])
    if call is None:
        raise Problem(404, "not_found", "The log does not have this recall any more: it keeps only the latest ones.")
    return View("recall_call.html", "Recall", RecallCallView(call, find_links(request, named_messages([call]))))


def named_messages(calls: Iterable[RecallCall]) -> Iterator[tuple[str, int]]:
    """The conversations and messages that recalls name."""
    for call in calls:
        yield call.session_id, call.message_id
        yield from ((found.session_id, found.message_id) for found in (*call.given, *call.candidates))


def redactor_of(request: PageRequest) -> Redactor:
    """Removes the credentials of this machine from the log; a hook knows only formats."""
    return Redactor(config.known_secrets(request.memory.home))


def _sessions_of(request: PageRequest, session: str) -> list[str]:
    if not session or not request.has_record:
        return [session] if session else []
    return request.memory.sessions.get_compression_lineage(session) or [session]


PAGE = Page("recall", "/recall", show, label="Recall log")
CALL = Page("recall-call", "/recall/{call}", show_call)
