"""`memoranda forget`: list every place that has something, ask, remove it everywhere, and prove it."""

import sys
from dataclasses import replace
from typing import Any

import click

from memoranda.api.forget import forget
from memoranda.api.memory import Memory
from memoranda.cli.completion import complete_session
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.filter_options import all_users_option
from memoranda.cli.open_home import open_home, sessions_of_everyone
from memoranda.cli.provider.output import stdout_to_stderr
from memoranda.cli.sessions.lookup import find_session
from memoranda.cli.terminal_text import count_of, terminal_line
from memoranda.errors import SessionError
from memoranda.memory.curated.memory_file import digest_prefix
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.forgetting.report import ForgetPlace, ForgetReport, ForgetSubject
from memoranda.upkeep.forgetting.scope import known_users

_MAX_PLACES_SHOWN = 40
_EPILOG = """\b
Examples:
  memoranda forget "the old address" --dry-run
  memoranda forget --session "Plum cake"
  memoranda forget --entry entry:1a2b3c4d
  memoranda forget --user ana
  echo "a text that must not be in the shell's history" | memoranda forget -
"""
_VERBS = {"redact": "replace with a mark", "remove": "remove", "keep": "stays"}


@click.command(epilog=_EPILOG)
@click.argument("what", nargs=-1)
@click.option("--text", help="A text, in any case, spacing and Unicode form.")
@click.option("--session", shell_complete=complete_session, help="A conversation: its id, or its title.")
@click.option("--entry", help="An entry of curated memory: its handle, or a part that no other entry has.")
@click.option("--whole-words", is_flag=True, help="Do not match a part of a longer word.")
@click.option("--many", is_flag=True, help="With --yes: accept a text that is very short or in very many places.")
@click.option("--dry-run", is_flag=True, help="Only list the places.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@all_users_option
@memory_options
def command(invocation: Invocation, what: tuple[str, ...], **options: Any) -> None:
    """Forget a text, a conversation, an entry or a user: find every place, ask, remove it, and prove it.

    WHAT is a text, the id of a conversation or the handle of an entry; '-' reads a text from standard input. If it
    could also be a title or a user, an option must say what is meant. --user alone means everything of that user; with
    another option, it is whose data is searched. Every file of the home is read byte by byte afterwards, and what is
    left is listed. Nothing can restore what was forgotten.
    """
    named = {name: options.pop(name) for name in ("text", "session", "entry")}
    if bool(what) + sum(value is not None for value in named.values()) > 1:
        invocation.fail("Name what to forget once: as an argument, or with --text, --session or --entry.")
    whole_words = options.pop("whole_words")
    chosen = _Options(**options)
    with open_home(invocation, create=True) as memory:
        try:
            if what:
                subject = _classify(invocation, memory, what)
            elif any(value is not None for value in named.values()):
                subject = ForgetSubject(**named)
            else:
                subject = _user_to_forget(invocation, memory, chosen.all_users)
            subject = _with_session_id(invocation, memory, replace(subject, whole_words=whole_words), chosen)
            _confirm_and_forget(invocation, memory, subject, chosen)
        except SessionError as error:
            invocation.fail(terminal_line(str(error)))


@dataclass(frozen=True, slots=True)
class _Options:
    dry_run: bool
    yes: bool
    many: bool
    all_users: bool


def _classify(invocation: Invocation, memory: Memory, what: tuple[str, ...]) -> ForgetSubject:
    """What an argument means; ends the command where it can mean several things."""
    if what == ("-",):
        return ForgetSubject(text=sys.stdin.read().strip("\n"))
    name = " ".join(what)
    if digest_prefix(name):
        return ForgetSubject(entry=name)
    has_record = memory.services.has_record
    if has_record and memory.sessions.get_session(name):
        return ForgetSubject(session=name)
    if has_record and memory.sessions.deleted_sessions([name]):
        return ForgetSubject(session=name)
    meanings = []
    if has_record and memory.sessions.list_titled(name)[0]:
        meanings.append("--session, for the conversation with this title")
    if memory.user is None and name in known_users(memory.home):
        meanings.append("--user, for everything of this user")
    if meanings:
        invocation.fail(f"{name!r} can mean more than a text. Say which: --text, or {', or '.join(meanings)}.")
    return ForgetSubject(text=name)


def _with_session_id(
    invocation: Invocation, memory: Memory, subject: ForgetSubject, options: _Options
) -> ForgetSubject:
    """The subject with the id of its session; one that an interrupted run has deleted is found by its id."""
    if subject.session is None:
        return subject
    if not memory.services.has_record:
        invocation.fail("This home has no sessions.")
    db = sessions_of_everyone(invocation, memory) if options.all_users else memory.sessions
    if db.deleted_sessions([subject.session]):
        return subject
    return replace(subject, session=find_session(invocation, db, subject.session, exactly=options.yes))


def _user_to_forget(invocation: Invocation, memory: Memory, all_users: bool) -> ForgetSubject:
    if invocation.user is None or all_users:
        invocation.fail("Say what to forget: a text, or --session, --entry or --user. See 'memoranda forget --help'.")
    if invocation.user not in known_users(memory.home):
        invocation.fail(f"This home has nothing of user {invocation.user!r}.")
    return ForgetSubject(user=invocation.user)


def _confirm_and_forget(invocation: Invocation, memory: Memory, subject: ForgetSubject, options: _Options) -> None:
    def run(dry_run: bool) -> ForgetReport:
        with stdout_to_stderr():
            return forget(memory.services, memory.user, subject, dry_run=dry_run, all_users=options.all_users)

    found = run(dry_run=True)
    if found.warning and options.yes and not options.many and not options.dry_run:
        invocation.fail(f"{found.warning} Nothing was changed; --many accepts that.", found.as_data())
    question = f"{found.warning} Forget {subject} nevertheless?" if found.warning else f"Forget {subject} for good?"
    planned = PlannedChange(
        _describe_found(found),
        found.as_data(),
        terminal_line(question),
        "Nothing was changed: --yes forgets it.",
        default=False,
    )
    confirm_and_run(
        invocation, planned, lambda: _respond(invocation, run(dry_run=False)), dry_run=options.dry_run, yes=options.yes
    )


def _respond(invocation: Invocation, report: ForgetReport) -> None:
    places = [place for place in report.found if place.action != "keep"]
    lines = [f"Forgotten in {count_of(len(places), 'place')}." if places else "It was found nowhere in the stores."]
    lines += [f"At {line}." for line in report.at_services]
    lines += [f"Could not be changed: {line}" for line in report.problems]
    if report.left:
        lines += ["Left:", *map(_describe_place, report.left)]
    else:
        read = f"{count_of(report.files_read, 'file')} ({report.bytes_read / 1e6:,.1f} MB)"
        lines.append(f"Read {read} byte by byte: nothing is left.")
    lines += [_describe_place(place).strip() for place in report.found if place.area == "outside"]
    lines += report.notes
    data = {"success": report.complete} | report.as_data()
    invocation.respond("\n".join(lines), data)
    if not report.complete:
        sys.exit(EXIT_REFUSED)


def _describe_found(report: ForgetReport) -> str:
    if not report.found:
        return "It was found nowhere in the stores. Forgetting still asks external memories and reads every byte."
    shown = report.found[:_MAX_PLACES_SHOWN]
    lines = [f"Found {count_of(report.count, 'time')} in {count_of(len(report.found), 'place')}:"]
    lines += map(_describe_place, shown)
    if len(report.found) > len(shown):
        lines.append(f"  … and {len(report.found) - len(shown):,} more (--json lists all)")
    lines += [report.warning] if report.warning else []
    return "\n".join([*lines, *report.notes])


def _describe_place(place: ForgetPlace) -> str:
    note = f" ({place.note})" if place.note else ""
    return (
        f"  {place.area}: {terminal_line(place.where)}, {count_of(place.count, 'time')}: {_VERBS[place.action]}{note}"
    )
