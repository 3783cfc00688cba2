"""What changes as a home grows: which planted notes are found, and what searching, recording and the disk cost.

    python -m benchmarks.growth --home DIR                               # 10,000 and 100,000 messages
    python -m benchmarks.growth --home DIR --sizes 500000
    python -m benchmarks.growth --home DIR --sizes 20000 --instructions  # of a question, with valgrind

The conversations are those of `corpus.py`, with about three middling words at the end of most messages: words of which
each is in 0.3 to 2 % of them. A hundred notes are planted, messages of five such words, evenly over the conversations;
no word finds a note alone, and no other message has all five. Each search is asked once, in a home that was just
opened; its figure is the CPU of a whole `session_search` with `limit` 3. Plain FTS5
answers the notes' questions over the same messages. Homes stay in DIR: a second run measures them again.
"""

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import memoranda
from benchmarks.corpus import CHINESE_PHRASES, PHRASES, Session, make_session
from benchmarks.corpus_words import COMMON, MIDDLING
from benchmarks.recall_peers import open_peers
from benchmarks.start_up import count_instructions

QUESTION, WORDS = "question, 8 to 12 words", "five plain words"
_NOTES, _CRON_NOTES, _PER_KIND = 100, 10, 20
_SAMPLE = 10_000
_PER_HOME = 20
_ASKED_BEFORE, _COUNTED = 15, 20
_MAX_PEER_MESSAGES = 100_000
# Load what a process loads once, and find something: after a search that finds nothing, the index is checked.
_WARM_UP = ("build", "deploy server", "what is the file of the config", "数据", "token cache")
_NOTE_FORMS = (
    "The {} stays beside the {}; the {} follows the {}, never the {}.",
    "Keep {} and {} apart: first the {}, then the {}, last the {}.",
    "We put the {} under the {} because the {} needs a {} and a {}.",
    "Before the {} comes the {}, after it the {}; a {} replaces the {}.",
)
_QUESTION_FORMS = (
    "What did we decide about the {}, {}, {}, {} and {}?",
    "Where is it written how {} and {} need {}, {}, {}?",
    "Which {} {} belongs to the {} {} and {}?",
    "How does {} {} change {} {} {}?",
)
_WORD = re.compile(r"[a-z]+")
_WEIGHTS = list(accumulate(1 / (rank + 60) for rank in range(len(MIDDLING))))


@dataclass(frozen=True, slots=True)
class Note:
    """A planted message: in which conversation, by whom, and its words."""

    number: int
    role: str
    text: str
    words: list[str]


@dataclass(frozen=True, slots=True)
class SearchText:
    """A search, and the conversation that it should find; "" if any will do."""

    kind: str
    text: str
    gold: str = ""


def conversations(messages: int, notes: Sequence[Note] = ()) -> Iterator[Session]:
    """Generate conversations with this many messages together, with their middling words and the notes."""
    planted = {note.number: note for note in notes}
    number, missing = 0, messages
    while missing > 0:
        session = _sprinkle(make_session(number), number)
        del session.messages[missing:]
        if note := planted.get(number):
            place = max(at for at, message in enumerate(session.messages) if message.role == note.role)
            session.messages[place] = replace(session.messages[place], content=note.text, tool_calls=None)
        yield session
        missing -= len(session.messages)
        number += 1


def _sprinkle(session: Session, number: int) -> Session:
    """Add up to six middling words to each message with text; a session has some of its own."""
    rng = random.Random(f"middling/{number}")
    own = rng.choices(MIDDLING, cum_weights=_WEIGHTS, k=16)
    for place, message in enumerate(() if session.chinese else session.messages):
        count = min(6, int(rng.expovariate(1 / 3.0)))
        if message.content and count:
            drawn = rng.choices(MIDDLING, cum_weights=_WEIGHTS, k=count)
            words = [rng.choice(own) if rng.random() < 0.4 else word for word in drawn]
            session.messages[place] = replace(message, content=f"{message.content} Also {', '.join(words)}.")
    return session


