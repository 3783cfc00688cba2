"""`SkillStore`: finds, reads and changes the skills of a home.

A skill is a folder with a SKILL.md and, if needed, further files. People may add folders by hand; for every write of an
agent, the store checks the names and scans the text; the write is journaled and atomic, and can be undone.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from memoranda.memory.skills import content_checks, refusals
from memoranda.memory.skills.catalogue import Catalogue, Skill, find_skills
from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.skill_text import SKILL_FILE, file_problem, name_problem
from memoranda.memory.skills.write_result import SkillReceipt, SkillRefusal, SkillWriteResult
from memoranda.memory.skills.writer import (
    SkillAction,
    SkillChange,
    SkillJournal,
    SkillMoveRequest,
    SkillTextRequest,
    SkillWriter,
    read_skill_file,
)
from memoranda.safety.allowances import Allowances
from memoranda.safety.withheld_passages import ScreenedText, withhold_passages
from memoranda.storage.files.named_texts import Document, NamedFiles
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin
from memoranda.support.text_file import MissingFile, TextFile

_MAX_FILES_LISTED = 200


@dataclass(frozen=True, slots=True)
class SkillView:
    """One file of a skill as it may be shown, and which files the skill has."""

    skill: Skill
    file: str
    shown: ScreenedText
    files: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path of the file below its directory of skills."""
        return f"{self.skill.path}/{self.file}"


