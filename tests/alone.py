"""Runs test files one by one, each in a process of its own: a file must not need what another one loaded or left.

`make test-alone` takes a random sample and prints its seed; `FILES=all` takes every file.
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

_TESTS = Path(__file__).parent
# What pytest returns if a file has no test for the everyday run.
_NO_TESTS = 5


def main() -> None:
    """Print every file that fails, and end with an error if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", default="12", help="How many, or all.")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    files = sorted(_TESTS.rglob("test_*.py"))
    if options.files != "all":
        files = random.Random(options.seed).sample(files, int(options.files))
    print(f"{len(files)} files alone, seed {options.seed}.", flush=True)
    failed = [file for file in files if not _passes(file)]
    print(f"{len(files) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


def _passes(file: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "-p", "no:rerunfailures", "-p", "no:xdist", str(file)]
    done = subprocess.run(command, cwd=_TESTS.parent, capture_output=True, text=True, check=False)
    passes = done.returncode in (0, _NO_TESTS)
    if not passes:
        print(f"{file.relative_to(_TESTS.parent)} fails alone:\n{done.stdout}{done.stderr}", flush=True)
    return passes


if __name__ == "__main__":
    main()
