"""Runs the tests of Hermes's session store against Memoranda's and prints how many pass, and why the others do not.

The tests are in the source archive of Hermes and stay outside this repository:

    pip download hermes-agent==0.19.0 --no-binary hermes-agent --no-deps
    tar xzf hermes_agent-0.19.0.tar.gz hermes_agent-0.19.0/tests/test_hermes_state.py
    .venv/bin/python tests/acceptance/hosts/hermes_store/run_tests.py hermes_agent-0.19.0/tests/test_hermes_state.py

`shim` maps names. `expected_failures.txt` names each test that fails and its class. The program fails when a test fails
that is not named there, and says which of the named ones pass.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))

from tests.acceptance.hosts.hermes_store import shim

EXPECTED = Path(__file__).with_name("expected_failures.txt")


class Results:
    """A plugin of pytest that collects the outcome of each test."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.messages: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.partition("::")[2]
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[name] = "failed" if "failed" in (report.outcome, self.outcomes.get(name)) else report.outcome
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.messages[name] = str(getattr(crash, "message", report.longrepr)).partition("\n")[0]


def read_expected(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the classes with their meanings, and the class of each test that is expected to fail."""
    classes: dict[str, str] = {}
    tests: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("["):
            name, _, meaning = line[1:].partition("] ")
            classes[name] = meaning
        elif line and not line.startswith("#"):
            tests[line.strip()] = list(classes)[-1]
    return classes, tests


def run(tests: list[Path]) -> Results:
    """Run the tests with the shim as the module that they import."""
    module = ModuleType("hermes_state")
    vars(module).update({name: getattr(shim, name) for name in shim.__all__})
    sys.modules["hermes_state"] = module
    results = Results()
    options = [
        "-q",
        "--no-header",
        "--tb=line",
        "--no-summary",
        "--show-capture=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    pytest.main([*options, f"--rootdir={tests[0].parent}", "-c", "/dev/null", *map(str, tests)], plugins=[results])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="+", type=Path, help="test files of Hermes's store")
    parser.add_argument("--verbose", action="store_true", help="print every failure")
    options = parser.parse_args()
    for path in options.tests:
        if not path.is_file():
            raise SystemExit(f"{path} does not exist; get it as described above (--help).")
    results = run([path.absolute() for path in options.tests])
    classes, expected = read_expected(EXPECTED)
    failed = [name for name, outcome in results.outcomes.items() if outcome == "failed"]
    counts = Counter(results.outcomes.values())
    print(f"{len(results.outcomes)} tests: {counts['passed']} pass, {counts['failed']} fail, {counts['skipped']} skip.")
    for name, meaning in classes.items():
        members = [test for test in failed if expected.get(test) == name]
        print(f"{len(members):5}  {name}: {meaning}")
        if options.verbose:
            print(*(f"         {test}: {results.messages.get(test, '')}" for test in members), sep="\n")
    unexpected = [test for test in failed if test not in expected]
    for test in unexpected:
        print(f"NOT EXPECTED  {test}: {results.messages.get(test, '')}")
    for test in sorted(expected.keys() - set(failed)):
        print(f"passes or is not there, though it is expected to fail: {test}")
    sys.exit(1 if unexpected or not results.outcomes else 0)


if __name__ == "__main__":
    main()
