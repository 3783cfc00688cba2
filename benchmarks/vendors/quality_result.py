"""What a memory recalled for each question of `quality`: when evidence counts as found, and the table of figures."""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.vendors.quality_sample import SampleQuestion
from memoranda.models.tokens import estimate_text
from memoranda.search.query import content_words

SHARE_OF_WORDS = 0.6
"""Evidence counts as found if the recalled text has this share of its content words."""
_MIN_WORDS = 3
# What a provider adds to each item: the vendor, a date and a score.
_LABELS = re.compile(r" \([^()]*\)$")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one memory recalled for one question; `found` are positions in the question's evidence."""

    question: str
    set_name: str
    kind: str
    evidence: int
    found: frozenset[int]
    by_chance: int
    """How much of the evidence the answer to another question contains."""
    tokens: int
    seconds: float


@dataclass(slots=True)
class Result:
    """The answers of one memory to all questions; `reason` is why it could not run."""

    title: str
    answers: list[Answer] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    write_seconds: float = 0.0
    failures: int = 0
    note: str = ""
    reason: str = ""


def contains_evidence(recalled: str, evidence: str) -> bool:
    """Whether a recalled text has a message word for word, or most of its content words.

    The words must be in one line, because a text of thousands of words has most words of a short message by chance; or
    in lines that have hardly any other words, which is how facts look that were extracted from the message.
    """
    if _normalize(evidence) in _normalize(recalled):
        return True
    words = content_words(evidence)
    if len(words) < _MIN_WORDS:
        return False
    extracted: set[str] = set()
    for line in recalled.splitlines():
        line_words = content_words(_LABELS.sub("", line))
        shared = words & line_words
        if len(shared) >= SHARE_OF_WORDS * len(words):
            return True
        if len(shared) >= SHARE_OF_WORDS * len(line_words):
            extracted |= shared
    return len(extracted) >= SHARE_OF_WORDS * len(words)


def _normalize(text: str) -> str:
    return " ".join(text.split()).casefold()


def score_answers(
    questions: Sequence[SampleQuestion], texts: Sequence[str], tokens: Sequence[int], seconds: Sequence[float]
) -> list[Answer]:
    """Compare each recalled text with the evidence of its question, and with that of no question it was asked for."""
    return [
        Answer(
            question.id,
            question.set_name,
            question.kind,
            len(question.evidence),
            _found(question, texts[number]),
            len(_found(question, texts[_unrelated(questions, number)])),
            tokens[number],
            seconds[number],
        )
        for number, question in enumerate(questions)
    ]


def _found(question: SampleQuestion, text: str) -> frozenset[int]:
    return frozenset(number for number, each in enumerate(question.evidence) if contains_evidence(text, each))


def _unrelated(questions: Sequence[SampleQuestion], number: int) -> int:
    """The next question of the same set whose evidence is in other sessions."""
    asked = questions[number]
    for step in range(1, len(questions)):
        other = (number + step) % len(questions)
        if questions[other].set_name == asked.set_name and not questions[other].sessions & asked.sessions:
            return other
    raise ValueError(f"every question shares a session with {asked.id}; take a larger sample")


def ask_all(
    questions: Sequence[SampleQuestion], ask: Callable[[str], str], readable: Callable[[str], str], result: Result
) -> None:
    answers, seconds = [], []
    for question in questions:
        began = time.monotonic()
        answers.append(ask(question.text))
        seconds.append(time.monotonic() - began)
    result.texts = [readable(answer) for answer in answers]
    result.answers = score_answers(questions, result.texts, [estimate_text(answer) for answer in answers], seconds)


def make_rows(ours: Result, others: Sequence[Result], also_ours: Result) -> list[dict[str, Any]]:
    """The table: for each set, our search and then every memory, alone and together with our search.

    `also_ours` is another way to ask us; what neither way finds is what a memory adds whatever we do.
    """
    rows = []
    for set_name in dict.fromkeys(answer.set_name for answer in ours.answers):
        base, second = (_of_set(result, set_name) for result in (ours, also_ours))
        for result in (ours, *others):
            if answers := _of_set(result, set_name):
                rows.append({"set": set_name, "memory": result.title, **_figures(base, second, answers)})
    return rows


def _of_set(result: Result, set_name: str) -> list[Answer]:
    return [answer for answer in result.answers if answer.set_name == set_name]


def _figures(base: Sequence[Answer], second: Sequence[Answer], answers: Sequence[Answer]) -> dict[str, Any]:
    pairs = list(zip(base, answers, strict=True))
    return {
        "evidence": sum(answer.evidence for answer in answers),
        "found": sum(len(answer.found) for answer in answers),
        "together": sum(len(mine.found | answer.found) for mine, answer in pairs),
        "only_here": sum(len(answer.found - mine.found) for mine, answer in pairs),
        "in_neither": sum(
            len(answer.found - mine.found - also.found)
            for mine, also, answer in zip(base, second, answers, strict=True)
        ),
        "only_ours": sum(len(mine.found - answer.found) for mine, answer in pairs),
        "questions": len(answers),
        "questions_helped": sum(bool(answer.found - mine.found) for mine, answer in pairs),
        "by_chance": sum(answer.by_chance for answer in answers),
        "tokens": round(statistics.mean(answer.tokens for answer in answers)),
        "milliseconds": round(1000 * statistics.median(answer.seconds for answer in answers)),
        "empty": sum(not answer.tokens for answer in answers),
    }


def format_rows(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    head = ["set", "memory", "finds", "with our search", "only it", "in neither of ours", "only we", "by chance"]
    head += ["tokens", "nothing recalled", "ms"]
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for row in rows:
        found, together = (f"{row[key]} of {row['evidence']}" for key in ("found", "together"))
        cells = [row["set"], row["memory"], found, together, row["only_here"], row["in_neither"]]
        cells += [row["only_ours"], row["by_chance"]]
        cells += [f"{row['tokens']:,}", f"{row['empty']} of {row['questions']}", row["milliseconds"]]
        lines.append(" | ".join(str(cell) for cell in cells))
    return "\n".join(f"| {line} |" for line in lines)


def format_outcome(result: Result) -> str:
    """What the table does not show: why a vendor did not run, how long writing took, what failed."""
    if result.reason:
        return f"{result.title}: not run: {result.reason}"
    details = [f"{result.write_seconds:.0f} s to write", result.note]
    details.append(f"{result.failures} recalls failed" if result.failures else "")
    return f"{result.title}: {', '.join(filter(None, details))}"
