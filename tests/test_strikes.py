"""How often tests strike: all of it in a torture run, an eighth otherwise."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.strikes import Strikes

ROOT = Path(__file__).parent.parent


def test_a_torture_run_has_the_full_number_and_others_an_eighth() -> None:
    """And at least one."""
    assert [Strikes(full=True)(full) for full in (1, 200)] == [1, 200]
    assert [Strikes(full=False)(full) for full in (1, 200)] == [1, 25]


@pytest.mark.slow
def test_a_torture_run_keeps_the_tests_that_strike(tmp_path: Path) -> None:
    """It prints their numbers, and says that it left the others out."""
    (tmp_path / "test_some.py").write_text(
        "def test_often(strikes): assert strikes(200) == 200\n\ndef test_other(): raise AssertionError\n"
    )
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "tests.conftest", "--torture"]
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'base'}", str(tmp_path / "test_some.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 strikes in 1 tests" in done.stdout and "1 deselected" in done.stdout
    assert "   200  ::test_often" in done.stdout
