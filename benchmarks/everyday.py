"""Measures what people do every day with a memory: ask again, look for a name or a phrase, ask about what changed.

    python -m benchmarks.everyday                                 # every part
    python -m benchmarks.everyday --part plain --failures
    python -m benchmarks.everyday --group names --decoys 3200     # behind many messages that have the same pieces

The cases are text files in `everyday/plain/`, `hard/` and `changes/`, in up to eight languages, written by people who
had not seen the rules of ranking. Each part is recorded in a home of its own, with the conversations in
`everyday/haystack.txt`; then every question goes to `memory.search`, to `memory.recall`, to the hook that a host runs
on every prompt, and to plain FTS5 over the same messages. The prompts of `prompts.txt` and the questions of
`others.txt` have no answer in the record: the hook and `recall` should show nothing for them.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import memoranda
from benchmarks.recall import fill_store
from benchmarks.recall_peers import open_peers
from memoranda.integrations.hooks.prompt_evidence import find_evidence
from memoranda.search.relevance import CONFIDENCES

PARTS = ("plain", "hard", "changes")
LITERAL, NAMES, PHRASES, CHANGED, ANOTHER, REASKED, CORRECTED, OWN, OTHERS, PROMPTS = (
    "literal", "names", "phrases", "changed", "another", "reasked", "corrected", "own", "others", "prompts",
)  # fmt: skip
GROUPS = (LITERAL, NAMES, PHRASES, CHANGED, ANOTHER, REASKED, CORRECTED, OWN, OTHERS, PROMPTS)
_FILES = Path(__file__).parent / "everyday"
_ROLES = {"u": "user", "a": "assistant"}
# A key that names a kind of case; all other keys are ways to ask.
_KINDS = ("when", "cue")
_KEY = re.compile(r"(u|a|when|cue|typed|bare|typo|remind|name|phrase|ask): (.*)")
_OLD = datetime(2023, 3, 6, 9, tzinfo=UTC)
_FIRST_DAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
_DAYS = 220
_NEW = datetime(2026, 10, 5, 9, tzinfo=UTC)
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass
class Case:
    """One case: its conversations by label, in the order of time, and the ways in which it is asked."""

    group: str
    name: str
    kind: str = ""
    conversations: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    asks: list[tuple[str, str]] = field(default_factory=list)

    def session(self, label: str) -> str:
        return f"{self.group}/{self.name}/{label}"

    @property
    def gold(self) -> str:
        """The conversation that should come first; "" for a question that none answers."""
        if self.group in (OTHERS, PROMPTS):
            return ""
        newest = {CHANGED: "new", CORRECTED: "again"}.get(self.group)
        return self.session(newest or next(iter(self.conversations)))

    @property
    def stale(self) -> str:
        """The conversation with the old value of a fact that changed."""
        return self.session("old") if self.group == CHANGED else ""


@dataclass(frozen=True)
class Asked:
    """One question, and the conversations that each program returned for it, best first."""

    group: str
    kind: str
    text: str
    gold: str
    stale: str
    found: list[str]
    confidences: list[str]
    recalled: list[str]
    given: list[str]
    """What the hook shows unasked."""
    plain: list[str]
    """What plain FTS5 returns."""

    @property
    def is_right(self) -> bool:
        return not self.given if not self.gold else self.found[:1] == [self.gold]

    def is_repeated(self, sessions: Iterable[str]) -> bool:
        """Whether one of the sessions asked the same without success."""
        return any(session.startswith(self.gold.removesuffix("first") + "again") for session in sessions)

    @property
    def out_of_order(self) -> bool:
        """Whether a less sure hit is listed above a surer one."""
        ranks = [CONFIDENCES.index(word) for word in self.confidences]
        return ranks != sorted(ranks, reverse=True)


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of one file; each line of `prompts.txt` is one."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("# ")]
    if path.stem == PROMPTS:
        yield from (Case(PROMPTS, str(number), asks=[("", line)]) for number, line in enumerate(lines))
        return
    blocks: list[list[str]] = []
    for line in lines:
        if line.startswith("= "):
            blocks.append([])
        blocks[-1].append(line)
    yield from (_read_case(path.stem, block) for block in blocks)


def _read_case(group: str, lines: Sequence[str]) -> Case:
    """A case from its lines: "> label" begins a conversation, "u:" and "a:" are messages, other keys are questions."""
    case = Case(group, lines[0][2:])
    label = "first"
    for line in lines[1:]:
        match = _KEY.fullmatch(line)
        if line.startswith("> "):
            label = line[2:]
        elif match is None:
            role, text = case.conversations[label].pop()
            case.conversations[label].append((role, f"{text}\n{line}"))
        elif match[1] in _ROLES:
            case.conversations.setdefault(label, []).append((_ROLES[match[1]], match[2]))
        elif match[1] in _KINDS:
            case.kind = f"{match[1]}: {match[2]}"
        else:
            case.asks.append((match[1], match[2]))
    if group == LITERAL:
        case.asks.insert(0, ("as typed", case.conversations["first"][0][1]))
    return case


def load_part(part: str, groups: Iterable[str] = GROUPS) -> list[Case]:
    """The cases of a part, of these groups."""
    paths = (_FILES / part / f"{group}.txt" for group in groups)
    return [case for path in paths if path.is_file() for case in read_cases(path)]


def make_store(cases: Iterable[Case], decoys: int = 1) -> dict[str, Any]:
    """All conversations of these cases and the haystack, with their dates, as the recall benchmarks read them.

    For a name of several pieces there is a later conversation with the pieces in another order, in as many messages as
    `decoys` says: search must not prefer it.
    """
    sessions: list[dict[str, Any]] = []
    for number, case in enumerate([*cases, *read_cases(_FILES / "haystack.txt")]):
        begin = _FIRST_DAY + timedelta(days=number * 7 % _DAYS)
        if case.kind == "when: old":
            begin = _OLD + timedelta(days=number)
        elif case.kind == "when: new":
            begin = _NEW + timedelta(hours=number)
        conversations = dict(case.conversations)
        if case.group == NAMES and len(pieces := _PIECE.findall(case.asks[0][1])) > 1:
            text = f"Let us talk about {' and '.join(reversed(pieces))} tomorrow."
            conversations["pieces"] = [("user", text)] * decoys + [("assistant", "All right.")]
        for position, (label, messages) in enumerate(conversations.items()):
            sessions.append(
                {
                    "id": case.session(label),
                    "ts": (begin + timedelta(days=position * 9)).isoformat(),
                    "messages": [{"role": role, "text": text} for role, text in messages],
                }
            )
    return {"id": "everyday", "sessions": sessions}


@contextmanager
def open_home(cases: Sequence[Case], decoys: int = 1) -> Iterator[Callable[[], list[Asked]]]:
    """Record the conversations of these cases; yields a function that asks all their questions."""
    store = make_store(cases, decoys)
    plain = open_peers(store)["FTS5 porter"]
    with TemporaryDirectory(prefix="memoranda-everyday-") as home, memoranda.open(home) as memory:
        names = fill_store(memory.sessions, "everyday", store)
        memory.sessions.index.catch_up()
        record = Path(home, "state.db")

        def ask(case: Case, form: str, text: str) -> Asked:
            results = memory.search(text)["results"]
            recalled = memory.recall(text).search["results"]
            evidence = find_evidence(record, None, text, "claude-code", "", frozenset())
            return Asked(
                case.group,
                case.kind or form,
                text,
                case.gold,
                case.stale,
                [names[hit["session_id"]] for hit in results],
                [hit["confidence"] for hit in results],
                [names[hit["session_id"]] for hit in recalled],
                [names[shown["session_id"]] for shown in evidence.details.get("given", ())],
                plain(text),
            )

        yield lambda: [ask(case, form, text) for case in cases for form, text in case.asks]


def measure(cases: Sequence[Case], decoys: int = 1) -> list[Asked]:
    with open_home(cases, decoys) as ask_all:
        return ask_all()


def _by_kind(asked: Iterable[Asked]) -> dict[str, list[Asked]]:
    """The questions of each group, then of each kind within the group if there are several."""
    groups: dict[str, list[Asked]] = {}
    for each in asked:
        groups.setdefault(each.group, []).append(each)
    rows: dict[str, list[Asked]] = {}
    for group, members in groups.items():
        rows[group] = members
        kinds = dict.fromkeys(each.kind for each in members)
        if len(kinds) > 1:
            rows |= {f"{group}, {kind}": [each for each in members if each.kind == kind] for kind in kinds}
    return rows


Column = Callable[[Asked], bool]
ANSWERED: dict[str, Column] = {
    "first": lambda each: each.found[:1] == [each.gold],
    "in three": lambda each: each.gold in each.found[:3],
    "FTS5 first": lambda each: each.plain[:1] == [each.gold],
    "FTS5 in three": lambda each: each.gold in each.plain[:3],
    "hook shows it": lambda each: each.gold in each.given,
    "hook shows others only": lambda each: bool(each.given) and each.gold not in each.given,
    "recall shows it": lambda each: each.gold in each.recalled,
    "a less sure hit above a surer": lambda each: each.out_of_order,
}
CHANGES: dict[str, Column] = {
    "new first": lambda each: each.found[:1] == [each.gold],
    "new, and old with it": lambda each: each.gold in each.found and each.stale in each.found,
    "stale only": lambda each: each.gold not in each.found and each.stale in each.found,
    "hook: new first": lambda each: each.given[:1] == [each.gold],
    "hook: new, and old with it": lambda each: each.gold in each.given and each.stale in each.given,
    "hook: stale only": lambda each: each.gold not in each.given and each.stale in each.given,
    "hook: nothing": lambda each: not each.given,
}
REASKINGS: dict[str, Column] = {
    "answer first": lambda each: each.found[:1] == [each.gold],
    "failed asking first": lambda each: each.is_repeated(each.found[:1]),
    "failed asking listed": lambda each: each.is_repeated(each.found),
    "hook shows the answer": lambda each: each.gold in each.given,
    "hook shows a failed asking": lambda each: each.is_repeated(each.given),
}
UNANSWERED: dict[str, Column] = {
    "hook shows something": lambda each: bool(each.given),
    "recall shows something": lambda each: bool(each.recalled),
    "a search is sure": lambda each: "sure" in each.confidences,
}


def count(asked: Iterable[Asked], columns: dict[str, Column]) -> dict[str, dict[str, int]]:
    """How many questions of each row are true for each column."""
    return {
        row: {"asked": len(members)} | {name: sum(map(test, members)) for name, test in columns.items()}
        for row, members in _by_kind(asked).items()
    }


def count_confidences(asked: Iterable[Asked]) -> dict[str, dict[str, int]]:
    """How often each word stands at a right and at another conversation, first and anywhere."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in asked:
        for place, (session, word) in enumerate(zip(each.found, each.confidences, strict=True)):
            verdict = "right" if session == each.gold else "other"
            counts[word, verdict] += 1
            counts[word, f"first, {verdict}"] += not place
    columns = ("first, right", "first, other", "right", "other")
    return {word: {column: counts[word, column] for column in columns} for word in reversed(CONFIDENCES)}