def plan_notes(messages: int) -> list[Note]:
    """Choose the conversations of the notes, a tenth of them of cron jobs, and their words."""
    sample: list[str] = []
    places: dict[bool, list[int]] = {True: [], False: []}
    for number, session in enumerate(conversations(messages)):
        if len(sample) < _SAMPLE:
            sample += [message.content.casefold() for message in session.messages]
        if not session.chinese and len(session.messages) >= 4:
            places[session.source == "cron"].append(number)
    counts = Counter(word for text in sample for word in set(_WORD.findall(text)).intersection(MIDDLING))
    words = sorted(word for word, count in counts.items() if 0.004 <= count / len(sample) <= 0.02)
    chosen = sorted(_evenly(places[True], _CRON_NOTES) + _evenly(places[False][:-1], _NOTES - _CRON_NOTES))
    rng, notes = random.Random(41), []
    for index, number in enumerate(chosen):
        five = rng.sample(words, 5)
        text = _NOTE_FORMS[index % len(_NOTE_FORMS)].format(*five)
        notes.append(Note(number, "user" if index % 2 else "assistant", text, five))
    return notes


def _evenly(items: Sequence[Any], count: int) -> list[Any]:
    if len(items) < count:
        raise SystemExit(f"The corpus is too small: {count} of {len(items)} cannot be chosen.")
    return [items[index * (len(items) - 1) // (count - 1)] for index in range(count)]


def plan_searches(notes: Sequence[Note]) -> list[SearchText]:
    """Return two searches for each note, and some of four other kinds."""
    rng = random.Random(43)
    searches = []
    for note in notes:
        gold = make_session(note.number).id
        searches.append(SearchText(QUESTION, rng.choice(_QUESTION_FORMS).format(*rng.sample(note.words, 5)), gold))
        searches.append(SearchText(WORDS, " ".join(rng.sample(note.words, 5)), gold))
    for index in range(_PER_KIND):
        first, second = rng.sample(COMMON[:100], 2)
        searches.append(SearchText("question of common words", f"how does the {first} use the {second}"))
        searches.append(SearchText("common word", COMMON[2 * index]))
        searches.append(SearchText("phrase", f'"{PHRASES[index]}"'))
        searches.append(SearchText("Chinese", CHINESE_PHRASES[index]))
    return rng.sample(searches, len(searches))


def prepare(directory: Path, messages: int) -> tuple[Path, list[Note]]:
    """Return a home with this many messages and the notes in it; build it if it is missing."""
    home, saved = directory / f"{messages}", directory / f"{messages}.json"
    if saved.exists():
        return home, [Note(**note) for note in json.loads(saved.read_text("utf-8"))["notes"]]
    if home.exists():
        raise SystemExit(f"{home} is incomplete: remove it, and it is built again.")
    notes, text, append = plan_notes(messages), 0, 0.0
    home.mkdir(parents=True)
    with memoranda.open(home) as memory:
        began, own = time.process_time(), time.thread_time()
        for session in conversations(messages, notes):
            memory.sessions.create_session(session.id, session.source, title=session.title)
            rows = [{name: value for name, value in asdict(each).items() if value} for each in session.messages]
            start = time.thread_time()
            memory.sessions.append_messages(session.id, rows)
            append += time.thread_time() - start
            text += sum(message.raw_size for message in session.messages)
        own, waiting = time.thread_time() - own, time.thread_time()
        memory.sessions.index.catch_up()
        waited = time.thread_time() - waiting
        index = time.process_time() - began - own
    disk = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    figures = {
        "append, a session at once, ms per message": 1000 * append / messages,
        "indexing, ms per message": 1000 * max(index, waited) / messages,
        "disk / text": disk / text,
    }
    saved.write_text(json.dumps({"notes": [asdict(note) for note in notes], "figures": figures}), "utf-8")
    return home, notes


def measure_searches(home: Path, searches: Sequence[SearchText]) -> dict[str, float]:
    """Ask every search once, a few in each opening of the home."""
    costs: dict[str, list[float]] = {}
    found: dict[str, list[bool]] = {}
    for start in range(0, len(searches), _PER_HOME):
        with memoranda.open(home) as memory:
            for text in _WARM_UP:
                _ask(memory, text)
            for search in searches[start : start + _PER_HOME]:
                began = time.process_time()
                sessions = _ask(memory, search.text)
                costs.setdefault(search.kind, []).append(1000 * (time.process_time() - began))
                if search.gold:
                    found.setdefault(search.kind, []).append(search.gold in sessions)
    hits = {f"hit@3, {kind}": sum(each) / len(each) for kind, each in found.items()}
    return hits | {f"{kind}, p50, ms": median(each) for kind, each in costs.items()}


def _ask(memory: memoranda.Memory, text: str) -> list[str]:
    """Make the JSON text that a model receives."""
    answer = memory.call("session_search", {"query": text, "limit": 3})
    json.dumps(answer, ensure_ascii=False)
    return [result["session_id"] for result in answer["results"]]


def measure_list(home: Path) -> float:
    """Return the milliseconds of CPU for the latest twenty conversations."""
    with memoranda.open(home) as memory:
        memory.sessions.list_sessions_rich(limit=20)
        began = time.process_time()
        for _ in range(30):
            memory.sessions.list_sessions_rich(limit=20)
        return 1000 * (time.process_time() - began) / 30


def measure_peers(messages: int, notes: Sequence[Note], searches: Sequence[SearchText]) -> dict[str, float]:
    """Ask the notes' questions of plain search over the same messages."""
    sessions = [
        {"id": session.id, "messages": [{"text": message.content} for message in session.messages]}
        for session in conversations(messages, notes)
    ]
    figures: dict[str, float] = {}
    for name, ask in open_peers({"sessions": sessions}).items():
        costs, found = [], []
        for search in (each for each in searches if each.kind == QUESTION):
            began = time.process_time()
            found.append(search.gold in ask(search.text)[:3])
            costs.append(1000 * (time.process_time() - began))
        figures |= {f"{name}: hit@3, question": sum(found) / len(found), f"{name}: p50, ms": median(costs)}
    return figures


def measure_instructions(home: Path, searches: Sequence[SearchText]) -> float:
    """Return the million instructions of a question, in a process that has answered others."""
    texts = [search.text for search in searches if search.kind == QUESTION]
    counts = []
    for count in (_ASKED_BEFORE, _ASKED_BEFORE + _COUNTED):
        program = [sys.executable, "-m", "benchmarks.growth", "--home", str(home), "--ask", *texts[:count]]
        counts.append(count_instructions(program, dict(os.environ)))
    return (counts[1] - counts[0]) / _COUNTED / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, metavar="DIR", help="where the homes are kept")
    parser.add_argument("--sizes", default="10000,100000", help="messages, separated by commas")
    parser.add_argument("--instructions", action="store_true", help="count those of a question")
    parser.add_argument("--ask", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        with memoranda.open(options.home) as memory:
            for text in options.ask:
                _ask(memory, text)
        return
    for messages in map(int, options.sizes.split(",")):
        home, notes = prepare(options.home, messages)
        searches = plan_searches(notes)
        figures = json.loads(options.home.joinpath(f"{messages}.json").read_text("utf-8"))["figures"]
        if options.instructions:
            figures["million instructions of a question"] = measure_instructions(home, searches)
        else:
            figures |= measure_searches(home, searches)
            figures["list_sessions_rich(20), ms"] = measure_list(home)
            if messages <= _MAX_PEER_MESSAGES:
                figures |= measure_peers(messages, notes, searches)
        print(f"\n| {messages:,} messages | |\n|---|---:|")
        for name, value in figures.items():
            print(f"| {name} | {value:.3g} |", flush=True)


if __name__ == "__main__":
    main()
