"""A problem of one skill hides no other skill, and is listed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore

pytestmark = pytest.mark.slow


def test_skills_are_found_by_name_with_and_without_a_category(skills: SkillStore, put: Callable[..., Path]) -> None:
    """In the order of their names, hidden folders left out."""
    put("zebra/SKILL.md")
    put("devops/deploy/SKILL.md")
    put(".archive/1/old/SKILL.md")
    found = skills.catalogue()
    assert [(each.name, each.category) for each in found.skills] == [("deploy", "devops"), ("zebra", "")]
    assert found.problems == ()


def test_broken_skills_are_reported_and_the_others_used(
    skills: SkillStore, put: Callable[..., Path], root: Path, tmp_path: Path
) -> None:
    """Each with its path and reason."""
    put("good/SKILL.md")
    put("no-front/SKILL.md", "# Just text\n")
    put("not-utf/SKILL.md", b"---\nname: \xff\n---\n")
    put("list/SKILL.md", "---\n- a\n- b\n---\n")
    put("Bad_Name/SKILL.md")
    put("huge/SKILL.md", "x" * 1_100_000)
    put("empty/readme.txt", "x")
    (root / "linked").symlink_to(tmp_path)
    put("half-link/other.md", "x")
    (root / "half-link" / "SKILL.md").symlink_to(root / "good" / "SKILL.md")
    found = skills.catalogue()
    assert [each.name for each in found.skills] == ["good"]
    wrong = {problem.path.relative_to(root).parts[0] for problem in found.problems if problem.fatal}
    assert wrong == {"no-front", "not-utf", "list", "Bad_Name", "huge", "empty", "linked", "half-link"}


def test_small_faults_do_not_keep_a_skill_from_being_used(skills: SkillStore, put: Callable[..., Path]) -> None:
    """An unquoted colon and another name in the front matter are common."""
    put("colon/SKILL.md", "---\nname: colon\ndescription: Use when: things break\n---\nbody\n")
    put("renamed/SKILL.md", with_front_matter("before", "x", "y"))
    found = skills.catalogue()
    assert [(each.name, each.description) for each in found.skills] == [
        ("colon", "Use when: things break"), ("renamed", "x"),
    ]  # fmt: skip
    assert len(found.problems) == 2 and not any(problem.fatal for problem in found.problems)


def test_of_two_skills_with_one_name_the_first_counts(skills: SkillStore, put: Callable[..., Path]) -> None:
    """And the other is reported."""
    put("a/deploy/SKILL.md")
    put("b/deploy/SKILL.md")
    found = skills.catalogue()
    assert [each.category for each in found.skills] == ["a"]
    assert "same name" in found.problems[0].problem


def test_a_skill_that_is_removed_while_skills_are_read_is_not_listed(
    skills: SkillStore, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may delete it after its folder was found; the others are listed, and nothing is a problem."""
    put("kept/SKILL.md")
    removed = put("removed/SKILL.md")

    def remove_meanwhile(name: str) -> None:
        if name == "removed":
            removed.unlink()

    monkeypatch.setattr("memoranda.memory.skills.catalogue.name_problem", remove_meanwhile)
    found = skills.catalogue()
    assert ([each.name for each in found.skills], found.problems) == (["kept"], ())


def test_no_directory_is_no_skills(skills: SkillStore, root: Path) -> None:
    """And looking makes none."""
    assert skills.catalogue().skills == () and not root.exists()
