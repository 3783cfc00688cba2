"""docs/reference/skills.md names everything that the code can answer or write."""

from typing import get_args

import pytest

from memoranda.memory.skills.settings import SkillSettings
from memoranda.memory.skills.write_result import SkillRefusalReason
from memoranda.memory.skills.writer import SkillAction, SkillChange
from tests.docs.reference import DOCS

pytestmark = pytest.mark.slow

PAGE = (DOCS / "reference" / "skills.md").read_text()


def test_every_refusal_reason_is_documented() -> None:
    """By its name."""
    assert [reason for reason in get_args(SkillRefusalReason) if f"| `{reason}` |" not in PAGE] == []


def test_every_field_and_action_of_the_journal_is_documented() -> None:
    """By its name."""
    names = [*SkillChange.__dataclass_fields__, *get_args(SkillAction)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_limits_are_those_of_the_code() -> None:
    """Of SKILL.md and of further files."""
    settings = SkillSettings()
    assert f"have {settings.skill_char_limit:,} characters" in PAGE
    assert f"a further file {settings.file_char_limit:,}" in PAGE
