"""The pages about agent frameworks say what is true: their examples run where the framework is installed."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, packages_of, program_of

_PAGES = [page for page in PAGES if packages_of(page)]


def _is_installed(package: str) -> bool:
    """Without importing it, which takes seconds; only the packages around it are."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


# Importing a framework takes seconds.
@pytest.mark.slow
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
