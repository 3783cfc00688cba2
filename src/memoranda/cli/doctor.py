"""`memoranda doctor`: what is wrong with a home, and how to mend it."""

import sys

import click

from memoranda.cli.context import REFUSED, Invocation, common_options
from memoranda.doctor import examine
from memoranda.errors import MemorandaError
from memoranda.support.findings import Finding
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
    """Check the home, its permissions, configuration, memory files and leftovers.

    Each finding says how to mend it. The exit code is 1 while an error or a warning stands.
    """
    invocation = Invocation.current()
    home = invocation.place()
    findings = list(examine(home))
    mended = _mend(home, findings) if mend else [False] * len(findings)
    stands = [not done and finding.severity != "note" for finding, done in zip(findings, mended, strict=True)]
    lines = [f"Home: {home.root}" + ("" if home.root.exists() else " (not there yet; the first write makes it)")]
    lines += [_show(finding, done) for finding, done in zip(findings, mended, strict=True)]
    lines.append(f"{sum(stands)} to mend." if any(stands) else "All is well.")
    data = [
        {
            "severity": finding.severity, "path": str(finding.path), "problem": finding.problem,
            "remedy": finding.remedy, "can_mend": finding.mend is not None, "mended": done,
        }
        for finding, done in zip(findings, mended, strict=True)
    ]  # fmt: skip
    invocation.say("\n".join(lines), {"home": str(home.root), "healthy": not any(stands), "findings": data})
    sys.exit(REFUSED if any(stands) else 0)


def _mend(home: Home, findings: list[Finding]) -> list[bool]:
    """Mend what can be mended, then look again: mended is what no longer shows."""
    for finding in findings:
        if finding.mend is not None:
            try:
                finding.mend()
            except (OSError, MemorandaError) as error:
                click.echo(f"{finding.path} could not be mended: {error}", err=True)
    still = {(finding.path, finding.problem) for finding in examine(home)}
    return [finding.mend is not None and (finding.path, finding.problem) not in still for finding in findings]


def _show(finding: Finding, mended: bool) -> str:
    outcome = "mended" if mended else f"to mend: {finding.remedy}"
    return f"{finding.severity:>8}  {finding.path} {finding.problem}\n          {outcome}"
