"""Measures summaries of search results: what they keep of the messages that they replace, and what they invent.

Only names and numbers are compared, because they can be found without a model.
"""

import re
from collections.abc import Iterator, Sequence

from memoranda.errors import ModelError
from memoranda.search import guidance
from memoranda.search.query import parse
from memoranda.search.searchable_store import SearchableStore
from memoranda.search.summaries import SummaryWriter, build_request, transcript
from memoranda.search.tool import SessionSearchTool
from memoranda.support.lazy_dataclass import dataclass

# Paths and identifiers, numbers, and words with a capital letter that do not begin a sentence.
_SPECIFIC = re.compile(
    r"[\w.~-]*/[\w./~-]*\w|\b\w+[._]\w[\w.-]*|\b[A-Za-z]+-\d\w*|\b\d+(?:[.,:-]\d+)*|(?<=[\w,;] )[A-Z]\w+"
)


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """A question, the messages that its best result shows, and the transcript of that conversation."""

    question: str
    shown: str
    record: str


@dataclass(slots=True)
class SummaryScore:
    """The sums over all summaries of one model; `failure` is the latest reason for a missing one."""

    model: str
    summaries: int = 0
    failed: int = 0
    shown_terms: int = 0
    kept_terms: int = 0
    unsupported_terms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failure: str = ""

    @property
    def coverage(self) -> float | None:
        """The share of the names and numbers shown that the summaries have; None if none were shown."""
        return self.kept_terms / self.shown_terms if self.shown_terms else None


def find_specifics(text: str) -> set[str]:
    """The names and numbers of a text, in lower case."""
    return {found.strip(".-_").casefold() for found in _SPECIFIC.findall(text)} - {""}


def build_tasks(db: SearchableStore, tool: SessionSearchTool, questions: Sequence[str]) -> Iterator[SummaryTask]:
    """Searches for each question; one that finds nothing is skipped."""
    for question in questions:
        results = tool.call({"query": question, "limit": 1}).get("results")
        if results:
            shown = "\n".join(message["content"] for message in results[0].get("messages", ()))
            yield SummaryTask(question, shown, transcript(db, results[0]["session_id"], parse(question)))


def measure(name: str, writer: SummaryWriter, tasks: Sequence[SummaryTask]) -> SummaryScore:
    """Lets a model summarize each task; a summary that fails is counted as failed only."""
    score = SummaryScore(name)
    for task in tasks:
        try:
            reply = writer.ask(guidance.SUMMARY, build_request(task.question, task.record))
        except ModelError as error:
            score.failed, score.failure = score.failed + 1, str(error)
            continue
        score.input_tokens += reply.usage.input_tokens
        score.output_tokens += reply.usage.output_tokens
        if not reply.text.strip():
            score.failed, score.failure = score.failed + 1, "the model wrote nothing"
            continue
        score.summaries += 1
        summary, source = reply.text.casefold(), f"{task.question}\n{task.record}".casefold()
        shown = find_specifics(task.shown)
        score.shown_terms += len(shown)
        score.kept_terms += sum(_occurs(term, summary) for term in shown)
        score.unsupported_terms += sum(not _occurs(term, source) for term in find_specifics(reply.text))
    return score


def _occurs(term: str, text: str) -> bool:
    """Whether a text has the term as a whole: 42 is not in 1420."""
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None
