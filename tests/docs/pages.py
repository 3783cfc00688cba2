"""The pages of the documentation, and their examples as programs."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
_PACKAGE = re.compile(r"^<!-- needs the package ([\w.]+) -->$", re.MULTILINE)


def fences(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page that are in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def packages_of(page: Path) -> list[str]:
    """The packages that a page says its examples need, beside those of the development environment."""
    return _PACKAGE.findall(page.read_text())


def run_python_of(page: Path, directory: Path) -> None:
    """Run all Python blocks of a page, one after the other, on a home in a directory."""
    script = directory / "page.py"
    script.write_text("\n".join(fences(page, "python")))
    environment = os.environ | {"MEMORANDA_HOME": str(directory / "home"), "HOME": str(directory)}
    result = subprocess.run(
        [sys.executable, str(script)], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
