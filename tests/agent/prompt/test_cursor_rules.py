"""Cursor's rules apply where their globs match."""

from pathlib import Path

import pytest

from memoranda.agent.prompt.context_files import read_project_files, rule_applies

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("web/page.tsx", "web/deep/er/view.ts", "api/main.py", "node_modules/lib/index.rs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".git").mkdir()
    return tmp_path


def _rule(head: str) -> str:
    return f"---\n{head}\n---\nthe rule"


def test_a_rule_with_globs_applies_where_a_file_matches(project: Path) -> None:
    """In the working directory or below it; installed packages do not count."""
    for globs, in_web, in_api in [
        ("*.tsx", True, False),
        ("**/*.py", False, True),
        ("web/**/*.ts", True, False),
        ("web/*.ts", False, False),
        ("api/", False, True),
        ("*.{ts,tsx}, *.rs", True, False),
        ('["*.py", "*.go"]', False, True),
        ("\n  - '*.go'\n  - \"*.py\"", False, True),
        ("*.rs", False, False),
        ("[weird(", False, False),
    ]:
        text = _rule(f"description: x\nglobs: {globs}\nalwaysApply: false")
        assert rule_applies(text, project, project / "web") is in_web
        assert rule_applies(text, project, project / "api") is in_api
        assert rule_applies(text, project, project) is (in_web or in_api)


@pytest.mark.parametrize(
    ("head", "applies"),
    [
        ("alwaysApply: true\nglobs: *.rs", True),
        ("description: how we test\nglobs:\nalwaysApply: false", True),
        ("description:\nglobs:\nalwaysApply: false", False),
        ("name: without any of these", True),
    ],
)
def test_a_rule_without_globs_applies_unless_only_its_user_names_it(project: Path, head: str, applies: bool) -> None:
    """As in Cursor, where a rule with neither globs nor a description is called by its name."""
    assert rule_applies(_rule(head), project, project) is applies


def test_a_prompt_has_the_rules_of_its_directory(project: Path) -> None:
    """Not those of the other half of the project."""
    rules = project / ".cursor" / "rules"
    rules.mkdir(parents=True)
    (rules / "web.mdc").write_text(_rule("globs: web/**\nalwaysApply: false").replace("the rule", "Use hooks."))
    (rules / "api.mdc").write_text(_rule("globs: api/**\nalwaysApply: false").replace("the rule", "Use types."))
    text = read_project_files(project / "api").text
    assert ("Use types." in text, "Use hooks." in text) == (True, False)
