"""Skills as things to synchronise: each text file of a skill, by its path below the directory of skills.

A received text is written as a person who copies the file would: through the journal, so that it can be undone. What
looks like an attack is withheld when the skill is read, as in every file that was not written by an agent here.
"""

import os
import stat
from pathlib import Path
from typing import Any

from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.skill_text import file_problem, name_problem
from memoranda.memory.skills.store import list_skill_files
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.memory.skills.writer import SkillMoveRequest, SkillTextRequest, SkillWriter
from memoranda.support.canonical_text import unstorable_character
from memoranda.support.origin import Origin
from memoranda.support.text_file import TextFile
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.things import State
from memoranda.upkeep.sync.versions import digest_of

_MAX_CHARS = 1_000_000
_MAX_FILES = 10_000


class SkillFiles:
    """The files of the skills of one home."""

    name = "skill"
    noun = "skill files"

    def __init__(self, root: Path) -> None:
        self._writer = SkillWriter(root / "skills", SkillSettings().lock_timeout)

    def read(self, run: Run) -> dict[str, State]:
        # Not by the catalogue: a skill that is broken for a moment is not a removed one.
        found, directory = {}, self._writer.directory
        for name in list_skill_files(directory, limit=_MAX_FILES):
            if "/" not in name:
                continue
            state = self._writer.read(_skill_of(name), name) if is_skill_file(name) else None
            if isinstance(state, TextFile) and len(state.text) <= _MAX_CHARS:
                found[name] = {"text": state.text, "executable": _is_executable(state.path)}
            else:
                _note_local(run, f"skills/{name} is not text, or too long, and stays on this machine.")
        return found

    def write(self, run: Run, name: str, state: State) -> str:
        skill, origin = _skill_of(name), Origin(f"sync:{run.sender or run.bundle[:12]}", explicit=True)
        path = self._writer.directory / name
        if state is None:
            if not path.is_file():
                return ""
            move = SkillMoveRequest(skill, name, "remove_file", origin, lambda: None, f"Removed {name}.")
            outcome = self._writer.commit(move)
        else:
            text: str = state["text"]
            request = SkillTextRequest(skill, name, "write_file", origin, lambda _: text, f"Wrote {name}.")
            outcome = self._writer.commit(request)
        if isinstance(outcome, SkillRefusal):
            return outcome.message
        if state is not None and state["executable"] != _is_executable(path):
            mode = stat.S_IMODE(path.stat().st_mode)
            os.chmod(path, mode | stat.S_IXUSR if state["executable"] else mode & ~0o111)
        return ""

    def combine(self, earlier: State, later: State) -> State:
        """The later text; the other one stays in the journal. A text wins over a removal."""
        return earlier if later is None else later

    def digest(self, state: State) -> str:
        return digest_of(state)

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


def _note_local(run: Run, note: str) -> None:
    if note not in run.report.notes:
        run.report.notes.append(note)
