"""What can be wrong with a directory of skills, and how to mend it."""

import os
from collections.abc import Iterator
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.safety.allowances import read_allowances
from memoranda.skills.settings import SkillSettings
from memoranda.skills.store import SkillStore
from memoranda.support.findings import Finding, as_far_as_possible
from memoranda.support.text_file import Text, read_text


def check(directory: Path, settings: SkillSettings, whose: str = "") -> Iterator[Finding]:
    """Every finding about one directory of skills; `whose` is the option by which commands reach it."""
    if not directory.is_dir():
        return
    store = SkillStore(directory, settings)
    for each in (_check_skills, _check_texts, _check_journal, _check_leftovers):
        yield from as_far_as_possible(directory, lambda each=each: each(store, whose))  # type: ignore[misc]


def _check_skills(store: SkillStore, whose: str) -> Iterator[Finding]:
    for problem in store.catalogue().problems:
        used = "it cannot be used" if problem.fatal else "it is used all the same"
        yield Finding("warning" if problem.fatal else "note", problem.path, f"{problem.problem} ({used})",
                      "put it right, or move it away")  # fmt: skip


def _check_texts(store: SkillStore, whose: str) -> Iterator[Finding]:
    for skill in store.catalogue().skills:
        state = read_text(skill.file)
        findings = store.screen(state.text).findings if isinstance(state, Text) else ()
        if findings:
            yield Finding("warning", skill.file, f"passages are withheld from the agent: {', '.join(findings)}",
                          f"read it, then mend it, or run 'memoranda skills allow {skill.name}{whose}'")  # fmt: skip


def _check_journal(store: SkillStore, whose: str) -> Iterator[Finding]:
    path = store.root / ".journal.jsonl"
    if damaged := store.journal.damaged_lines():
        yield Finding("warning", path, f"has unreadable lines ({', '.join(map(str, damaged))}), which are passed over",
                      f"nothing to do; 'memoranda skills purge{whose}' drops them with the history")  # fmt: skip
    try:
        read_allowances(store.root / ".allowed.json")
    except StorageError as error:
        yield Finding("error", store.root / ".allowed.json", str(error), "mend or delete the file")


def _check_leftovers(store: SkillStore, whose: str) -> Iterator[Finding]:
    if os.path.lexists(store.writer.leftover):
        # While somebody holds the lock it may be alive; mending then says so and leaves it.
        yield Finding("warning", store.writer.leftover, "was left by a writer that was killed", "delete it",
                      lambda: _settle(store))  # fmt: skip


def _settle(store: SkillStore) -> None:
    with store.writer.exclusive(timeout=0):
        return
