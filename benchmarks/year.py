"""One person's simulated year with a memory: do current facts reach the model, and are stale ones shown as current?

    python -m benchmarks.year                      the whole year, the behaviours side by side
    python -m benchmarks.year --scale 0.1          a tenth of it
    python -m benchmarks.year --wordings FILE      sentences that someone else wrote, see below

A seeded script states 400 facts of 12 projects in 1,500 sessions; 120 of them change later, half with cue words, 60
have an end, and 80 remarks are trivial; in the other sessions one works on a project. The same attributes have other
values in other projects. Facts, changes and questions have several wordings: a change has another wording than what
it changes. A scripted model saves what it is asked to keep; where the answer's `similar` names the statement that the
new one changes, it replaces that in a share of the cases (`--follows`). At the end of every month, probes ask for
facts that hold, as the first prompt of a new session: what reaches the model is the memory in the prompt and the
evidence for the prompt. A stale value is shown as current if an entry in the prompt has it and not the current one,
or if the evidence has it and nothing has the current one, unless a note in it says until when the value was true: of
two statements in evidence the older is marked. At the end, a value that was ever stated is lost if no search finds
it.

- `refuse`: a full memory refuses; nothing is recalled but the memory in the prompt (Hermes).
- `recall`: the same, and prompts get evidence out of past conversations.
- `whole`: every project has a memory of its own, entries have last days, and the curator tidies up every week; what
  leaves is a note. It is counted with a writer who follows the hint in 0, 50 and 90 % of the cases.

Every behaviour has the same sessions. No model is asked. The clock is not simulated: where a fact ends in the script,
its last day is set to a past one.

A file of wordings replaces the built-in sentences, so that a year can be counted whose author never saw the rules.
It is text in UTF-8: a section begins with its name in brackets, and each line below it is one sentence; empty lines
and lines that begin with `#` are skipped. A section that is absent keeps the built-in sentences. The words in braces
are filled in:

    [statements]   a fact, stated for the first time; needs {project}, {attribute} and {value}
    The {attribute} of {project} is {value}.
    [changes]      it has another value now, and one says so; needs the same three, and may have {old}
    {project} moved its {attribute} from {old} to {value}.
    [endings]      it is over, and nothing replaces it; needs {project} and {attribute}, and may have {value}
    {project} needs no {attribute} any more.
    [questions]    the first prompt of a session, which needs the fact; needs {project} and {attribute}
    What is the {attribute} of {project}?
    [remarks]      small talk that is not worth keeping; fills in nothing
    It rains again.
    [work]         everything else that one asks an agent to do; may have {project}
    Fix the failing test in {project}.

(The explanations stand here only: in a file, the line of a section has nothing but its name.) A project is a name such
as "atlas"; an attribute is "release host", "staging owner", "billing branch", "search queue", "nightly region",
"mobile bucket" or another pair of these words; a value is a made-up word such as "badoku". Half of the changes are
another statement without a cue. A fact ends in silence unless there are endings; the model then keeps the
sentence, or, if its memory has last days, sets that of the fact.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import memoranda
from memoranda.integrations.hooks.prompt_evidence import find_evidence
from memoranda.memory.curated.operations import Replace
from memoranda.memory.curated.settings import project_in
from memoranda.support.origin import PERSON

Behaviour = Literal["refuse", "recall", "whole"]
MONTHS = 12
PROJECTS = (
    *("atlas", "borealis", "cinder", "dynamo", "ember", "falcon"),
    *("granite", "harbor", "indigo", "juniper", "kestrel", "lantern"),
)
ATTRIBUTES = [
    f"{kind} {thing}"
    for kind in ("release", "staging", "billing", "search", "nightly", "mobile")
    for thing in ("host", "owner", "branch", "queue", "region", "bucket")
]
SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aou"]
_PROBES = 40
# What a note says of an entry whose last day is over.
_OVER = ", true until "


class Wordings(NamedTuple):
    """The sentences of a year; `{project}` and the like are filled in."""

    statements: tuple[str, ...] = (
        "The {attribute} of {project} is {value}.",
        "{project} uses {value} as its {attribute}.",
        "For {project}, the {attribute} is {value}.",
        "We agreed on {value} as the {attribute} of {project}.",
        "In {project} the {attribute} is called {value}.",
        "{project} has {value} as {attribute}.",
    )
    changes: tuple[str, ...] = (
        "The {attribute} of {project} is now {value} instead of {old}.",
        "{project} moved its {attribute} from {old} to {value}.",
        "{project} no longer uses {old} as its {attribute}, but {value}.",
        "We switched the {attribute} of {project} from {old} to {value}.",
        "The {attribute} of {project} is {value}, not {old} any more.",
    )
    endings: tuple[str, ...] = ()
    questions: tuple[str, ...] = (
        "What is the {attribute} of {project}?",
        "Which {attribute} does {project} use?",
        "I need the {attribute} of {project}.",
        "Remind me, what was the {attribute} in {project}?",
    )
    remarks: tuple[str, ...] = (
        "Good morning.",
        "That is a nice idea.",
        "Let me think about lunch.",
        "It rains again.",
    )
    work: tuple[str, ...] = (
        "Fix the failing test in {project}.",
        "Review the last pull request of {project} and say what is missing.",
        "Why does the build of {project} take so long?",
        "Write a changelog entry for {project}.",
        "Rename the helper functions in {project} so that they say what they do.",
    )


_BUILT_IN = Wordings()
# The words that a sentence must have, or the fact could not be recognized, and those that it may have.
_NEEDED: dict[str, frozenset[str]] = {
    "statements": frozenset({"project", "attribute", "value"}),
    "changes": frozenset({"project", "attribute", "value"}),
    "endings": frozenset({"project", "attribute"}),
    "questions": frozenset({"project", "attribute"}),
}
_ALLOWED: dict[str, frozenset[str]] = {
    "changes": frozenset({"old"}),
    "endings": frozenset({"value"}),
    "work": frozenset({"project"}),
}


def read_wordings(path: Path) -> Wordings:
    """The sentences of a file; ValueError with the number of the line that cannot be used."""
    sections: dict[str, tuple[str, ...]] = {}
    section = ""
    for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1].strip().lower()
            if section not in Wordings._fields:
                raise ValueError(f"{path}:{number}: no section [{section}]; there are: {', '.join(Wordings._fields)}")
            continue
        if not section:
            raise ValueError(f"{path}:{number}: a sentence before the first section, such as [statements]")
        sections[section] = (*sections.get(section, ()), _checked(text, section, f"{path}:{number}"))
    return _BUILT_IN._replace(**sections)


def _checked(text: str, section: str, line: str) -> str:
    try:
        words = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise ValueError(f"{line}: {error}") from error
    needed = _NEEDED.get(section, frozenset())
    if missing := needed - words:
        raise ValueError(f"{line}: a sentence of [{section}] needs {{{', '.join(sorted(missing))}}}")
    if unknown := words - needed - _ALLOWED.get(section, frozenset()):
        raise ValueError(f"{line}: nothing fills in {{{', '.join(sorted(unknown))}}} in [{section}]")
    return text


@dataclass(slots=True)
class Fact:
    project: str
    attribute: str
    values: list[str]
    stated: int
    """The session in which it is stated."""
    changed: int | None = None
    with_cue: bool = False
    ends: int | None = None
    wording: int = 0
    wordings: Wordings = _BUILT_IN

    def statement(self, place: int) -> str:
        return self._said(self.wordings.changes if place and self.with_cue else self.wordings.statements, place)

    def ending(self) -> str:
        """What one says when it is over; empty if it ends in silence."""
        return self._said(self.wordings.endings, 0) if self.wordings.endings else ""

    def _said(self, texts: tuple[str, ...], place: int) -> str:
        text = texts[(self.wording + place) % len(texts)]
        return text.format(attribute=self.attribute, project=self.project, value=self.values[place], old=self.values[0])

    def question(self, number: int) -> str:
        texts = self.wordings.questions
        return texts[number % len(texts)].format(attribute=self.attribute, project=self.project)

    def value_at(self, session: int) -> str | None:
        """The value that holds after a session; None before it is stated and after its end."""
        if session < self.stated or (self.ends is not None and session >= self.ends):
            return None
        return self.values[1 if self.changed is not None and session >= self.changed else 0]

    def stale_at(self, session: int) -> list[str]:
        current = self.value_at(session)
        return [value for value in self.values if value != current] if session >= self.stated else []


class Year(NamedTuple):
    facts: list[Fact]
    sessions: int
    remarks: set[int]
    wordings: Wordings


def make_year(seed: int, scale: float, wordings: Wordings = _BUILT_IN) -> Year:
    """The facts of a year and when each is stated, changes and ends."""
    dice = random.Random(seed)
    sessions, count = int(1_500 * scale), int(400 * scale)
    places = [(project, attribute) for project in PROJECTS for attribute in ATTRIBUTES]
    names = dice.sample([a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES], 2 * count)
    facts = [
        Fact(
            *(project, attribute, [names.pop(), names.pop()], dice.randrange(int(sessions * 0.8))),
            wording=number,
            wordings=wordings,
        )
        for number, (project, attribute) in enumerate(dice.sample(places, count))
    ]
    for number, fact in enumerate(dice.sample(facts, int(180 * scale))):
        later = dice.randrange(fact.stated + 1, sessions)
        if number < int(120 * scale):
            fact.changed, fact.with_cue = later, number % 2 == 0
        else:
            fact.ends = later
    return Year(facts, sessions, set(dice.sample(range(sessions), int(80 * scale))), wordings)


class Counts(NamedTuple):
    month: int
    probes: int
    reached: int
    stale: int
    characters: int
    others: int
    """Facts of other projects in the prompt."""
    lost: int = 0


def live(year: Year, behaviour: Behaviour, home: Path, seed: int, follows: float) -> list[Counts]:
    """Live through the year with one behaviour, and return what the probes of each month found."""
    writer = random.Random(seed + 2)
    dice = random.Random(seed + 1)
    found: list[Counts] = []
    with memoranda.open(home) as memory:
        for number in range(year.sessions):
            _one_session(memory, year, number, behaviour, lambda: writer.random() < follows)
            if behaviour == "whole":
                _expire(memory, year, number)
                if number % max(1, year.sessions // 52) == 0:
                    memory.curate(apply=True)
            if (number + 1) % (year.sessions // MONTHS) == 0 and len(found) < MONTHS:
                found.append(_probe(memory, year, number, behaviour, dice, len(found) + 1))
        found[-1] = found[-1]._replace(lost=_count_lost(memory, year))
    return found


def _count_lost(memory: memoranda.Memory, year: Year) -> int:
    """How many of the values that were ever stated no search finds."""
    stated = [value for fact in year.facts for value in fact.values[: 1 if fact.changed is None else 2]]
    return sum(not memory.search(value)["results"] for value in stated)


def _target(project: str, behaviour: Behaviour) -> str:
    return f"project:github.com/acme/{project}" if behaviour == "whole" else "memory"


def _stored_target(memory: memoranda.Memory, project: str, behaviour: Behaviour) -> str:
    wanted = project_in(_target(project, behaviour))
    return next((target for target in memory.curated.storage.targets() if project_in(target) == wanted), "memory")


def _one_session(
    memory: memoranda.Memory, year: Year, number: int, behaviour: Behaviour, follows: Callable[[], bool]
) -> None:
    said = [(fact.project, fact.statement(0)) for fact in year.facts if fact.stated == number]
    said += [(fact.project, fact.statement(1)) for fact in year.facts if fact.changed == number]
    changes = {fact.statement(1): fact.statement(0) for fact in year.facts if fact.changed == number}
    endings = [(fact.project, fact.ending()) for fact in year.facts if fact.ends == number and fact.ending()]
    said += endings
    said += [("", random.Random(number).choice(year.wordings.remarks))] if number in year.remarks else []
    if not said:
        dice = random.Random(number)
        said = [("", dice.choice(year.wordings.work).format(project=dice.choice(PROJECTS)))]
    with memory.session(source="cli") as session:
        for project, text in said:
            with session.turn(text) as turn:
                if project and (behaviour != "whole" or (project, text) not in endings):
                    # A refused write stays refused: the model of the script does not tidy up.
                    target = _target(project, behaviour)
                    answer = memory.remember(text, target)
                    if changes.get(text) in answer.get("similar", ()) and follows():
                        stored = _stored_target(memory, project, behaviour)
                        memory.curated.replace(stored, changes[text], text, PERSON)
                turn.done("Noted.")


def _expire(memory: memoranda.Memory, year: Year, number: int) -> None:
    for fact in year.facts:
        if fact.ends == number:
            target, text = _stored_target(memory, fact.project, "whole"), fact.statement(0)
            if text in memory.curated.entries(target):
                memory.curated.apply(target, [Replace(text, text, until="2020-01-01")], PERSON)


def _probe(
    memory: memoranda.Memory, year: Year, number: int, behaviour: Behaviour, dice: random.Random, month: int
) -> Counts:
    counts: Counter[str] = Counter()
    holding = [fact for fact in year.facts if fact.value_at(number)]
    ended = [fact for fact in year.facts if fact.stale_at(number) and not fact.value_at(number)]
    for fact in dice.sample(holding, min(_PROBES, len(holding))) + ended[-5:]:
        targets = {"memory", _stored_target(memory, fact.project, behaviour)}
        entries = [entry for target in targets for entry in memory.curated.valid_entries(target)]
        counts["others"] += sum(fact.project not in entry for entry in entries)
        evidence, question = "", fact.question(counts["asked"])
        if behaviour != "refuse":
            evidence = find_evidence(memory.home.state_db, None, question, "", "", frozenset()).text
        text, current, stale = "\n".join((*entries, evidence)), fact.value_at(number), fact.stale_at(number)
        is_reached = current is not None and current in text
        in_prompt = [entry for entry in entries if (current is None or current not in entry) and entry != fact.ending()]
        counts["asked"] += 1
        counts["characters"] += len(text)
        counts["probes"] += current is not None
        counts["reached"] += is_reached
        counts["stale"] += any(
            any(value in entry for entry in in_prompt) or (not is_reached and _is_shown(value, evidence, fact))
            for value in stale
        )
    return Counts(month, *(counts[name] for name in ("probes", "reached", "stale", "characters", "others")))


def _is_shown(value: str, evidence: str, fact: Fact) -> bool:
    """Whether evidence has a value, and neither a note with its last day nor the sentence that says it is over."""
    notes = [line for line in evidence.splitlines() if value in line and _OVER in line]
    is_ended = bool(fact.ending()) and fact.ending() in evidence
    return value in evidence and not notes and not is_ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--follows", type=float, nargs="*", default=[0.0, 0.5, 0.9])
    parser.add_argument("--wordings", type=Path)
    options = parser.parse_args()
    try:
        wordings = read_wordings(options.wordings) if options.wordings else _BUILT_IN
    except (OSError, ValueError) as error:
        parser.error(str(error))
    year = make_year(options.seed, options.scale, wordings)
    print(f"{len(year.facts)} facts in {year.sessions} sessions, seed {options.seed}")
    print("| behaviour | current facts reached | stale shown as current | tokens per prompt | facts of others | lost |")
    print("|---|---|---|---|---|---|")
    runs: list[tuple[Behaviour, float]] = [
        ("refuse", 0.0),
        ("recall", 0.0),
        *(("whole", each) for each in options.follows),
    ]
    for behaviour, follows in runs:
        with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
            months = live(year, behaviour, Path(directory) / "home", options.seed, follows)
        probes, reached, stale, characters, others, lost = (
            sum(column) for column in list(zip(*months, strict=True))[1:]
        )
        name = f"{behaviour}, hint followed in {follows:.0%}" if behaviour == "whole" else behaviour
        print(
            f"| {name} | {reached / probes:.3f} | {stale / probes:.3f} | {characters / probes / 4:.0f} "
            f"| {others / probes:.1f} | {lost} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
