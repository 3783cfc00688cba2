"""Checks a directory of skills for the doctor: skills, withheld passages, journal, allowances and leftovers."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.store import SkillStore
from memoranda.storage.files.journal import check_journal
from memoranda.support.health_issues import HealthIssue, issues_until_error, leftover
from memoranda.support.text_file import MissingFile, TextFile, read_text


def check(directory: Path, settings: SkillSettings, option: str = "") -> Iterator[HealthIssue]:
    """Every issue of one directory of skills; `option` is the command-line option that selects it."""
    if not directory.is_dir():
        return
    store = SkillStore(directory, settings)
    purge = f"memoranda skills purge{option}"
    yield from issues_until_error(
        directory,
        partial(_check_skills, store),
        partial(_check_texts, store, option),
        partial(check_journal, store.journal, store.root / ".journal.jsonl", purge, store.exclusive),
        store.allowances.check,
        partial(_check_leftovers, store),
    )


def check_history(store: SkillStore) -> Iterator[HealthIssue]:
    """Compare the files of skills with the fingerprints that the journal has of them."""
    heads = {change.path: change.after for change in store.journal.changes() if not change.moved}
    for name, head in heads.items():
        state = read_text(store.root / name)
        # A file that is missing was moved or deleted.
        found = None if isinstance(state, MissingFile) else getattr(state, "fingerprint", "")
        if found not in (None, head):
            yield HealthIssue(
                "note",
                store.root / name,
                "is not as its last recorded change left it: edited, forgotten in part, or changed by the disk",
                "nothing, if you did it; if not, compare it with a backup",
            )


def _check_skills(store: SkillStore) -> Iterator[HealthIssue]:
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


def _check_leftovers(store: SkillStore) -> Iterator[HealthIssue]:
    if os.path.lexists(store.writer.leftover):
        yield leftover(store.writer.leftover, store.writer.repair)