def summarize(asked: Sequence[Asked]) -> dict[str, dict[str, dict[str, int]]]:
    """All tables of a part, by title."""
    answered = [each for each in asked if each.gold]
    return {
        "questions with an answer": count(answered, ANSWERED),
        "facts that changed": count([each for each in asked if each.group == CHANGED], CHANGES),
        "questions asked again": count([each for each in asked if each.group == REASKED], REASKINGS),
        "prompts without an answer": count([each for each in asked if not each.gold], UNANSWERED),
        "how sure a search is": count_confidences(answered),
    }


def table(title: str, rows: dict[str, dict[str, int]]) -> str:
    """Format counts as Markdown."""
    columns = next(iter(rows.values()))
    lines = [f"{title} | {' | '.join(columns)}", "|".join(["---", *("---:" for _ in columns)])]
    lines += [f"{name} | {' | '.join(map(str, row.values()))}" for name, row in rows.items()]
    return "\n".join(f"| {line} |" for line in lines)


def describe_failure(each: Asked) -> str:
    hits = ", ".join(f"{session} ({word})" for session, word in zip(each.found, each.confidences, strict=True))
    return f"{each.gold or each.group} ({each.kind}): {each.text}\n    search: {hits or '–'}\n    hook: {each.given}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this group; can be given several times")
    parser.add_argument("--decoys", type=int, default=1, help="messages with the pieces of each name in another order")
    parser.add_argument("--failures", action="store_true", help="list each question that goes wrong")
    parser.add_argument("--json", type=Path, help="also write the figures and every answer here")
    arguments = parser.parse_args()
    figures = {}
    for part in [arguments.part] if arguments.part else PARTS:
        start = time.process_time()
        cases = load_part(part, arguments.group or GROUPS)
        if not cases:
            continue
        asked = measure(cases, arguments.decoys)
        tables = summarize(asked)
        figures[part] = {"tables": tables, "asked": [asdict(each) for each in asked]}
        print(f"Part {part}: {len(cases)} cases, {len(asked)} questions, {time.process_time() - start:.0f} s of CPU\n")
        print("\n\n".join(table(title, rows) for title, rows in tables.items() if rows))
        if arguments.failures:
            print("\n" + "\n".join(describe_failure(each) for each in asked if not each.is_right))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