class SkillStore:
    """The skills in one directory, and read-only ones in others; of equal names the first directory wins."""

    def __init__(
        self, root: str | Path, settings: SkillSettings | None = None, *, read_only_roots: Sequence[str | Path] = ()
    ) -> None:
        self.root = Path(root).absolute()
        self.settings = settings or SkillSettings()
        self.writer = SkillWriter(self.root, self.settings.lock_timeout)
        self.allowances = Allowances(Document(NamedFiles(self.root), ".allowed.json"))
        self._roots = [self.root, *(Path(directory).absolute() for directory in read_only_roots)]
        # The fingerprint of each file when this store last read it; an agent may replace only what it has read.
        self._seen: dict[Path, str] = {}

    @property
    def journal(self) -> SkillJournal:
        return self.writer.journal

    def exclusive(self) -> AbstractContextManager[None]:
        """Holds the lock of the directory, for work that changes no skill."""
        return self.writer.exclusive()

    def catalogue(self) -> Catalogue:
        """The current skills, and the problems of those that are broken."""
        return find_skills(self._roots if self.settings.enabled else [])

    def view(self, name: str, file: str = SKILL_FILE) -> SkillView | SkillRefusal:
        """A file of a skill, with suspicious passages withheld."""
        skill = self.catalogue().get(name)
        if skill is None:
            return refusals.not_found(name)
        files = list_skill_files(skill.directory)
        if file != SKILL_FILE and file not in files:
            return refusals.no_file(name, file)
        state = read_skill_file(skill.root, name, f"{skill.path}/{file}")
        if isinstance(state, SkillRefusal):
            return state
        if isinstance(state, MissingFile):
            return refusals.no_file(name, file)
        self._seen[state.path] = state.fingerprint
        return SkillView(skill, file, self.screen_text(state.text, file), files)

    def screen_text(self, text: str, file: str = SKILL_FILE) -> ScreenedText:
        """The text of a file as it may be shown: suspicious passages that no person has allowed are withheld."""
        return withhold_passages(text, self.allowances.of, content_checks.line_reader(file))

    def create(self, name: str, content: str, origin: Origin, allow: frozenset[str] = frozenset()) -> SkillWriteResult:
        """Create a skill from the text of its SKILL.md."""
        if refusal := self._refuse(name, origin) or _refuse_name(name):
            return refusal
        existing = self.catalogue().get(name)
        if existing is not None and (existing.root == self.root or not origin.explicit):
            return refusals.exists(name, existing.directory)

        def plan(present: TextFile | None) -> str | SkillRefusal:
            if present or os.path.lexists(self.root / name):
                return refusals.exists(name, self.root / name)
            return content_checks.canonical_content(content)

        request = SkillTextRequest(name, f"{name}/{SKILL_FILE}", "create", origin, plan, f"Created the skill {name}.")
        return self._commit_text(request, allow)

    def edit(self, name: str, content: str, origin: Origin, allow: frozenset[str] = frozenset()) -> SkillWriteResult:
        """Replace the SKILL.md of a skill."""
        return self._replace(name, SKILL_FILE, "edit", content, origin, allow)

    def write_file(self, name: str, file: str, content: str, origin: Origin) -> SkillWriteResult:
        """Create or replace a further file of a skill."""
        if file == SKILL_FILE:
            return self.edit(name, content, origin)
        return self._replace(name, file, "write_file", content, origin, frozenset())

    def patch(
        self, name: str, old_text: str, new_text: str, origin: Origin, file: str = SKILL_FILE
    ) -> SkillWriteResult:
        """Replace a passage that occurs once."""
        path = self._writable_path(name, file, origin)
        if isinstance(path, SkillRefusal):
            return path

        def plan(present: TextFile | None) -> str | SkillRefusal:
            if present is None:
                return refusals.no_file(name, file)
            return content_checks.apply_patch(present.text, old_text, new_text, name, file)

        request = SkillTextRequest(name, path, "patch", origin, plan, f"Patched {file} of {name}.")
        return self._commit_text(request, frozenset())

    def remove_file(self, name: str, file: str, origin: Origin) -> SkillWriteResult:
        """Move a further file of a skill into the archive."""
        path = self._writable_path(name, file, origin, removes=True)
        if isinstance(path, SkillRefusal):
            return path
        if file == SKILL_FILE:
            return refusals.invalid_skill_text(name, f"it needs {SKILL_FILE}; delete the skill instead")
        done = f"Removed {file} of {name}. 'memoranda skills undo' restores it."
        check = partial(_refuse_unless_file, self.root / path, refusals.no_file(name, file))
        return self.writer.commit(SkillMoveRequest(name, path, "remove_file", origin, check, done))

    def delete(self, name: str, origin: Origin) -> SkillWriteResult:
        """Move a skill with all its files into the archive."""
        path = self._writable_path(name, SKILL_FILE, origin, removes=True)
        if isinstance(path, SkillRefusal):
            return path
        folder = path.removesuffix(f"/{SKILL_FILE}")
        done = f"Removed the skill {name}. 'memoranda skills undo' restores it."
        check = partial(_refuse_unless_file, self.root / path, refusals.not_found(name))
        return self.writer.commit(SkillMoveRequest(name, folder, "delete", origin, check, done))

    def allow(self, name: str, file: str, origin: Origin) -> tuple[str, ...] | SkillRefusal:
        """Accept what the scanner found in a file, so that all of it is shown; returns the ids of these findings."""
        view = self.view(name, file)
        if isinstance(view, SkillRefusal):
            return view
        if view.shown.passages:
            with self.exclusive():
                for passage in view.shown.passages:
                    self.allowances.allow([passage.text], passage.findings, origin)
                self._journal_note(view, "allow", ", ".join(view.shown.findings), origin)
        return view.shown.findings

    def revoke(self, name: str, file: str, origin: Origin) -> bool | SkillRefusal:
        """Revoke what was allowed in the current text of a file; False when nothing was."""
        view = self.view(name, file)
        if isinstance(view, SkillRefusal):
            return view
        state = read_skill_file(view.skill.root, name, view.path)
        with self.exclusive():
            read_as = content_checks.line_reader(file)
            passages = withhold_passages(state.text, None, read_as).passages if isinstance(state, TextFile) else ()
            revoked = [passage for passage in passages if self.allowances.revoke(passage.text)]
            if revoked:
                self._journal_note(view, "revoke", "", origin)
        return bool(revoked)

    def _journal_note(self, view: SkillView, action: SkillAction, note: str, origin: Origin) -> None:
        number = self.journal.next_number()
        line = SkillChange(number, view.skill.name, view.path, action, origin.actor, origin.session, note=note)
        self.journal.append([line])

    def _replace(
        self, name: str, file: str, action: SkillAction, content: str, origin: Origin, allow: frozenset[str]
    ) -> SkillWriteResult:
        path = self._writable_path(name, file, origin)
        if isinstance(path, SkillRefusal):
            return path

        def plan(present: TextFile | None) -> str | SkillRefusal:
            if present is not None and not origin.explicit:
                if self._seen.get(present.path) != present.fingerprint:
                    return refusals.not_seen(name, file)
                if withheld := self.screen_text(present.text, file).findings:
                    return refusals.contains_withheld(name, file, withheld)
            return content_checks.canonical_content(content)

        return self._commit_text(SkillTextRequest(name, path, action, origin, plan, f"Wrote {file} of {name}."), allow)

    def _commit_text(self, request: SkillTextRequest, allow: frozenset[str]) -> SkillWriteResult:
        """Carry out a change whose result must pass the content checks and the scanner."""
        file = SKILL_FILE if request.path.rpartition("/")[2] == SKILL_FILE else request.path
        limit = self.settings.skill_char_limit if file == SKILL_FILE else self.settings.file_char_limit
        plan_text, screen_text = request.plan, partial(self.screen_text, file=file)

        def plan(present: TextFile | None) -> str | SkillRefusal:
            planned = plan_text(present)
            if isinstance(planned, SkillRefusal):
                return planned
            before = present.text if present else ""
            refusal = content_checks.check_content(request.skill, file, planned, before, limit)
            if refusal is None:
                refusal = content_checks.scan_new_passages(request.skill, planned, before, screen_text, allow)
            return refusal or planned

        def accept(text: str) -> None:
            for passage in screen_text(text).passages if allow else ():
                self.allowances.allow([passage.text], allow & set(passage.findings), request.origin)

        outcome = self.writer.commit(replace(request, plan=plan, accept=accept))
        if isinstance(outcome, SkillReceipt):
            state = read_skill_file(self.root, request.skill, request.path)
            if isinstance(state, TextFile):
                self._seen[state.path] = state.fingerprint
        return outcome

    def _refuse(self, name: str, origin: Origin) -> SkillRefusal | None:
        if not self.settings.enabled:
            return refusals.disabled(name)
        if not self.settings.agent_writes and not origin.explicit:
            return refusals.only_people_may_write(name)
        return None

    def _writable_path(self, name: str, file: str, origin: Origin, *, removes: bool = False) -> str | SkillRefusal:
        """The path of a skill file below the root, or a refusal when this origin may not change it."""
        if refusal := self._refuse(name, origin):
            return refusal
        skill = self.catalogue().get(name)
        if skill is None:
            return refusals.not_found(name)
        if skill.root != self.root:
            return refusals.read_only(name, skill.directory)
        if problem := file_problem(file):
            return refusals.invalid_name(name, problem)
        if origin.actor == "review" and (removes or self.journal.creator(name) not in ("agent", "review")):
            return refusals.not_allowed_for_review(name)
        return f"{skill.path}/{file}"


def _refuse_unless_file(path: Path, refusal: SkillRefusal) -> SkillRefusal | None:
    return None if path.is_file() else refusal


def list_skill_files(directory: Path, limit: int = _MAX_FILES_LISTED) -> tuple[str, ...]:
    """The sorted paths of the further files of a skill, without links and hidden ones."""
    found: list[str] = []
    for folder, folders, files in os.walk(directory):
        # os.walk does not enter links to folders, but it lists them.
        folders[:] = sorted(name for name in folders if name[0] != "." and not (Path(folder) / name).is_symlink())
        for name in sorted(files):
            path = Path(folder) / name
            if name[0] != "." and path != directory / SKILL_FILE and not path.is_symlink():
                found.append(path.relative_to(directory).as_posix())
            if len(found) >= limit:
                return tuple(sorted(found))
    return tuple(sorted(found))


def _refuse_name(name: str) -> SkillRefusal | None:
    problem = name_problem(name)
    return refusals.invalid_name(name[:100], problem) if problem else None
