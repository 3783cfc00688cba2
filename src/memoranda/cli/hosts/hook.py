"""`memoranda hook`: what a host calls at its events. It answers soon or not at all, and it never fails the host."""

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

from memoranda.adapters.hosts.hooks.events import ANSWERED, CAPTURES
from memoranda.adapters.hosts.hooks.payload import Payload, read_payload
from memoranda.cli.context import Invocation, memory_options

_EPILOG = """\b
Examples:
  memoranda hook claude-code SessionStart < payload.json

\b
Written into the host's settings by 'memoranda install claude-code'. To see what it would be given:
  echo '{"prompt": "How did we fix the build?"}' | memoranda hook claude-code UserPromptSubmit
"""
# A host waits for its hooks; an answer that comes later than this is not worth waiting for.
_DEADLINE = 2.0
_TRANSCRIPT = "capture"
_HOSTS = ("claude-code",)
_log = logging.getLogger(__name__)


class _NeverFailing(click.Command):
    """A command whose wrong options end it in silence: any exit code but 0 would stop the host."""

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
@click.option("--wait", is_flag=True, help="Take a transcript in before this ends, however long it takes.")
@click.option("--transcript", default="", hidden=True)
@memory_options
def command(host: str, event: str, wait: bool, transcript: str) -> None:
    """Answer an EVENT of HOST (claude-code) whose payload is on standard input.

    SessionStart gives what is remembered, UserPromptSubmit what was said earlier if it bears on the prompt; Stop,
    PreCompact and SessionEnd record the session. Whatever goes wrong, it ends with exit code 0, because other codes
    stop the host; logs/hooks.log in the home says what it was.
    """
    invocation = Invocation.current()
    answers: list[str] = []
    called = _Call(invocation, host, event, wait, transcript)
    worker = threading.Thread(target=lambda: answers.append(called.answer()), name="memoranda-hook", daemon=True)
    worker.start()
    worker.join(None if wait or event == _TRANSCRIPT else _DEADLINE)
    try:
        if answers and answers[0]:
            click.echo(answers[0])
        sys.stdout.flush()
    except OSError:
        # Nobody reads it any more. Leaving at once keeps Python from complaining about that at its end.
        os._exit(0)
    if worker.is_alive():
        # Nothing that it does needs to be finished: it only reads, and an index goes on where it was.
        os._exit(0)


class _Call:
    """One call of a hook."""

    def __init__(self, invocation: Invocation, host: str, event: str, wait: bool, transcript: str) -> None:
        self._invocation = invocation
        self._host = host
        self._event = event
        self._wait = wait
        self._transcript = transcript

    def answer(self) -> str:
        """What goes to standard output; "" for nothing, also when something went wrong."""
        with self._logging():
            try:
                return self._answer()
            except Exception:
                # The host must go on, whatever happens here.
                self._note("a hook failed", error=True)
                return ""

    def _answer(self) -> str:
        if self._host not in _HOSTS:
            return ""
        if self._event == _TRANSCRIPT:
            self._capture(Path(self._transcript))
            return ""
        payload = read_payload(b"" if sys.stdin.isatty() else sys.stdin.buffer.read(), self._event)
        if payload.event in CAPTURES and payload.transcript is not None:
            self._capture_later(payload)
        return self._asked(payload) if payload.event in ANSWERED else ""

    def _asked(self, payload: Payload) -> str:
        from memoranda.adapters.hosts.hooks.answering import answer  # noqa: PLC0415
        from memoranda.app import open_memory  # noqa: PLC0415

        given = self._invocation
        with open_memory(given.home, profile=given.profile, user=given.user) as memory:
            return answer(memory, payload, self._host)

    def _capture_later(self, payload: Payload) -> None:
        """Let a process of its own take the transcript in, unless we may wait for it."""
        transcript = payload.transcript
        assert transcript is not None
        if self._wait:
            self._capture(transcript)
        elif transcript.is_file():
            _start([self._host, _TRANSCRIPT, "--transcript", str(transcript.absolute()), *self._options()])

    def _capture(self, transcript: Path) -> None:
        from memoranda.adapters.hosts.hooks.capture import capture  # noqa: PLC0415
        from memoranda.app import open_memory  # noqa: PLC0415

        given = self._invocation
        with open_memory(given.home, profile=given.profile, user=given.user) as memory:
            tally = capture(memory, transcript)
            if tally is not None and tally.problem_count:
                self._note(f"{tally.problem_count} lines of {transcript} could not be read, the first: "
                           f"{tally.problems[0].text}")  # fmt: skip

    def _options(self) -> list[str]:
        given = self._invocation
        named = {"--home": given.home, "--profile": given.profile, "--user": given.user}
        return [word for name, value in named.items() if value is not None for word in (name, value)]

    def _note(self, text: str, *, error: bool = False) -> None:
        _log.error("%s %s: %s", self._host, self._event, text, exc_info=error)

    @contextmanager
    def _logging(self) -> Iterator[None]:
        """Keep the log off the host's screen; where there is no home to say it in, there is nobody to read it."""
        from memoranda.cli.log_file import log_to_file  # noqa: PLC0415
        from memoranda.errors import MemorandaError  # noqa: PLC0415

        try:
            place = self._invocation.locate_home()
            place.refuse_if_foreign()
            root: Path | None = place.root
        except (MemorandaError, OSError):
            root = None
        with log_to_file((root or Path()) / "logs" / "hooks.log") as handler:
            handler.addFilter(lambda record: root is not None and root.is_dir())
            yield


def _start(arguments: list[str]) -> None:
    """Start ourselves once more, apart from the host: it neither waits for that process nor ends it."""
    options: dict[str, object] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, "-P", "-m", "memoranda", "hook", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options,
    )  # fmt: skip
