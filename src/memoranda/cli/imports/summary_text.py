"""Formats what an import would do or has done as text."""

import re
from collections.abc import Mapping, Sequence

from memoranda.cli.terminal_text import dim, terminal_line
from memoranda.importers.summary import UNKNOWN_KIND, ImportSummary, unknown_kinds

_MAX_PROBLEMS = 10
_MAX_KINDS = 6
_COUNTED_NOUN = re.compile(r"\b(?:message|node|bubble|part|blob|line)\b")


def format_size(number: int) -> str:
    if number < 1000:
        return f"{number} bytes"
    for unit in ("kB", "MB"):
        amount = number / 1000 if unit == "kB" else number / 1_000_000
        if amount < 1000:
            return f"{amount:,.1f} {unit}"
    return f"{number / 1_000_000_000:,.1f} GB"


def summary_lines(program: str, summary: ImportSummary, *, done: bool) -> list[str]:
    """Describe one source: what is new, what the record already has, what is skipped and why."""
    count = summary.count
    unchanged = f", {summary.items_unchanged:,} of them unchanged" if summary.items_unchanged else ""
    deleted = f", {count('deleted'):,} deleted here" if count("deleted") else ""
    read, added = ("read", "were added") if done else ("to read", "would be added")
    files = f"{summary.items:,} file{'' if summary.items == 1 else 's'}"
    lines = [
        f"{program}: {files}{unchanged}; {format_size(summary.bytes)} {read}",
        f"  sessions: {count('new'):,} new, {count('grown'):,} grown, {count('unchanged'):,} unchanged{deleted}",
        f"  messages: {summary.messages:,} {added}; {summary.messages_known:,} are here already",
    ]
    if summary.kept_items or summary.kept_items_known:
        lines.append(f"  items: {summary.kept_items:,} {added}; {summary.kept_items_known:,} are here already")
    if summary.states or summary.states_known:
        lines.append(f"  states of threads: {summary.states:,} {added}; {summary.states_known:,} are here already")
    lines += [*_note_lines(summary, done=done), *_proposal_lines(summary, done=done)]
    if summary.skipped:
        lines.append(dim(f"  skipped: {_skipped_for_people(summary.skipped)}"))
    if unknown := unknown_kinds(summary.skipped):
        kinds = ", ".join(f"{terminal_line(kind)} ({number:,})" for kind, number in [*unknown.items()][:_MAX_KINDS])
        lines.append(f"  kinds that this version does not know, and does not record: {kinds}")
    lines += _exception_lines(summary)
    return lines


def _note_lines(summary: ImportSummary, *, done: bool) -> list[str]:
    """Describe the sessions whose messages are notes of the program: they are no notes of curated memory."""
    source = f"{summary.source}:notes"
    changed = [name for name, result in summary.sessions.items() if result in ("new", "grown")]
    notes = sum(name.startswith(f"{source}-") for name in changed)
    if not notes:
        return []
    listed = f", and 'memoranda sessions list --source {source}' lists them" if done else ""
    return [f"  notes: {notes:,} of the sessions; search finds them{listed}"]


def _proposal_lines(summary: ImportSummary, *, done: bool) -> list[str]:
    """Describe what is proposed for curated memory, and what stays a note only."""
    if not summary.proposals.total():
        return []
    new, known = summary.proposals["new"], summary.proposals["known"]
    await_approval = "await your approval ('memoranda memory pending')" if done else "would await your approval"
    lines = [f"  proposals for memory: {new:,} {await_approval}; {known:,} known from before"]
    return lines + [
        f"    {terminal_line(origin)}: not proposed, because {terminal_line(reason)}"
        for origin, reason in list(summary.refused_proposals.items())[:_MAX_PROBLEMS]
    ]


def _skipped_for_people(skipped: Mapping[str, int]) -> str:
    """List what is skipped; a program's own names for its bookkeeping mean little to people and are only counted."""
    phrases = {
        kind: number
        for kind, number in skipped.items()
        if " " in kind and "(" not in kind and not kind.startswith(UNKNOWN_KIND)
    }
    rest = sum(skipped.values()) - sum(phrases.values())
    parts = [f"{number:,} {terminal_line(_plural(kind, number))}" for kind, number in [*phrases.items()][:_MAX_KINDS]]
    if rest:
        parts.append(f"{rest:,} record{'' if rest == 1 else 's'} without messages (--json lists the kinds)")
    return ", ".join(parts)


def _plural(phrase: str, number: int) -> str:
    """Return a phrase such as "message without text" in the form that fits a number."""
    if number == 1:
        return phrase
    several = _COUNTED_NOUN.sub(lambda noun: f"{noun[0]}s", phrase, count=1)
    return several.replace(" that was ", " that were ").replace(" that is not a message", " that are not messages")


def _exception_lines(summary: ImportSummary) -> list[str]:
    lines = []
    if summary.count("deleted"):
        lines.append("  sessions that were deleted here stay deleted; --rescan restores them")
    lines += [f"  {terminal_line(name)}: {text}" for name, text in list(summary.conflicts.items())[:_MAX_PROBLEMS]]
    lines += [
        f"  {terminal_line(name)} is called {terminal_line(title)!r} here, because its title {_rename_reason(title)}"
        for name, title in list(summary.renamed.items())[:_MAX_PROBLEMS]
    ]
    if summary.detached:
        lines.append(f"  {len(summary.detached):,} sessions have no parent here, because it was not imported")
    if summary.problem_count:
        lines.append(f"  parts that could not be read and were skipped: {summary.problem_count:,}")
        for problem in summary.problems[:_MAX_PROBLEMS]:
            location = f"{problem.file}:{problem.line}" if problem.line else str(problem.file)
            lines.append(f"    {terminal_line(location)}: {terminal_line(problem.text)}")
        if summary.problem_count > _MAX_PROBLEMS:
            lines.append(f"    and {summary.problem_count - _MAX_PROBLEMS:,} more; --json shows them")
    return lines


def summary_on_one_line(summaries: Sequence[ImportSummary]) -> str:
    """Describe what one pass of following added."""
    return ", ".join(
        f"{each.source}: {each.messages:,} messages" + (f" and {each.kept_items:,} items" if each.kept_items else "")
        for each in summaries
        if each.new
    )


def _rename_reason(title: str) -> str:
    return "contained a credential" if "[redacted:" in title else "was taken or had to be cleaned"
