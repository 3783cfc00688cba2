"""What an import would do or has done, in words."""

from collections.abc import Sequence

from memoranda.cli.terminal_text import dim, terminal_line
from memoranda.importers.summary import ImportSummary

_SHOWN_PROBLEMS = 10
_SHOWN_KINDS = 6


def size(number: int) -> str:
    """A number of bytes for people."""
    if number < 1000:
        return f"{number} bytes"
    for unit in ("kB", "MB"):
        number_of = number / 1000 if unit == "kB" else number / 1_000_000
        if number_of < 1000:
            return f"{number_of:,.1f} {unit}"
    return f"{number / 1_000_000_000:,.1f} GB"


def told(program: str, tally: ImportSummary, *, done: bool) -> list[str]:
    """One source: what is new, what is there already, what is left out and why."""
    count = tally.count
    unchanged = f", {tally.items_unchanged:,} of them unchanged" if tally.items_unchanged else ""
    added = "were added" if done else "would be added"
    deleted = f", {count('deleted'):,} deleted here" if count("deleted") else ""
    lines = [
        f"{program}: {tally.items:,} files{unchanged}; {size(tally.bytes)} to read" if not done else
        f"{program}: {tally.items:,} files{unchanged}; {size(tally.bytes)} read",
        f"  sessions: {count('new'):,} new, {count('grown'):,} grown, {count('unchanged'):,} unchanged{deleted}",
        f"  messages: {tally.messages:,} {added}; {tally.messages_known:,} are here already",
    ]  # fmt: skip
    if tally.aside:
        kinds = [f"{number:,} {terminal_line(kind)}" for kind, number in tally.aside.most_common(_SHOWN_KINDS)]
        more = f", and {len(tally.aside) - _SHOWN_KINDS} other kinds" if len(tally.aside) > _SHOWN_KINDS else ""
        lines.append(dim(f"  without messages, left out: {', '.join(kinds)}{more}"))
    lines += _exceptions(tally)
    return lines


def _exceptions(tally: ImportSummary) -> list[str]:
    lines = []
    if tally.count("deleted"):
        lines.append("  what was deleted here stays deleted; --again would bring it back")
    lines += [f"  {terminal_line(name)}: {text}" for name, text in list(tally.conflicts.items())[:_SHOWN_PROBLEMS]]
    lines += [
        f"  {terminal_line(name)} is called {terminal_line(title)!r} here, because its title {_why(title)}"
        for name, title in list(tally.renamed.items())[:_SHOWN_PROBLEMS]
    ]
    if tally.detached:
        lines.append(f"  {len(tally.detached):,} sessions stand alone, because the one they came from is not here")
    if tally.problem_count:
        lines.append(f"  {tally.problem_count:,} could not be read and were skipped:")
        for problem in tally.problems[:_SHOWN_PROBLEMS]:
            place = f"{problem.file}:{problem.line}" if problem.line else str(problem.file)
            lines.append(f"    {terminal_line(place)}: {terminal_line(problem.text)}")
        if tally.problem_count > _SHOWN_PROBLEMS:
            lines.append(f"    and {tally.problem_count - _SHOWN_PROBLEMS:,} more; --json shows them")
    return lines


def in_one_line(tallies: Sequence[ImportSummary]) -> str:
    """What one round of following added."""
    return ", ".join(f"{tally.source}: {tally.messages:,} messages" for tally in tallies if tally.messages)


def _why(title: str) -> str:
    return "held a credential" if "[redacted:" in title else "was taken or not tidy"
