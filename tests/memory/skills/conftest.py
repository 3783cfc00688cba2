"""A throw-away directory of skills, and a way to put skills there as a person would."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.tool import SkillTools
from memoranda.support.origin import Origin


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home" / "skills"


@pytest.fixture
def skills(root: Path) -> SkillStore:
    return SkillStore(root)


@pytest.fixture
def tools(skills: SkillStore) -> SkillTools:
    return SkillTools(skills, Origin("agent", "s1"))


@pytest.fixture
def put(root: Path) -> Callable[..., Path]:
    """Write a file below the skills' directory, as another program would."""

    def put_file(path: str, content: str | bytes | None = None) -> Path:
        name = Path(path).parent.name
        content = with_front_matter(name, f"How to {name}.", "1. Do it.") if content is None else content
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    return put_file
