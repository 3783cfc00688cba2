"""Things with a name and a JSON state, merged in the same way: files of skills, proposals, facts, orders.

A kind of thing says how its states are read, written and checked, and what results from two states that were made
without knowledge of each other. Everything else is the same for all of them.

Facts of the Holographic provider are named by the digest of their text. They travel whether or not the provider is
switched on here: who switches it on later has them. How often a fact was returned is each machine's own; the store
makes vectors and links from the text.

Proposals travel, so that what awaits approval on one machine can be decided on any other. A decision wins over a
proposal that still waits: what was approved is an entry by now, and travels as one.

A skill is its text files, by their paths below the directory of skills. A received text is written as a person who
copies the file would: through the journal, so that it can be undone. What looks like an attack is withheld when the
skill is read, as in every file that was not written by an agent here.

An order has, for each target of curated memory, the ids of its entries. Of two orders, the later one comes first, and
what only the other one has is added at its end.

The facts of an entry are a thing of their own, because they change without the text.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

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
from memoranda.memory.curated.facts import NEVER, parse_until
from memoranda.memory.curated.operations import EntryEdit, EntryPlan, MemoryRefusal, apply_edit
from memoranda.memory.curated.settings import Target, file_name, is_target
from memoranda.memory.curated.writer import WriteRequest
from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.skill_text import file_problem, name_problem
from memoranda.memory.skills.store import list_skill_files
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.memory.skills.writer import SkillMoveRequest, SkillTextRequest, SkillWriter, read_skill_file
from memoranda.support.canonical_text import unstorable_character
from memoranda.support.origin import Origin
from memoranda.support.text_file import TextFile
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.entries import (
    ENTRY_FACTS,
    current_entries,
    entries_of,
    entry_digest,
    facts_key,
    order_of,
    set_order,
    targets_of,
)
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync_state import Thing
from memoranda.upkeep.sync_versions import Version, digest_of, first_version, is_number

Record = dict[str, Any]
State = Any
"""The state of a thing as JSON; None if it was removed."""


class Kind(Protocol):
    """One kind of thing."""

    name: str
    noun: str
    """How reports count them; empty if they do not."""

    def read(self, run: Run) -> dict[str, State]:
        """The states of all things of this home, by name."""

    def write(self, run: Run, name: str, state: State) -> str:
        """Give a thing a state; returns why that is not possible, or an empty text."""

    def combine(self, earlier: State, later: State) -> State:
        """The state that results from two that were made without knowledge of each other."""

    def digest(self, state: State) -> str:
        """A digest of what all machines agree on."""
        return digest_of(state)

    @staticmethod
    def check(name: str, state: State) -> None:
        """Raise ValueError if a received state cannot be used."""


def collect_things(run: Run) -> None:
    """Give a version to everything that was added, changed or removed since the last run."""
    for kind in _KINDS:
        known = run.tables.things(kind.name)
        states = kind.read(run)
        for name, state in states.items():
            digest, before = kind.digest(state), known.get(name)
            if before is None:
                run.tables.set_thing(kind.name, name, Thing(first_version(digest), run.number))
            elif before.version.digest != digest:
                run.must_rewrite |= MARK in str(state)
                run.tables.set_thing(kind.name, name, run.next_thing(before, digest))
        for name, before in known.items():
            if before.version.digest and name not in states:
                run.tables.set_thing(kind.name, name, run.next_thing(before, ""))


def thing_records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[Record]:
    for kind in _KINDS:
        changed = run.tables.changed(kind.name, after, bundles)
        states = kind.read(run) if changed else {}
        for name, thing in changed.items():
            version, state = thing.version, states.get(name)
            if ("" if state is None else kind.digest(state)) == version.digest:
                yield {
                    "t": "thing", "kind": kind.name, "name": name, "v": version.name, "was": sorted(version.replaced),
                    "state": state, "forgotten": run.must_rewrite and state is None,
                }  # fmt: skip


def merge_things(run: Run, records: Iterable[Record]) -> None:
    """Apply the things of one bundle."""
    listed = [record for record in records if record["t"] == "thing"]
    for kind in _KINDS:
        chosen = [record for record in listed if record["kind"] == kind.name]
        known = run.tables.things(kind.name) if chosen else {}
        states = kind.read(run) if chosen else {}
        for record in chosen:
            run.clock.see(record["v"])
            ours = known.get(record["name"])
            _merge_thing(run, kind, record, ours and ours.version, states.get(record["name"]))


def _merge_thing(run: Run, kind: Kind, record: Record, ours: Version | None, present: State) -> None:
    name, state = record["name"], record["state"]
    theirs = Version(record["v"], "" if state is None else kind.digest(state), frozenset(record["was"]))
    bundle = run.bundle
    result, version = state, theirs
    if ours is not None and ours.follows(theirs):
        return
    if ours is not None and not theirs.follows(ours):
        earlier, later = (present, state) if theirs.name > ours.name else (state, present)
        result = kind.combine(earlier, later)
        version = ours.merged(theirs, "" if result is None else kind.digest(result))
        # A state that results from both must be sent, too.
        bundle = ""
    if version.digest != ("" if present is None else kind.digest(present)):
        problem = kind.write(run, name, result)
        if problem:
            run.report.refused.append(f"{kind.name} {name[:100]}: {problem}")
            return
        if kind.noun:
            run.report.count(run.report.received, kind.noun)
        # The bundles of this machine may have what another one has forgotten.
        run.must_rewrite |= bool(record.get("forgotten")) or (state is not None and MARK in json.dumps(state))
    run.tables.set_thing(kind.name, name, Thing(version, run.number, bundle))


_MAX_TEXT_CHARS = 10_000
_MAX_NAMES = 1_000


class Facts(Kind):
    """The facts of the owner of one home."""

    name = "fact"
    noun = "facts"

    def read(self, run: Run) -> dict[str, State]:
        with stored_facts(run.root, None) as store:
            return {} if store is None else read_facts(store)

    def write(self, run: Run, name: str, state: State) -> str:
        try:
            with closing(FactStore(run.root, "")) as store:
                if state is None:
                    remove_fact(store, name)
                else:
                    put_fact(store, name, state)
        except StorageError as error:
            return str(error)
        return ""

    def combine(self, earlier: State, later: State) -> State:
        return None if earlier is None or later is None else later

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

    def write(self, run: Run, name: str, state: State) -> str:
        with run.memory.exclusive():
            run.memory.proposals.write_text(name, state)
        return ""

    def combine(self, earlier: State, later: State) -> State:
        if earlier is None or later is None:
            return None
        return earlier if earlier["rejected"] else later

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

    def write(self, run: Run, name: str, state: State) -> str:
        skill, origin = _skill_of(name), Origin(f"sync:{run.sender or run.bundle[:12]}", explicit=True)
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

    def combine(self, earlier: State, later: State) -> State:
        """The later text; the other one stays in the journal. A text wins over a removal."""
        return earlier if later is None else later

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


_MAX_ENTRIES = 100_000
_MAX_ID_CHARS = 100


class EntryOrder(Kind):
    """The order of the entries of each target; it is applied by `arrange_entries`, when all entries have arrived."""

    name = "order"
    noun = ""

    def read(self, run: Run) -> dict[str, State]:
        return {target: order for target in targets_of(run) if (order := order_of(run.tables, target))}

    def write(self, run: Run, name: str, state: State) -> str:
        set_order(run.tables, name, state or [])
        return ""

    def combine(self, earlier: State, later: State) -> State:
        first, second = later or [], earlier or []
        return [*first, *(uid for uid in second if uid not in set(first))]

    @staticmethod
    def check(name: str, state: State) -> None:
        if not is_target(name) or (state is not None and not isinstance(state, list)):
            raise ValueError("an order of entries")
        if state is not None and (
            len(state) > _MAX_ENTRIES or not all(isinstance(uid, str) and len(uid) <= _MAX_ID_CHARS for uid in state)
        ):
            raise ValueError("the ids of entries")


def collect_order(run: Run) -> None:
    """Note the order of the files, if it is not that of the last run, and the entries that were added since."""
    for target in targets_of(run):
        order, stored = _order_here(run, target), order_of(run.tables, target)
        is_kept = _arranged(order, stored) == order
        added = [uid for uid in order if uid not in set(stored)]
        set_order(run.tables, target, [*stored, *added] if is_kept else order)


class FactsOfEntries(Kind):
    """The facts of entries, known by their texts: an entry may arrive later, or wait for a person."""

    name = "entry facts"
    noun = ""

    def read(self, run: Run) -> dict[str, State]:
        return {name: json.loads(run.tables.value(f"{ENTRY_FACTS}{name}")) for name in run.tables.names(ENTRY_FACTS)}

    def write(self, run: Run, name: str, state: State) -> str:
        run.tables.set_value(f"{ENTRY_FACTS}{name}", json.dumps(state))
        target, _, digest = name.rpartition(" ")
        known = next((each for each in run.memory.facts(target) if entry_digest(each.entry.text) == digest), None)
        if known is None:
            return ""
        text, origin = known.entry.text, Origin(f"sync:{run.sender or run.bundle[:12]}", explicit=True)
        until = {} if known.until == state["until"] else {text: state["until"] or NEVER}
        facts = {text: {field: value for field, value in state.items() if field != "until"}}
        request = WriteRequest(target, "batch", origin, _unchanged, "", until=until, facts=facts)
        outcome = run.memory.commit_unannounced(request)
        return outcome.message if isinstance(outcome, MemoryRefusal) else ""

    def combine(self, earlier: State, later: State) -> State:
        """The later facts; a last day and a confirmation of the other machine stay."""
        kept = {"until": later["until"] or earlier["until"], "confirmed": max(earlier["confirmed"], later["confirmed"])}
        return later | kept

    @staticmethod
    def check(name: str, state: State) -> None:
        if not is_target(name.rpartition(" ")[0]) or set(state) != {"at", "confirmed", "actor", "session", "until"}:
            raise ValueError("the facts of an entry")
        if not all(map(_is_text, state.values())) or parse_until(state["until"]) != state["until"]:
            raise ValueError("a fact of an entry")


def _unchanged(current: Sequence[str]) -> EntryPlan:
    return EntryPlan(tuple(current), ())


def collect_facts(run: Run) -> None:
    """Note the facts of the entries that are here."""
    for target in targets_of(run):
        for each in run.memory.facts(target):
            run.tables.set_value(facts_key(target, each.entry.text), json.dumps(each.history | {"until": each.until}))


def arrange_entries(run: Run) -> None:
    """Bring the entries of both files into the order that the machines have agreed on."""
    for target in targets_of(run):
        order = _order_here(run, target)
        wanted = _arranged(order, order_of(run.tables, target))
        if wanted != order:
            _arrange(run, target, wanted)


def _order_here(run: Run, target: Target) -> list[str]:
    entries = entries_of(run.tables, target).items()
    uids = {entry.version.digest: uid for uid, entry in entries if entry.version.digest}
    digests = [entry_digest(text) for text in current_entries(run.memory, target)]
    return [uids[digest] for digest in digests if digest in uids]


def _arranged(order: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The ids in the wanted order, and then those that it does not name."""
    present, named = set(order), set(wanted)
    return [*(uid for uid in wanted if uid in present), *(uid for uid in order if uid not in named)]


