"""`memoranda hook`: the command that a host runs at its events. It answers quickly or not at all, and never fails."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from memoranda.adapters.hosts.hooks import (
    ANSWERED_EVENTS,
    CAPTURE_EVENTS,
    HOSTS,
    HookPayload,
    answer_event,
    capture_transcript,
    read_payload,
)
from memoranda.cli.context import Invocation, memory_options

_EPILOG = """\b
Examples:
  memoranda hook claude-code SessionStart < payload.json

\b
'memoranda install claude-code' writes this command into the host's settings. To see what a prompt would get:
  echo '{"prompt": "How did we fix the build?"}' | memoranda hook claude-code UserPromptSubmit
"""
# A host waits for its hooks; an answer that takes longer than this is not worth the wait.
_TIMEOUT = 2.0
_CAPTURE = "capture"
_log = logging.getLogger(__name__)


class _NeverFailing(click.Command):
    """A command that exits silently with code 0 on wrong options: any other code would stop the host."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError:
            raise click.exceptions.Exit(0) from None


@click.command(
    cls=_NeverFailing, epilog=_EPILOG, context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
@click.argument("host", default="")
@click.argument("event", default="")
@click.option("--wait", is_flag=True, help="Import the transcript before exiting, however long it takes.")
@click.option("--transcript", default="", hidden=True)
@memory_options
def command(host: str, event: str, wait: bool, transcript: str) -> None:
    """Answer an EVENT of HOST (claude-code or codex); the host sends its payload on standard input.

    SessionStart gives what is remembered. UserPromptSubmit gives earlier conversations that are relevant to the prompt,
    if there are any. Stop, SubagentStop, PreCompact and SessionEnd record the session. The exit code is always 0,
    because any other code would stop the host; errors are in logs/hooks.log in the home.
    """
    invocation = Invocation.current()
    answers: list[str] = []
    call = _HookCall(invocation, host, event, wait, transcript)
    worker = threading.Thread(target=lambda: answers.append(call.answer()), name="memoranda-hook", daemon=True)
    worker.start()
    worker.join(None if wait or event == _CAPTURE else _TIMEOUT)
    try:
        if answers and answers[0]:
            click.echo(answers[0])
        sys.stdout.flush()
    except OSError:
        # The host closed its end. Exiting at once keeps Python from reporting that while it shuts down.
        os._exit(0)
    if worker.is_alive():
        # The thread only reads, and an index update that is stopped continues with the next one.
        os._exit(0)


class _HookCall:
    """One call of the command."""

    def __init__(self, invocation: Invocation, host: str, event: str, wait: bool, transcript: str) -> None:
        self._invocation = invocation
        self._host = host
        self._event = event
        self._wait = wait
        self._transcript = transcript

    def answer(self) -> str:
        """Returns the text for standard output; "" for none, and also when something failed."""
        with self._log_to_home():
            try:
                return self._answer()
            except Exception:
                # Whatever fails here must not stop the host.
                self._log_error("a hook failed", traceback=True)
                return ""

    def _answer(self) -> str:
        if self._host not in HOSTS:
            return ""
        if self._event == _CAPTURE:
            self._capture(Path(self._transcript))
            return ""
        payload = read_payload(b"" if sys.stdin.isatty() else sys.stdin.buffer.read(), self._event)
        if payload.event in CAPTURE_EVENTS and payload.transcript is not None:
            self._start_capture(payload.transcript)
        return self._answer_event(payload) if payload.event in ANSWERED_EVENTS else ""

    def _answer_event(self, payload: HookPayload) -> str:
        from memoranda.app import open_memory  # noqa: PLC0415

        options = self._invocation
        with open_memory(options.home, profile=options.profile, user=options.user) as memory:
            return answer_event(memory, payload, self._host)

    def _start_capture(self, transcript: Path) -> None:
        """Imports the transcript in a process of its own, so that the host need not wait; with --wait, here."""
        if self._wait:
            self._capture(transcript)
        elif transcript.is_file():
            arguments = [self._host, _CAPTURE, "--transcript", str(transcript.absolute())]
            _start_detached([*arguments, *self._home_options()])

    def _capture(self, transcript: Path) -> None:
        from memoranda.app import open_memory  # noqa: PLC0415

        options = self._invocation
        with open_memory(options.home, profile=options.profile, user=options.user) as memory:
            summary = capture_transcript(memory, transcript, self._host)
        if summary is not None and summary.problem_count:
            first = summary.problems[0].text
            self._log_error(f"{summary.problem_count} lines of {transcript} could not be read, the first: {first}")

    def _home_options(self) -> list[str]:
        options = self._invocation
        values = {"--home": options.home, "--profile": options.profile, "--user": options.user}
        return [word for name, value in values.items() if value is not None for word in (name, value)]

    def _log_error(self, text: str, *, traceback: bool = False) -> None:
        _log.error("%s %s: %s", self._host, self._event, text, exc_info=traceback)

    @contextmanager
    def _log_to_home(self) -> Iterator[None]:
        """Sends the log to a file in the home instead of the host's screen; drops it when there is no home."""
        from memoranda.cli.log_file import log_to_file  # noqa: PLC0415
        from memoranda.errors import MemorandaError  # noqa: PLC0415

        try:
            home = self._invocation.locate_home()
            home.refuse_if_foreign()
            root: Path | None = home.root
        except (MemorandaError, OSError):
            root = None
        with log_to_file((root or Path()) / "logs" / "hooks.log") as handler:
            handler.addFilter(lambda record: root is not None and root.is_dir())
            yield


def _start_detached(arguments: list[str]) -> None:
    """Starts this command again in a process that the host neither waits for nor ends."""
    options: dict[str, object] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, "-P", "-m", "memoranda", "hook", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options,
    )  # fmt: skip
