"""What can be wrong with a directory of skills, and how to mend it."""

import os
from collections.abc import Iterator
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.safety.allowances import read_allowances
from memoranda.skills.settings import SkillSettings
from memoranda.skills.store import SkillStore
from memoranda.support.health_issues import HealthIssue, issues_until_error
from memoranda.support.text_file import TextFile, read_text


def check(directory: Path, settings: SkillSettings, whose: str = "") -> Iterator[HealthIssue]:
    """Every finding about one directory of skills; `whose` is the option by which commands reach it."""
    if not directory.is_dir():
        return
    store = SkillStore(directory, settings)
    for each in (_check_skills, _check_texts, _check_journal, _check_leftovers):
        yield from issues_until_error(directory, lambda each=each: each(store, whose))  # type: ignore[misc]


def _check_skills(store: SkillStore, whose: str) -> Iterator[HealthIssue]:
    for problem in store.catalogue().problems:
        used = "it cannot be used" if problem.fatal else "it is used all the same"
        yield HealthIssue(
            "warning" if problem.fatal else "note",
            problem.path,
            f"{problem.problem} ({used})",
            "put it right, or move it away",
        )


def _check_texts(store: SkillStore, whose: str) -> Iterator[HealthIssue]:
    for skill in store.catalogue().skills:
        state = read_text(skill.file)
        findings = store.screen(state.text).findings if isinstance(state, TextFile) else ()
        if findings:
            yield HealthIssue(
                "warning",
                skill.file,
                f"passages are withheld from the agent: {', '.join(findings)}",
                f"read it, then mend it, or run 'memoranda skills allow {skill.name}{whose}'",
            )


def _check_journal(store: SkillStore, whose: str) -> Iterator[HealthIssue]:
    path = store.root / ".journal.jsonl"
    if damaged := store.journal.damaged_lines():
        yield HealthIssue(
            "warning",
            path,
            f"has unreadable lines ({', '.join(map(str, damaged))}), which are passed over",
            f"nothing to do; 'memoranda skills purge{whose}' drops them with the history",
        )
    try:
        read_allowances(store.root / ".allowed.json")
    except StorageError as error:
        yield HealthIssue("error", store.root / ".allowed.json", str(error), "mend or delete the file")


def _check_leftovers(store: SkillStore, whose: str) -> Iterator[HealthIssue]:
    if os.path.lexists(store.writer.leftover):
        # While somebody holds the lock it may be alive; mending then says so and leaves it.
        yield HealthIssue(
            "warning",
            store.writer.leftover,
            "was left by a writer that was killed",
            "delete it",
            lambda: _settle(store),
        )


def _settle(store: SkillStore) -> None:
    with store.writer.exclusive(timeout=0):
        return
