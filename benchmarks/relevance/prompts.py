"""The prompts of the measurement, in two parts: one for choosing the constants, one that is locked until they stand.

A third of the stores of each set is locked; of a set with one store, a third of its questions. The prompts that were
written for this measurement are in files, one per part.
"""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Part = Literal["development", "locked"]
Data = dict[str, Any]

HAS_ANSWER, NO_ANSWER, REMOVED, FOREIGN = "has an answer", "has none", "answer removed", "other people's"
EVERYDAY, OTHER_WORK = "everyday", "other work"
KINDS = (HAS_ANSWER, FOREIGN, EVERYDAY, OTHER_WORK, NO_ANSWER, REMOVED)
UNSPACED = ("cmrc_zh", "jsquad_ja")
# Conversations of two people: what they write to each other is no prompt.
_CHATS = ("locomo",)
_PROMPTS = Path(__file__).with_name("written")
_SHORT_LIST = Path(__file__).parent.parent / "everyday_prompts.txt"
_FOREIGN, _OTHER_WORK, _REMOVED = 60, 6, 150
# Each of several stores gets some of the written prompts; the only store of a set gets all.
_WRITTEN = 100


@dataclass(frozen=True)
class Prompt:
    """One prompt for one store; `gold` are the sessions with its evidence."""

    kind: str
    text: str
    gold: frozenset[str] = field(default_factory=frozenset)


def read_sets(directory: Path) -> dict[str, Data]:
    sets = {}
    for path in sorted(directory.glob("*.json.gz")):
        with gzip.open(path) as stream:
            sets[path.name.split(".")[0]] = json.load(stream)
    return sets


def stores_of(data: Data, part: Part) -> list[Data]:
    """The last third of the stores is locked; the only store of a set belongs to both parts."""
    stores: list[Data] = data["stores"]
    if len(stores) == 1:
        return stores
    first_locked = len(stores) - round(len(stores) / 3)
    return stores[first_locked:] if part == "locked" else stores[:first_locked]


def questions_of(data: Data, part: Part, name: str = "queries") -> list[Data]:
    stores = {store["id"] for store in stores_of(data, part)}
    questions = [question for question in data[name] if question["store"] in stores]
    if len(data["stores"]) > 1:
        return questions
    return [question for question in questions if (_number(question["id"]) % 3 == 0) == (part == "locked")]


def written_prompts(name: str, part: Part) -> list[str]:
    lines = (_PROMPTS / f"{name}_{part}.txt").read_text("utf-8").splitlines()
    if name == "everyday" and part == "development":
        lines += _SHORT_LIST.read_text("utf-8").splitlines()
    return [line for line in lines if line]


def prompts_for(sets: dict[str, Data], name: str, store: Data, part: Part) -> Iterator[Prompt]:
    """Every prompt for one store."""
    rng = random.Random(f"{part} {name} {store['id']}")
    for question in questions_of(sets[name], part):
        if question["store"] == store["id"]:
            yield Prompt(HAS_ANSWER, question["q"], frozenset(question["gold_sessions"]))
    for question in questions_of(sets[name], part, "no_answer"):
        if question["store"] == store["id"]:
            yield Prompt(NO_ANSWER, question["q"])
    for other, theirs in sets.items():
        if (other in UNSPACED) == (name in UNSPACED):
            own = store["id"] if other == name else None
            questions = [question["q"] for question in questions_of(theirs, part) if question["store"] != own]
            yield from (Prompt(FOREIGN, text) for text in rng.sample(questions, min(_FOREIGN, len(questions))))
            if other not in UNSPACED and other not in _CHATS:
                yield from _other_work(stores_of(theirs, part), own, rng)
    several = len(sets[name]["stores"]) > 1
    for kind, file in ((EVERYDAY, "everyday"), (OTHER_WORK, "work")):
        lines = written_prompts(file, part)
        chosen = rng.sample(lines, min(_WRITTEN, len(lines))) if several else lines
        yield from (Prompt(kind, line) for line in chosen)


def _other_work(stores: list[Data], own: str | None, rng: random.Random) -> Iterator[Prompt]:
    """What users said in other stores."""
    for store in stores:
        if store["id"] != own:
            messages = [message for session in store["sessions"] for message in session["messages"]]
            texts = [message["text"] for message in messages if message["role"] == "user"]
            yield from (Prompt(OTHER_WORK, text) for text in rng.sample(texts, min(_OTHER_WORK, len(texts))))


def without_answers(sets: dict[str, Data], name: str, store: Data, part: Part) -> tuple[Data, list[Prompt]]:
    """The store without the sessions that answer some of its questions, and those questions."""
    rng = random.Random(f"{part} removed {name} {store['id']}")
    questions = [question for question in questions_of(sets[name], part) if question["store"] == store["id"]]
    if len(sets[name]["stores"]) > 1:
        gone = {session["id"] for session in rng.sample(store["sessions"], len(store["sessions"]) // 2)}
    else:
        questions = rng.sample(questions, min(len(questions) // 2, _REMOVED))
        gone = {session for question in questions for session in question["gold_sessions"]}
    smaller = store | {"sessions": [session for session in store["sessions"] if session["id"] not in gone]}
    return smaller, [Prompt(REMOVED, q["q"]) for q in questions if gone.issuperset(q["gold_sessions"])]


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)
