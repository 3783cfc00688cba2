"""The pages about agent frameworks say what is true: their examples run where the framework is installed."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, fences, packages_of, program_of

pytestmark = pytest.mark.slow

_PAGES = [page for page in PAGES if packages_of(page)]
_MAX_LINES = 10


def _lines_about_us(program: str) -> set[int]:
    """The lines that a user adds to a program: imports from Memoranda, and what uses these names or the open memory.

    An import is one line, however it is wrapped; assertions show a result, and are not counted.
    """
    nodes = list(ast.walk(ast.parse(program)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = [node for node in imports if (getattr(node, "module", "") or node.names[0].name).startswith("memoranda")]
    names = {(alias.asname or alias.name).partition(".")[0] for node in ours for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Assign) and "memoranda.open(" in ast.unparse(node.value):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    lines = {
        node.lineno for node in (*ours, *nodes) if node in ours or (isinstance(node, ast.Name) and node.id in names)
    }
    asserted = [range(node.lineno, (node.end_lineno or 0) + 1) for node in nodes if isinstance(node, ast.Assert)]
    return lines.difference(*asserted)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_framework_gets_a_memory_with_ten_lines(page: Path) -> None:
    """The first example of a page is a whole integration; the test below runs it."""
    lines = _lines_about_us(fences(page, "python")[0])
    assert 3 <= len(lines) <= _MAX_LINES


def _is_installed(package: str) -> bool:
    """Without importing it, which takes seconds; only the packages around it are."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


# Importing a framework takes seconds.
@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, one after the other, on a home of their own."""
    for package in packages_of(page):
        if not _is_installed(package):
            pytest.skip(f"the package {package} is not installed")
    script = program_of(page, tmp_path)
    environment = os.environ | {"MEMORANDA_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    # Not forked: a framework has threads and connections of its own.
    result = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
