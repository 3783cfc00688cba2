"""`memoranda doctor`: what is wrong with a home, and how to mend it."""

import sys

import click

from memoranda.cli.context import EXIT_REFUSED, Invocation, common_options
from memoranda.cli.provider.output import aside
from memoranda.doctor import examine
from memoranda.errors import MemorandaError
from memoranda.support.health_issues import HealthIssue
from memoranda.support.home import Home

_EPILOG = """\b
Examples:
  memoranda doctor
  memoranda doctor --mend
  memoranda doctor --home ./somewhere --json
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--mend",
    is_flag=True,
    help="Do the mends that lose nothing; what is replaced is kept.",
)
@common_options
def command(mend: bool) -> None:
    """Check the home: permissions, configuration, memory files, sessions, index and leftovers.

    Each finding says how to mend it. The exit code is 1 while an error or a warning stands.
    """
    invocation = Invocation.current()
    home = invocation.locate_home()
    # A provider's check may print; the answer alone belongs on standard output.
    with aside():
        findings = list(examine(home))
        mended, told = _mend(home, findings) if mend else ([False] * len(findings), {})
    stands = [not done and finding.severity != "note" for finding, done in zip(findings, mended, strict=True)]
    lines = [f"Home: {home.root}" + ("" if home.root.exists() else " (not there yet; the first write makes it)")]
    lines += [
        _show(finding, done, told.get(place, ""))
        for place, (finding, done) in enumerate(zip(findings, mended, strict=True))
    ]
    lines.append(f"{sum(stands)} to mend." if any(stands) else "All is well.")
    data = [
        {
            "severity": finding.severity, "path": str(finding.path), "problem": finding.problem,
            "remedy": finding.remedy, "can_mend": finding.repair is not None, "mended": done, "told": told.get(place),
        }
        for place, (finding, done) in enumerate(zip(findings, mended, strict=True))
    ]  # fmt: skip
    invocation.respond("\n".join(lines), {"home": str(home.root), "healthy": not any(stands), "findings": data})
    sys.exit(EXIT_REFUSED if any(stands) else 0)


def _mend(home: Home, findings: list[HealthIssue]) -> tuple[list[bool], dict[int, str]]:
    """Mend what can be mended, then look again: mended is what no longer shows. Also what the mends told."""
    told: dict[int, str] = {}
    for place, finding in enumerate(findings):
        if finding.repair is not None:
            try:
                said = finding.repair()
                told |= {place: said} if isinstance(said, str) else {}
            except (OSError, MemorandaError) as error:
                click.echo(f"{finding.path} could not be mended: {error}", err=True)
    still = {(finding.path, finding.problem) for finding in examine(home)}
    gone = [finding.repair is not None and (finding.path, finding.problem) not in still for finding in findings]
    return gone, told


def _show(finding: HealthIssue, mended: bool, told: str) -> str:
    outcome = f"mended{': ' + told if told else ''}" if mended else f"to mend: {finding.remedy}"
    return f"{finding.severity:>8}  {finding.path} {finding.problem}\n          {outcome}"
