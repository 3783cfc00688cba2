"""The pages about agent frameworks say what is true: their examples run where the framework is installed."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, packages_of, run_python_of

_PAGES = [page for page in PAGES if packages_of(page)]


# Importing a framework takes seconds.
@pytest.mark.slow
@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, one after the other, on a home of their own."""
    for package in packages_of(page):
        pytest.importorskip(package, reason=f"the package {package} is not installed")
    run_python_of(page, tmp_path)