def _arrange(run: Run, target: Target, wanted: list[str]) -> None:
    digests = {uid: entry.version.digest for uid, entry in entries_of(run.tables, target).items()}
    positions = {digests[uid]: position for position, uid in enumerate(wanted)}

    def plan(current: Sequence[str]) -> EntryPlan:
        entries, edits = list(current), []
        ordered = sorted(current, key=lambda text: positions.get(entry_digest(text), len(positions)))
        for position, text in enumerate(ordered):
            if entries[position] != text:
                # As a removal and an addition: an exchange of texts would look like two changed entries.
                found = entries.index(text, position)
                for edit in (EntryEdit(found, text, None), EntryEdit(position, None, text)):
                    apply_edit(entries, edit)
                    edits.append(edit)
        return EntryPlan(tuple(entries), tuple(edits))

    origin = Origin(f"sync:{run.sender or 'order'}", explicit=True)
    request = WriteRequest(target, "batch", origin, plan, f"Arranged {file_name(target)}.")
    # External memories have no order, and would see each moved entry removed and added.
    outcome = run.memory.commit_unannounced(request)
    if isinstance(outcome, MemoryRefusal):
        run.report.notes.append(f"The order of {file_name(target)} was not changed: {outcome.message}")


_KINDS: tuple[Kind, ...] = (SkillFiles(), Proposals(), Facts(), EntryOrder(), FactsOfEntries())
CHECKS = {kind.name: kind.check for kind in _KINDS}
NOUNS = {kind.name: kind.noun for kind in _KINDS}
