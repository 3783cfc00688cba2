"""Runs vendors' real servers on this machine and checks the promises of their providers: `make vendors`.

    python -m tests.acceptance.vendors.run                          every vendor that can run here
    python -m tests.acceptance.vendors.run mem0 honcho              some of them
    python -m tests.acceptance.vendors.run mem0 --turns 100 --json report.json

Servers are installed into `.cache/vendors`, which can be deleted whenever no run uses it. They use the scripted model
of `memoranda.testing.scripted` and need no key. The run fails if a promise does not hold; a vendor that cannot run is
reported with the reason.
"""

import argparse
import importlib
import json
import re
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.acceptance.vendors.real_vendor import RealVendor
from tests.acceptance.vendors.scenario import Report, run_scenario

_FOLDER = Path(__file__).parent
DEFAULT_CACHE = _FOLDER.parents[2] / ".cache" / "vendors"
_LISTS_VENDORS = re.compile("^VENDORS", re.MULTILINE)
# What cannot be started anywhere but at the vendor, and is tested with recorded answers instead.
REPLAYED = {
    "RetainDB, server": "its database engines are not in a package registry; its wire is replayed in the tests",
    "Supermemory": "no server is published; its wires are replayed in the tests, and `supermemory_clients` checks them",
    "Zep": "the service is only in the cloud; its wire is replayed in the tests",
}


def find_vendors(names: list[str]) -> dict[str, list[type[RealVendor]]]:
    """The ways to run vendors, by module; all modules that have some if no name is given."""
    modules = names or sorted(
        path.stem for path in _FOLDER.glob("*.py") if _LISTS_VENDORS.search(path.read_text("utf-8"))
    )
    return {name: list(importlib.import_module(f"tests.acceptance.vendors.{name}").VENDORS) for name in modules}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vendors", nargs="*", help="names of modules in this folder")
    parser.add_argument("--turns", type=int, default=1_000, help="of the outage; the server is down for half of them")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="where servers are installed")
    parser.add_argument("--json", type=Path, help="also write the reports to this file")
    options = parser.parse_args()
    reports = []
    for kinds in find_vendors(options.vendors).values():
        for kind in kinds:
            with tempfile.TemporaryDirectory(prefix="memoranda-vendors-", ignore_cleanup_errors=True) as work:
                report = run_scenario(kind(options.cache), Path(work), options.turns)
            reports.append(report)
            print(format_report(report), flush=True)
    if not options.vendors:
        for title, reason in REPLAYED.items():
            print(f"\n{title}\n  not run    {reason}")
    if options.json:
        options.json.write_text(json.dumps([asdict(report) for report in reports], indent=2), "utf-8")
    return int(any(report.problems for report in reports))


def format_report(report: Report) -> str:
    """A report for people."""
    lines = ["", report.title]
    if report.reason:
        lines.append(f"  not run    {report.reason}")
    if report.start_seconds:
        lines += [
            f"  installed  {report.installed_megabytes:,.0f} MB in {report.install_seconds:.0f} s",
            f"  started    in {report.start_seconds:.1f} s, {report.memory_megabytes:,.0f} MB of memory",
            f"  answers    {report.answer}",
            f"  write      {1000 * report.write_seconds:.0f} ms",
            f"  recall     {1000 * report.recall_seconds:.0f} ms, {report.recalled} facts",
            f"  tools      {report.tools}",
            f"  attack     {report.attack}",
            f"  outage     {report.turns} turns, {report.turns_while_down} of them without the server,"
            f" {report.lost_answers} answers lost; {report.outage_seconds:.0f} s in all,"
            f" slowest turn {1000 * report.slowest_turn_seconds:.0f} ms",
            f"  forgotten  {report.forgotten}",
        ]
        lines += [f"  PROBLEM    {problem}" for problem in report.problems] or ["  every turn once and in order"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
