"""A sample of LoCoMo and LongMemEval questions for `quality`: one history of turns, and questions with their evidence.

The sets are not part of the repository (LoCoMo is not for commercial use); README.md beside `recall.py` names them.
The sample is the same in every run. Both sets form one history, so each question also competes with the other set.
"""

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

NOTED = "Noted."
"""What the assistant answers where the data has no assistant, or no answer."""

_LOCOMO_CONVERSATION = "conv-30"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SampleTurn:
    session: str
    time: float
    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question, and the messages that answer it. `kind` is the data's own name for the sort of question."""

    id: str
    set_name: str
    kind: str
    text: str
    evidence: tuple[str, ...]
    sessions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sample:
    turns: tuple[SampleTurn, ...]
    questions: tuple[SampleQuestion, ...]


def load_sample(data: Path, locomo: int, longmemeval: int, sessions: int) -> Sample:
    """Take a sample from a folder with both sets.

    `locomo` questions of one conversation, all of whose sessions are used; `longmemeval` questions with `sessions`
    sessions: those with the evidence, and others.
    """
    first = _sample_locomo(_load(data / "locomo.dev.json.gz"), locomo)
    second = _sample_longmemeval(_load(data / "lme_pool.dev.json.gz"), longmemeval, sessions)
    turns = sorted((*first.turns, *second.turns), key=lambda turn: turn.time)
    return Sample(tuple(turns), first.questions + second.questions)


def _sample_locomo(data: dict[str, Any], count: int) -> Sample:
    """Two people talk to each other: a turn is two messages with their speakers, as a user might show them."""
    store = next(store for store in data["stores"] if store["id"] == _LOCOMO_CONVERSATION)
    turns = []
    for session in store["sessions"]:
        lines = [f"{message['speaker']}: {message['text']}" for message in session["messages"]]
        pairs = [("\n".join(lines[start : start + 2]), NOTED) for start in range(0, len(lines), 2)]
        turns += _date_turns("locomo", session, pairs)
    asked = [question for question in data["queries"] if question["store"] == _LOCOMO_CONVERSATION]
    return Sample(tuple(turns), _questions("locomo", spread(asked, count), store["sessions"]))


def _sample_longmemeval(data: dict[str, Any], count: int, session_count: int) -> Sample:
    """A person and an assistant: a turn is what the person says and what the assistant answers."""
    every = data["stores"][0]["sessions"]
    asked = spread(data["queries"], count)
    wanted = {session for question in asked for session in question["gold_sessions"]}
    others = [session["id"] for session in every if session["id"] not in wanted]
    wanted.update(spread(others, session_count - len(wanted)))
    chosen = [session for session in every if session["id"] in wanted]
    turns = [turn for session in chosen for turn in _date_turns("lme", session, pair_messages(session["messages"]))]
    return Sample(tuple(turns), _questions("longmemeval", asked, chosen))


def pair_messages(messages: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """What the user said and what was answered, for each turn; consecutive messages of one role are joined."""
    turns: list[tuple[list[str], list[str]]] = []
    for message in messages:
        is_user = message["role"] == "user"
        if not turns or (is_user and turns[-1][1]):
            turns.append(([], []))
        turns[-1][0 if is_user else 1].append(message["text"])
    return [("\n".join(user) or NOTED, "\n".join(assistant) or NOTED) for user, assistant in turns]


def spread(items: Sequence[T], count: int) -> list[T]:
    """`count` items at equal distances, so that none is chosen by hand."""
    if count <= 0:
        return []
    return [items[int(number * len(items) / count)] for number in range(min(count, len(items)))]


def _date_turns(prefix: str, session: dict[str, Any], pairs: Iterable[tuple[str, str]]) -> list[SampleTurn]:
    start = datetime.fromisoformat(session["ts"]).timestamp()
    name = f"{prefix}-{session['id']}"
    return [SampleTurn(name, start + 60 * number, user, answer) for number, (user, answer) in enumerate(pairs)]


def _questions(
    set_name: str, asked: Iterable[dict[str, Any]], sessions: Iterable[dict[str, Any]]
) -> tuple[SampleQuestion, ...]:
    texts = {message["id"]: message["text"] for session in sessions for message in session["messages"]}
    prefix = "lme" if set_name == "longmemeval" else set_name
    return tuple(
        SampleQuestion(
            question["id"],
            set_name,
            question["type"],
            question["q"],
            tuple(texts[message] for message in question["gold_msgs"]),
            frozenset(f"{prefix}-{session}" for session in question["gold_sessions"]),
        )
        for question in asked
    )


def _load(path: Path) -> dict[str, Any]:
    with gzip.open(path) as stream:
        data: dict[str, Any] = json.load(stream)
        return data
