"""`memoranda doctor`: checks a home, says how to fix what is wrong, and fixes it on request."""

import sys
from functools import partial
from typing import Any

import click

from memoranda.cli.context import EXIT_REFUSED, Invocation, common_options
from memoranda.cli.hooks.helper_files import describe_helpers, helper_as_json, running_helpers
from memoranda.cli.hosts.found_hosts import format_host, host_as_json, inspect_installed_hosts
from memoranda.cli.provider.output import stdout_to_stderr
from memoranda.cli.terminal_text import ProgressLine
from memoranda.errors import MemorandaError
from memoranda.support.health_issues import HealthIssue, Progress
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.doctor import accept_store as accept
from memoranda.upkeep.doctor import examine

_EPILOG = """\b
Examples:
  memoranda doctor
  memoranda doctor --fix
  memoranda doctor --deep --quiet
  memoranda doctor --home ./somewhere --json
"""


@dataclass(frozen=True, slots=True)
class _CheckedIssue:
    """A health issue, whether it was fixed, and the report of its repair."""

    issue: HealthIssue
    fixed: bool = False
    report: str | None = None

    @property
    def is_open(self) -> bool:
        return not self.fixed and self.issue.severity != "note"

    def as_text(self) -> str:
        outcome = f"to fix: {self.issue.remedy}"
        if self.fixed:
            outcome = f"fixed: {self.report}" if self.report else "fixed"
        return f"{self.issue.severity:>8}  {self.issue.path} {self.issue.problem}\n          {outcome}"

    def as_json(self) -> dict[str, Any]:
        return {
            "severity": self.issue.severity,
            "path": str(self.issue.path),
            "problem": self.issue.problem,
            "remedy": self.issue.remedy,
            "can_mend": self.issue.repair is not None,
            "mended": self.fixed,
            "told": self.report,
        }


@click.command(epilog=_EPILOG)
@click.option("--fix", is_flag=True, help="Make the repairs that lose nothing; replaced files are kept.")
@click.option(
    "--accept-store",
    is_flag=True,
    help="Use the state.db that is there from now on, such as a restored backup, or start with an empty one.",
)
@click.option("--deep", is_flag=True, help="Verify everything: each message, the index against it, history, backups.")
@click.option("--quiet", is_flag=True, help="Print nothing if there is no problem.")
@common_options
def command(invocation: Invocation, fix: bool, accept_store: bool, deep: bool, quiet: bool) -> None:
    """Check the home: permissions, configuration, memory files, sessions, index, leftovers and installed hosts.

    Each problem is shown with the way to fix it. The exit code is 1 while an error or a warning remains. --deep reads
    every byte and may take minutes; it asks nothing, can be interrupted, and can run from cron or a timer with --quiet.
    """
    home = invocation.locate_home()
    if accept_store:
        click.echo(accept(home), err=True)
    # A provider's check may print; only the answer belongs on standard output.
    with ProgressLine(visible=not quiet) as progress, stdout_to_stderr():
        report_progress = partial(_show_progress, progress) if deep else None
        hosts = inspect_installed_hosts(home)
        issues = [*examine(home, report_progress), *(issue for status in hosts for issue in status.issues)]
        checked = _repair(home, issues, report_progress) if fix else [_CheckedIssue(each) for each in issues]
    open_count = sum(item.is_open for item in checked)
    is_new = not issues and not home.root.exists()
    head = f"Home: {home.root}" + (" (does not exist yet; the first write creates it)" if is_new else "")
    problems = f"{open_count} problem{'' if open_count == 1 else 's'} to fix." if open_count else "No problems found."
    helpers = running_helpers(home)
    data = {
        "home": str(home.root),
        "healthy": not open_count,
        "findings": [item.as_json() for item in checked],
        "hosts": [host_as_json(status) for status in hosts],
        "hook_helpers": [helper_as_json(helper) for helper in helpers],
    }
    helper_lines = describe_helpers(home, helpers) if hosts or helpers else []
    lines = [head, *map(format_host, hosts), *helper_lines, *(item.as_text() for item in checked), problems]
    if open_count or not quiet:
        invocation.respond("\n".join(lines), data)
    sys.exit(EXIT_REFUSED if open_count else 0)


def _show_progress(line: ProgressLine, name: str, done: int, total: int) -> None:
    line.update(f"Checking {name}" + (f": {done:,} of {total:,}" if total > 1 else ""))


def _repair(home: Home, issues: list[HealthIssue], deep: Progress | None) -> list[_CheckedIssue]:
    """Runs the repairs, then checks again: an issue counts as fixed when the check no longer finds it."""
    reports: dict[int, str] = {}
    for index, issue in enumerate(issues):
        if issue.repair is not None:
            try:
                report = issue.repair()
                reports |= {index: report} if isinstance(report, str) else {}
            except (OSError, MemorandaError) as error:
                click.echo(f"{issue.path} could not be fixed: {error}", err=True)
    remaining = {(issue.path, issue.problem) for issue in examine(home, deep)}
    return [
        _CheckedIssue(
            issue, issue.repair is not None and (issue.path, issue.problem) not in remaining, reports.get(index)
        )
        for index, issue in enumerate(issues)
    ]
