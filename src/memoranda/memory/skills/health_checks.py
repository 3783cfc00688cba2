"""Checks a directory of skills for the doctor: skills, withheld passages, journal, allowances and leftovers."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.store import SkillStore
from memoranda.safety.allowances import read_allowances
from memoranda.storage.files.journal import check_journal
from memoranda.storage.files.named_texts import FileDocument
from memoranda.support.health_issues import HealthIssue, issues_until_error
from memoranda.support.text_file import TextFile, read_text


def check(directory: Path, settings: SkillSettings, option: str = "") -> Iterator[HealthIssue]:
    """Every issue of one directory of skills; `option` is the command-line option that selects it."""
    if not directory.is_dir():
        return
    store = SkillStore(directory, settings)
    for check_part in (_check_skills, _check_texts, _check_journal, _check_leftovers):
        yield from issues_until_error(directory, partial(check_part, store, option))


def _check_skills(store: SkillStore, option: str) -> Iterator[HealthIssue]:
    for problem in store.catalogue().problems:
        effect = "it cannot be used" if problem.fatal else "it is used nevertheless"
        yield HealthIssue(
            "warning" if problem.fatal else "note",
            problem.path,
            f"{problem.problem} ({effect})",
            "repair it, or move it away",
        )


def _check_texts(store: SkillStore, option: str) -> Iterator[HealthIssue]:
    for skill in store.catalogue().skills:
        state = read_text(skill.file)
        findings = store.screen_text(state.text).findings if isinstance(state, TextFile) else ()
        if findings:
            yield HealthIssue(
                "warning",
                skill.file,
                f"passages are withheld from the agent: {', '.join(findings)}",
                f"read it, then change it, or run 'memoranda skills allow {skill.name}{option}'",
            )


def _check_journal(store: SkillStore, option: str) -> Iterator[HealthIssue]:
    path = store.root / ".journal.jsonl"
    yield from check_journal(store.journal, path, f"memoranda skills purge{option}", store.exclusive)
    try:
        read_allowances(FileDocument(store.root / ".allowed.json"))
    except StorageError as error:
        yield HealthIssue("error", store.root / ".allowed.json", str(error), "repair or delete the file")


def _check_leftovers(store: SkillStore, option: str) -> Iterator[HealthIssue]:
    if os.path.lexists(store.writer.leftover):
        # A writer that holds the lock may still need it; the repair then says so and leaves it.
        yield HealthIssue(
            "warning",
            store.writer.leftover,
            "was left by a writer that was killed",
            "delete it",
            lambda: _settle(store),
            harmless=True,
        )


def _settle(store: SkillStore) -> None:
    with store.writer.exclusive(timeout=0):
        return
