"""Query-focused summaries of what was found, by a small model: an option that can only add.

The model is any function from instructions and a text to a text. Conversations are summarised a few at a time, under
one deadline for all; whatever fails or comes late is left as the windows that were found.
"""

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from memoranda.recall import guidance
from memoranda.recall.evidence import size_of
from memoranda.recall.query import Query, parse
from memoranda.recall.session_db import SessionDB
from memoranda.recall.settings import RecallSettings
from memoranda.recall.snippets import match_spans
from memoranda.recall.times import show_time
from memoranda.sessions.records import text_of
from memoranda.tools import JsonObject

_log = logging.getLogger(__name__)

Summarize = Callable[[str, str], str]
"""Instructions and a transcript in, a summary out; may raise, may be slow."""

_MOST_WORKERS = 5
_TRANSCRIPT = 100_000
_AT_ONCE = 500
_LONGEST_SUMMARY = 2_000
_NOTE = 200


def add_summaries(
    answer: JsonObject, question: str, db: SessionDB, summarize: Summarize, settings: RecallSettings
) -> None:
    """Put a `summary` into each result that gets one in time; its windows then make room."""
    results = answer["results"]
    query = parse(question)
    jobs: SimpleQueue[int] = SimpleQueue()
    for number in range(len(results)):
        jobs.put(number)
    done: SimpleQueue[tuple[int, str | None]] = SimpleQueue()

    def work() -> None:
        while not jobs.empty():
            number = jobs.get()
            try:
                text = transcript(db, results[number]["session_id"], query)
                done.put((number, summarize(guidance.SUMMARY, f"Question: {question}\n\nTranscript:\n{text}")))
            except (Exception, SystemExit) as error:
                # A model that fails costs its summary and nothing else.
                _log.warning("a summary failed: %s", error)
                done.put((number, None))

    for _ in range(min(len(results), max(1, min(settings.summary_workers, _MOST_WORKERS)))):
        threading.Thread(target=work, name="memoranda-summary", daemon=True).start()
    summaries = _collect(done, len(results), settings.summary_deadline)
    for number in summaries:
        for part in ("messages", "bookend_start", "bookend_end"):
            results[number].pop(part, None)
    room = settings.answer_chars - size_of(answer) - _NOTE
    for number, summary in summaries.items():
        results[number]["summary"] = _cut(summary, min(_LONGEST_SUMMARY, room // len(summaries)))
    missing = len(results) - len(summaries)
    if missing:
        said = f"{missing} of {len(results)} summaries could not be made; the messages themselves are there."
        answer["note"] = f"{answer['note']} {said}" if "note" in answer else said


def _cut(text: str, room: int) -> str:
    """As much of a text as its JSON has room for."""
    text = text[: max(0, room)]
    while text and size_of(text) > room:
        text = text[: len(text) * 3 // 4]
    return text


def _collect(done: "SimpleQueue[tuple[int, str | None]]", expected: int, deadline: float) -> dict[int, str]:
    end = time.monotonic() + deadline
    summaries: dict[int, str] = {}
    for _ in range(expected):
        try:
            number, summary = done.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            break
        if isinstance(summary, str) and summary.strip():
            summaries[number] = summary.strip()
    return summaries


def transcript(db: SessionDB, session_id: str, query: Query) -> str:
    """A conversation as text, cut to the part that holds the most matches."""
    place = db.conversation_of(session_id)
    if place is None:
        return ""
    lines, last = [], 0
    while True:
        window = db.messages_behind(place, last, _AT_ONCE)
        lines += [
            f"[{show_time(message.timestamp)}] {message.role}: {text_of(message.content)}"
            for message in window.messages
        ]
        if not window.after or not window.messages:
            break
        last = window.messages[-1].id
    return cut_around_matches("\n".join(lines), query, _TRANSCRIPT)


def cut_around_matches(text: str, query: Query, most: int) -> str:
    """The stretch of so many characters that covers the most matches, a quarter of it before the first of them."""
    if len(text) <= most:
        return text
    starts = [start for start, _ in match_spans(text, query)] or [0]
    best, covered, end = starts[0], 0, 0
    for number, start in enumerate(starts):
        end = max(end, number)
        while end < len(starts) and starts[end] < start + most * 3 // 4:
            end += 1
        if end - number > covered:
            best, covered = start, end - number
    begin = max(0, min(best - most // 4, len(text) - most))
    return text[begin : begin + most]
