"""The pages of the documentation, and their examples as programs."""

import os
import re
import runpy
import warnings
from pathlib import Path

from tests.forked import in_child

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
_PACKAGE = re.compile(r"^<!-- needs the package ([\w.]+) -->$", re.MULTILINE)


def fences(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page that are in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def packages_of(page: Path) -> list[str]:
    """The packages that a page says its examples need, beside those of the development environment."""
    return _PACKAGE.findall(page.read_text())


def program_of(page: Path, directory: Path) -> Path:
    """A file in a directory with all Python blocks of a page."""
    script = directory / "page.py"
    script.write_text("\n".join(fences(page, "python")))
    return script


def run_python_of(page: Path, directory: Path) -> None:
    """Run all Python blocks of a page, one after the other, on a home in a directory.

    In a forked process: a new one would import the same modules again for each page.
    """
    script = program_of(page, directory)

    def run() -> None:
        os.chdir(directory)
        os.environ.update(MEMORANDA_HOME=str(directory / "home"), HOME=str(directory))
        warnings.resetwarnings()
        runpy.run_path(str(script), run_name="__main__")

    assert in_child(run) == 0
