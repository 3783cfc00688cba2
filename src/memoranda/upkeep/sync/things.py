"""Things with a name and a JSON state, merged in the same way: entries, files of skills, proposals, facts.

A kind of thing says how its states are read, written and checked. Everything else is the same for all of them: the
later change wins, a removal wins over what was changed without knowledge of it, and what was replaced is in the log.

Facts of the Holographic provider are named by the digest of their text. They travel whether or not the provider is
switched on here: who switches it on later has them. How often a fact was returned is each machine's own; the store
makes vectors and links from the text.

Proposals travel, so that what awaits approval on one machine can be decided on any other. What was approved is an entry
by now, and travels as one.

A skill is its text files, by their paths below the directory of skills. A received text is written as a person who
copies the file would: through the journal, so that it can be undone. What looks like an attack is withheld when the
skill is read, as in every file that was not written by an agent here.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.holographic.fact_store import CATEGORIES, MAX_CONTENT_CHARS, FactStore, content_key
from memoranda.external.holographic.user_facts import (
    NUMBERS,
    TEXTS,
    put_fact,
    read_facts,
    remove_fact,
    stored_facts,
)
from memoranda.memory.curated.approval_queue import ApprovalQueue
from memoranda.memory.record.transfer.row_versions import Row
from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.skill_text import file_problem, name_problem
from memoranda.memory.skills.store import list_skill_files
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.memory.skills.writer import SkillMoveRequest, SkillTextRequest, SkillWriter, read_skill_file
from memoranda.support.canonical_text import unstorable_character
from memoranda.support.text_file import TextFile
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.entries import Entries, FactsOfEntries, note_journal, sync_origin
from memoranda.upkeep.sync.kind import Kind, State, merge_state
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.session_changes import Record, Since
from memoranda.upkeep.sync.stamps import digest_of, is_number


def collect_things(run: Run) -> None:
    """Give a stamp to everything that was added, changed or removed since the last run."""
    for kind in KINDS:
        known, states = run.known(kind.name), kind.read(run)
        for name, state in states.items():
            digest, before = kind.digest(state), known.get(name)
            if before is None and run.number == 1:
                run.set_row(kind.name, name, run.first_row(digest))
            elif before is None or before.digest != digest:
                if MARK in str(state):
                    run.must_rewrite()
                run.set_row(kind.name, name, kind.changed(run, before, state))
        for name, before in known.items():
            if before.digest and name not in states:
                if kind.was_forgotten(run, before):
                    run.must_rewrite()
                run.set_row(kind.name, name, run.changed_row(before, ""))
    note_journal(run)


def thing_records(run: Run, since: Since) -> Iterator[Record]:
    """Yield the records of the things that a bundle does not have yet."""
    for kind in KINDS:
        known = run.known(kind.name)
        unsent = {
            name: row for name, row in known.items() if row.run > since.run and run.sends(row.stamp, since.others)
        }
        states = kind.read(run) if unsent else {}
        for name, row in unsent.items():
            state = states.get(name)
            if ("" if state is None else kind.digest(state)) == row.digest:
                record = {
                    "t": "thing",
                    "kind": kind.name,
                    "name": name,
                    "v": row.stamp,
                    "base": row.base,
                    "state": state,
                }
                yield record | {"forgotten": state is None and kind.was_forgotten(run, row)}


def merge_things(run: Run, records: Iterable[Record]) -> None:
    """Apply the things of one part of a bundle."""
    listed = [record for record in records if record["t"] == "thing"]
    for kind in KINDS:
        chosen = [record for record in listed if record["kind"] == kind.name]
        states = kind.read(run) if chosen else {}
        for record in chosen:
            run.clock.see(record["v"])
            _merge_thing(run, kind, record, states.get(record["name"]))


def _merge_thing(run: Run, kind: Kind, record: Record, here: State) -> None:
    name, state, ours = record["name"], record["state"], run.row(kind.name, record["name"])
    theirs = Row(record["v"], record["base"], "" if state is None else kind.digest(state), run.number)
    if ours is not None and theirs.stamp == ours.stamp:
        return
    if kind.name == Entries.name:
        # What its writer knew of needs no decision any more.
        run.tables.decide(name, theirs.base)
    wins, row = merge_state(run, kind.name, name, (ours, here), (theirs, state))
    if wins and row.digest != ("" if here is None else kind.digest(here)):
        forgotten = bool(record.get("forgotten"))
        if forgotten or (state is not None and MARK in json.dumps(state)):
            # The bundle of this machine may have what another one has forgotten.
            run.must_rewrite()
        problem = kind.write(run, name, state, forgotten=forgotten)
        if problem:
            run.report.refused.append(f"{kind.name} {name[:100]}: {problem}")
            if kind.name == Entries.name:
                run.log_replaced(kind.name, name, state, theirs.stamp, undecided=True)
            return
        if kind.noun:
            run.report.count(run.report.received, kind.noun)
    run.set_row(kind.name, name, row)


_MAX_TEXT_CHARS = 10_000
_MAX_NAMES = 1_000


class Facts(Kind):
    """The facts of the owner of one home."""

    name = "fact"
    noun = "facts"

    def read(self, run: Run) -> dict[str, State]:
        with stored_facts(run.root, None) as store:
            return {} if store is None else read_facts(store)

    def write(self, run: Run, name: str, state: State, *, forgotten: bool) -> str:
        try:
            with closing(FactStore(run.root, "")) as store:
                if state is None:
                    remove_fact(store, name)
                else:
                    put_fact(store, name, state)
        except StorageError as error:
            return str(error)
        return ""

    def digest(self, state: State) -> str:
        """Without the entities: which of them a text mentions depends on those that a store knows."""
        return digest_of({field: value for field, value in state.items() if field != "entities"})

    @staticmethod
    def check(name: str, state: State) -> None:
        if state is None:
            return
        if set(state) != {*TEXTS, *NUMBERS, "entities"} or state["category"] not in CATEGORIES:
            raise ValueError("a fact")
        if not all(_is_text(state[field]) for field in TEXTS) or not all(is_number(state[field]) for field in NUMBERS):
            raise ValueError("a field of a fact")
        if not 0 < len(state["content"]) <= MAX_CONTENT_CHARS or content_key(state["content"]) != name:
            raise ValueError("the content of a fact")
        names = state["entities"]
        if names is not None and not (
            isinstance(names, list) and len(names) <= _MAX_NAMES and all(map(_is_text, names))
        ):
            raise ValueError("the entities of a fact")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT_CHARS and unstorable_character(value) is None


_MAX_CHARS = 1_000_000


class Proposals(Kind):
    """The proposals of one memory, also the rejected ones, which can be restored."""

    name = "proposal"
    noun = "proposals"

    def read(self, run: Run) -> dict[str, State]:
        return run.memory.proposals.read_texts()

    def write(self, run: Run, name: str, state: State, *, forgotten: bool) -> str:
        with run.memory.exclusive():
            run.memory.proposals.write_text(name, state)
        return ""

    @staticmethod
    def check(name: str, state: State) -> None:
        if state is not None and not (
            isinstance(state["rejected"], bool) and isinstance(state["text"], str) and len(state["text"]) <= _MAX_CHARS
        ):
            raise ValueError("a proposal")
        ApprovalQueue.check_text(name, None if state is None else state["text"])


_MAX_FILES = 10_000


class SkillFiles(Kind):
    """The files of the skills of one home."""

    name = "skill"
    noun = "skill files"

    def read(self, run: Run) -> dict[str, State]:
        # Not by the catalogue: a skill that is broken for a moment is not a removed one.
        found, directory = {}, run.root / "skills"
        for name in list_skill_files(directory, limit=_MAX_FILES):
            if "/" not in name:
                continue
            state = read_skill_file(directory, _skill_of(name), name) if is_skill_file(name) else None
            if isinstance(state, TextFile) and len(state.text) <= _MAX_CHARS:
                found[name] = {"text": state.text, "executable": _is_executable(state.path)}
            else:
                note = f"skills/{name} is not text, or too long, and stays on this machine."
                run.report.notes += [note] if note not in run.report.notes else []
        return found

    def write(self, run: Run, name: str, state: State, *, forgotten: bool) -> str:
        skill, origin = _skill_of(name), sync_origin(run)
        writer = SkillWriter(run.root / "skills", SkillSettings().lock_timeout)
        path = writer.directory / name
        if state is None:
            if not path.is_file():
                return ""
            move = SkillMoveRequest(skill, name, "remove_file", origin, lambda: None, f"Removed {name}.")
            outcome = writer.commit(move)
        else:
            text: str = state["text"]
            request = SkillTextRequest(skill, name, "write_file", origin, lambda _: text, f"Wrote {name}.")
            outcome = writer.commit(request)
        if isinstance(outcome, SkillRefusal):
            return outcome.message
        if state is not None and state["executable"] != _is_executable(path):
            mode = stat.S_IMODE(path.stat().st_mode)
            os.chmod(path, mode | stat.S_IXUSR if state["executable"] else mode & ~0o111)
        return ""

    @staticmethod
    def check(name: str, state: State) -> None:
        if not is_skill_file(name):
            raise ValueError("the path of a file of a skill")
        if state is not None:
            text: Any = state["text"]
            if not isinstance(text, str) or len(text) > _MAX_CHARS or unstorable_character(text):
                raise ValueError("the text of a skill")
            if not isinstance(state["executable"], bool):
                raise ValueError("executable")


def is_skill_file(path: str) -> bool:
    """Whether a path is `<name>/<file>` or `<category>/<name>/<file>`, and stays inside the directory of skills."""
    first, _, rest = path.partition("/")
    second, _, file = rest.partition("/")
    if name_problem(first):
        return False
    return not file_problem(rest) or (bool(file) and not name_problem(second) and not file_problem(file))


def _skill_of(name: str) -> str:
    return name.split("/", maxsplit=1)[0]


def _is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXUSR)


KINDS: tuple[Kind, ...] = (Entries(), FactsOfEntries(), SkillFiles(), Proposals(), Facts())
CHECKS = {kind.name: kind.check for kind in KINDS}
NOUNS = {kind.name: kind.noun for kind in KINDS}
