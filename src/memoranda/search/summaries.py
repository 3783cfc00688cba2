"""Optional summaries of search results by a small model, written for the query.

The model is any function from instructions and a text to a text; `SummaryWriter` makes one from a chat model. A few
conversations are summarised at a time, under one deadline for all. If a summary fails or is late, its result keeps the
messages, and a note says why.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from memoranda.errors import ModelReplyError, StorageError
from memoranda.memory.record.message_rows import text_of
from memoranda.models.model import ChatModel, Reply
from memoranda.models.tokens import estimate_text
from memoranda.safety.fence import quote, screen_transcript, speaker_of
from memoranda.search import guidance
from memoranda.search.excerpts import match_spans
from memoranda.search.query import MAX_QUERY, Query, parse
from memoranda.search.request import fit_json, show_time
from memoranda.search.searchable_store import SearchableStore
from memoranda.search.settings import RecallSettings
from memoranda.support.shorten import json_size
from memoranda.support.tool import JsonObject

_log = logging.getLogger(__name__)

Summarize = Callable[[str, str], str]
"""Instructions and a transcript in, a summary out; may raise, may be slow."""

_MAX_WORKERS = 5
_TRANSCRIPT = 100_000
_BATCH_SIZE = 500
_MAX_SUMMARY = 2_000
NOTE_CHARS = 350
_REASON_CHARS = 200
# Room for the name of the field.
_FIELD = 15
_QUESTION_LABEL = "Question: "
_TRANSCRIPT_LABEL = "\n\nTranscript:\n"


def add_summaries(
    answer: JsonObject, question: str, db: SearchableStore, summarize: Summarize, settings: RecallSettings
) -> None:
    """Puts a `summary` into each result that gets one in time; it replaces the messages of that result.

    The answer must leave `NOTE_CHARS` characters of its size free, for a note about missing summaries.
    """
    results = answer["results"]
    run = _SummaryRun(question, db, summarize, settings)
    summaries = run.summaries([result["session_id"] for result in results])
    for number in summaries:
        for part in ("messages", "other_matches", "bookend_start", "bookend_end"):
            results[number].pop(part, None)
    room = settings.answer_chars - json_size(answer) - NOTE_CHARS
    for number, summary in summaries.items():
        if text := fit_json(summary, min(_MAX_SUMMARY, room // len(summaries) - _FIELD)):
            results[number]["summary"] = text
    missing = len(results) - len(summaries)
    if missing:
        reason = fit_json(" ".join(run.failure.split()).rstrip("."), _REASON_CHARS)
        count = f"{missing} of {len(results)} summaries"
        note = f"{count} could not be made ({reason}); those results show the messages instead."
        answer["note"] = f"{answer['note']} {note}" if "note" in answer else note


class _SummaryRun:
    """The summaries for one answer. Only the calling thread reads the store; the workers filter and call the model."""

    def __init__(self, question: str, db: SearchableStore, summarize: Summarize, settings: RecallSettings) -> None:
        self._question = question[:MAX_QUERY]
        self._query = parse(question)
        self._db = db
        self._summarize = summarize
        self._max_workers = max(1, min(settings.summary_workers, _MAX_WORKERS))
        self._end = time.monotonic() + settings.summary_deadline
        self._done: SimpleQueue[tuple[int, object, str]] = SimpleQueue()
        self.failure = f"not written within {settings.summary_deadline:g} seconds"
        """Why a summary is missing: the latest error, or the deadline."""

    def summaries(self, session_ids: Sequence[str]) -> dict[int, str]:
        """The summaries that arrive before the deadline, by index; no summary starts after it."""
        found: dict[int, str] = {}
        waiting = list(enumerate(session_ids))[::-1]
        running = 0
        while (waiting or running) and self._time_left():
            if waiting and running < self._max_workers:
                running += self._begin(*waiting.pop())
                continue
            try:
                number, summary, failure = self._done.get(timeout=self._time_left())
            except Empty:
                break
            running -= 1
            if isinstance(summary, str) and summary.strip():
                found[number] = summary.strip()
            else:
                self.failure = failure or "the model wrote nothing"
        return found

    def _time_left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def _begin(self, number: int, session_id: str) -> bool:
        """Starts a thread for one summary; False if there is no transcript, or no time left."""
        try:
            record = transcript(self._db, session_id, self._query)
        except StorageError as error:
            _log.warning("A conversation could not be read for its summary: %s", error)
            self.failure = str(error)
            return False
        if not self._time_left():
            return False
        threading.Thread(target=self._ask, args=(number, record), name="memoranda-summary", daemon=True).start()
        return True

    def _ask(self, number: int, record: str) -> None:
        summary: object = None
        failure = ""
        try:
            summary = self._summarize(guidance.SUMMARY, build_request(self._question, screen_transcript(record)))
        except (Exception, SystemExit) as error:
            # A failure costs only this summary.
            _log.warning("A summary failed: %s", error)
            failure = str(error) or type(error).__name__
        finally:
            # Even after a failure, so that the caller does not wait until the deadline.
            self._done.put((number, summary, failure))


def transcript(db: SearchableStore, session_id: str, query: Query) -> str:
    """A conversation as text, cut to the part with the most matches."""
    conversation = db.conversations.conversation_of(session_id)
    if conversation is None:
        return ""
    lines, last = [], 0
    while True:
        window = db.conversations.messages_behind(conversation, last, _BATCH_SIZE)
        lines += [
            f"[{show_time(message.timestamp)}] "
            f"{quote(speaker_of(message.role, message.tool_name), text_of(message.content))}"
            for message in window.messages
        ]
        if not window.after or not window.messages:
            break
        last = window.messages[-1].id
    return cut_around_matches("\n".join(lines), query, _TRANSCRIPT)


def build_request(question: str, record: str) -> str:
    """What a model reads to summarize a transcript for a question."""
    return f"{_QUESTION_LABEL}{question}{_TRANSCRIPT_LABEL}{record}"


def cut_request(text: str, max_chars: int) -> str:
    """A request for a summary with a smaller part of its transcript, for a model with a small window."""
    question, label, record = text.partition(_TRANSCRIPT_LABEL)
    query = parse(question.removeprefix(_QUESTION_LABEL))
    return question + label + cut_around_matches(record, query, max(0, max_chars - len(question) - len(label)))


def cut_around_matches(text: str, query: Query, max_chars: int) -> str:
    """The part of `max_chars` characters with the most matches, a quarter of it before the first of them."""
    if len(text) <= max_chars:
        return text
    starts = [start for start, _ in match_spans(text, query)] or [0]
    best, covered, end = starts[0], 0, 0
    for number, start in enumerate(starts):
        end = max(end, number)
        while end < len(starts) and starts[end] < start + max_chars * 3 // 4:
            end += 1
        if end - number > covered:
            best, covered = start, end - number
    begin = max(0, min(best - max_chars // 4, len(text) - max_chars))
    return text[begin : begin + max_chars]


# A summary has about 200 words; the rest is for models that think first.
_MAX_OUTPUT_TOKENS = 4_000
# What a request may take of the window; token counts are estimates.
_REQUEST_SHARE = 0.6


class SummaryWriter:
    """A `Summarize` function with a model that is set up by the first summary, so that other searches load none."""

    def __init__(self, set_up_model: Callable[[], ChatModel], deadline: float) -> None:
        """`set_up_model` may raise; then that summary fails. `deadline` is in seconds, for one call."""
        self._set_up_model = set_up_model
        self._deadline = deadline
        self._lock = threading.Lock()
        self._model: ChatModel | None = None

    def __call__(self, instructions: str, text: str) -> str:
        """The summary; raises ModelError if there is none. Several threads may call this at once."""
        return self.ask(instructions, text).text

    def ask(self, instructions: str, text: str) -> Reply:
        """The summary with the tokens that it took."""
        with self._lock:
            if self._model is None:
                self._model = self._set_up_model()
            model = self._model
        tokens, room = estimate_text(text), int(model.window * _REQUEST_SHARE)
        if tokens > room:
            text = cut_request(text, len(text) * room // tokens)
        reply = model.reply(
            instructions,
            [{"role": "user", "content": text}],
            max_tokens=max(1, min(_MAX_OUTPUT_TOKENS, model.window // 4)),
            deadline=self._deadline,
        )
        if reply.finish_reason == "refusal":
            raise ModelReplyError("The model refused to write a summary.")
        return reply
