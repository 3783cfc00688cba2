"""Counters of a session that several machines use: each machine's own part is known, and the total is their sum.

`base` is what a session had when it was first seen. Of its own part, each machine sends the latest value, so that
receiving it twice adds nothing. Sessions that were imported have no parts: their counters come from the transcript, and
the later value wins.
"""

import json
from typing import Any

from memoranda.memory.record.session_list import COSTS, COUNTERS
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.versions import digest_of

COUNTED = frozenset((*COUNTERS, *COSTS))
FIELD = "counters"
"""The name under which their version is stored, beside those of fields."""
_DIGITS = 9

Values = dict[str, Any]
Parts = dict[str, Any]
"""`base`: values; `by`: for each machine a number that rises with each change, and its values."""


def read_parts(run: Run, session_id: str) -> Parts | None:
    """The parts of a session; None if it has none."""
    stored, added = run.tables.counters_of(session_id), run.db.synced_rows.read_counts(session_id)
    return stored if added is None else added if stored is None else _merge(stored, added)


def collect_counters(run: Run, session_id: str, fields: Values, known: dict[str, list[Any]]) -> bool:
    """Note what was counted here since the last run; whether it changed. `known` has the versions of all fields."""
    counted = {name: fields[name] for name in COUNTED if fields.get(name) is not None}
    parts = read_parts(run, session_id)
    if parts is None:
        if known or run.db.synced_rows.external_ids(session_id):
            return False
        parts = {"base": counted, "by": {}}
    else:
        number, before = parts["by"].get(run.machine, (0, {}))
        others = _total({**parts, "by": {name: part for name, part in parts["by"].items() if name != run.machine}})
        own = {name: _rounded(value - others.get(name, 0)) for name, value in counted.items()}
        own = {name: value for name, value in own.items() if value}
        if own == before:
            if known.get(FIELD, [""] * 2)[1] != digest_of(parts):
                _note_version(run, session_id, parts, known, "")
            return False
        parts["by"][run.machine] = [number + 1, own]
    _note_version(run, session_id, parts, known, "")
    return True


def merge_counters(run: Run, session_id: str, theirs: Parts, known: dict[str, list[Any]]) -> None:
    """Add what other machines have counted."""
    ours = read_parts(run, session_id)
    merged = theirs if ours is None else _merge(ours, theirs)
    if merged == ours:
        if known.get(FIELD, [""] * 2)[1] != digest_of(merged):
            # A run that was killed has added them.
            _note_version(run, session_id, merged, known, run.bundle if merged == theirs else "")
        return
    before = {} if ours is None else _total(ours)
    if ours is None:
        found = run.db.synced_rows.read_session(session_id)
        before = {} if found is None else {name: found[1][name] or 0 for name in COUNTED}
    total = _total(merged)
    changes = {name: _rounded(value - before.get(name, 0)) for name, value in total.items()}
    run.db.synced_rows.add_counts(session_id, merged, {name: value for name, value in changes.items() if value})
    _note_version(run, session_id, merged, known, run.bundle if merged == theirs else "")


def _note_version(run: Run, session_id: str, parts: Parts, known: dict[str, list[Any]], bundle: str) -> None:
    known[FIELD] = ["", digest_of(parts), run.number, bundle]
    run.tables.set_fields(session_id, known, run.number)
    run.tables.set_counters(session_id, parts)


def _merge(ours: Parts, theirs: Parts) -> Parts:
    base = {
        name: max(part[name] for part in (ours["base"], theirs["base"]) if name in part)
        for name in {*ours["base"], *theirs["base"]}
    }
    by = dict(ours["by"])
    for machine, part in theirs["by"].items():
        by[machine] = max(by.get(machine, part), part, key=lambda each: (each[0], json.dumps(each[1], sort_keys=True)))
    return {"base": base, "by": by}


def _total(parts: Parts) -> Values:
    total: Values = {}
    for values in (parts["base"], *(part[1] for part in parts["by"].values())):
        for name, value in values.items():
            total[name] = _rounded(total.get(name, 0) + value)
    return total


def _rounded(value: float) -> float:
    return round(value, _DIGITS) if isinstance(value, float) else value
