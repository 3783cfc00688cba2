"""Things with a name and a JSON state, all merged in the same way: files of skills, proposals, facts, orders.

A kind of thing says how its states are read, written and checked, and what results from two states that were made
without knowledge of each other. Everything else is here.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.versions import Version, first_version

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

    @staticmethod
    def check(name: str, state: State) -> None:
        """Raise ValueError if a received state cannot be used."""


def collect_things(run: Run, kinds: Iterable[Kind]) -> None:
    """Give a version to everything that was added, changed or removed since the last run."""
    for kind in kinds:
        known = run.tables.things_of(kind.name)
        states = kind.read(run)
        for name, state in states.items():
            digest, before = kind.digest(state), known.get(name)
            if before is None:
                run.tables.set_thing(kind.name, name, first_version(digest), run.number, "")
            elif before.digest != digest:
                run.must_rewrite |= MARK in str(state)
                run.tables.set_thing(kind.name, name, run.clock.next_version(before, digest), run.number, "")
        for name, version in known.items():
            if version.digest and name not in states:
                run.tables.set_thing(kind.name, name, run.clock.next_version(version, ""), run.number, "")


def thing_records(run: Run, kinds: Iterable[Kind], after: int, bundles: frozenset[str]) -> Iterator[Record]:
    """The records of things that changed after a run."""
    changed = run.tables.changed("synced_things", "kind, name", after, bundles)
    for kind in kinds:
        names = [name for other, name in changed if other == kind.name]
        known = run.tables.things_of(kind.name) if names else {}
        states = kind.read(run) if names else {}
        for name in names:
            version, state = known[name], states.get(name)
            if ("" if state is None else kind.digest(state)) == version.digest:
                yield {
                    "t": "thing", "kind": kind.name, "name": name, "v": version.name, "was": sorted(version.replaced),
                    "state": state, "forgotten": run.must_rewrite and state is None,
                }  # fmt: skip


def merge_things(run: Run, kinds: Iterable[Kind], records: Iterable[Record]) -> None:
    """Apply the things of one bundle."""
    listed = [record for record in records if record["t"] == "thing"]
    for kind in kinds:
        chosen = [record for record in listed if record["kind"] == kind.name]
        known = run.tables.things_of(kind.name) if chosen else {}
        states = kind.read(run) if chosen else {}
        for record in chosen:
            run.clock.see(record["v"])
            _merge_thing(run, kind, record, known.get(record["name"]), states.get(record["name"]))


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
    run.tables.set_thing(kind.name, name, version, run.number, bundle)
