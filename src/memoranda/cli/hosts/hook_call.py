"""One call of a hook: reads the payload, answers within the time a host waits, and never fails the host.

The host waits while this module runs, so it loads only what the event needs: no command-line library, no logging and no
store before they are used. `memoranda.__main__` calls `run_installed_hook` before anything else is loaded.
"""

import gc
import os
import sys
import threading
import time

from memoranda.adapters.hosts.hooks import ANSWERED_EVENTS, CAPTURE_EVENTS, HOSTS, HookPayload, read_payload
from memoranda.adapters.hosts.plugin_hosts import PLUGIN_HOSTS, TOOL_CALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from memoranda.support.home import Home

# A host waits for its hooks; an answer that takes longer than this is not worth the wait.
TIMEOUT = 2.0
# Plugins call the program within a turn in which the host waits for a model anyway.
PLUGIN_TIMEOUT = 4.0
# A model that called a tool waits for the answer.
TOOL_TIMEOUT = 20.0
CAPTURE = "capture"
_VALUE_OPTIONS = frozenset({"--home", "--profile", "--session", "--transcript", "--user"})


class HookOptions:
    """The arguments of the command: the host, its event, and the options."""

    __slots__ = ("event", "home", "host", "profile", "session", "transcript", "user", "wait")

    def __init__(self, host: str, event: str, *, wait: bool = False, transcript: str = "") -> None:
        self.host = host
        self.event = event
        self.wait = wait
        self.transcript = transcript
        self.session = ""
        self.home: str | None = None
        self.profile: str | None = None
        self.user: str | None = None


def parse_arguments(arguments: "Iterable[str]") -> HookOptions | None:
    """Parses `HOST EVENT [options]` as an installed hook has them; None for anything else, which click parses."""
    rest = iter(arguments)
    host, event = next(rest, ""), next(rest, "")
    if host not in HOSTS or not event or event.startswith("-"):
        return None
    options = HookOptions(host, event)
    for argument in rest:
        name, separator, value = argument.partition("=")
        if argument == "--wait":
            options.wait = True
        elif name in _VALUE_OPTIONS:
            value = value if separator else next(rest, "")
            if not value:
                return None
            setattr(options, name[2:], value)
        else:
            return None
    return options


def run_installed_hook(arguments: "Iterable[str]") -> None:
    """Runs an installed hook and ends the process; returns when the arguments are not those of one."""
    options = parse_arguments(arguments)
    if options is None:
        return
    if options.event != CAPTURE:
        # The process lives too briefly for garbage to matter, and loading modules makes none.
        gc.disable()
    run(options)
    # All files are closed by now; an orderly shutdown of the interpreter would only cost time.
    os._exit(0)


def run(options: HookOptions) -> None:
    """Answers on standard output within the timeout, or logs that the answer was late."""
    call = HookCall(options)
    answers: list[str] = []
    worker = threading.Thread(target=lambda: answers.append(call.answer()), name="memoranda-hook", daemon=True)
    worker.start()
    timeout = PLUGIN_TIMEOUT if options.host in PLUGIN_HOSTS else TIMEOUT
    timeout = TOOL_TIMEOUT if options.event == TOOL_CALL else timeout
    worker.join(None if options.wait or options.event == CAPTURE else timeout)
    late = worker.is_alive() and not answers
    try:
        if answers and answers[0]:
            # Bytes, because the terminal's encoding is not that of the host.
            stream = getattr(sys.stdout, "buffer", None)
            if stream is None:
                sys.stdout.write(f"{answers[0]}\n")
            else:
                stream.write(answers[0].encode("utf-8", "replace") + b"\n")
        sys.stdout.flush()
    except OSError:
        # The host closed its end. Exiting at once keeps Python from reporting that while it shuts down.
        os._exit(0)
    if late:
        call.log_late(timeout)
        # The thread only reads, and the next update of the index continues where this one stopped.
        os._exit(0)


class HookCall:
    """One call of the command."""

    def __init__(self, options: HookOptions) -> None:
        self._options = options
        self._started_at = time.time()
        self._payload = HookPayload(options.event)

    def answer(self) -> str:
        """Returns the text for standard output; "" for none, and also when something failed."""
        options = self._options
        if options.host not in HOSTS:
            return ""
        try:
            if options.event == CAPTURE:
                from pathlib import Path  # noqa: PLC0415

                self._capture(Path(options.transcript))
                return ""
            stream = sys.stdin
            payload = read_payload(b"" if stream.isatty() else stream.buffer.read(), options.event, options.host)
            self._payload = payload
            if payload.event == TOOL_CALL:
                return self._call_tool(payload)
            if payload.event in CAPTURE_EVENTS and payload.transcript:
                self._start_capture(payload.transcript)
            return self._answer_event(payload) if payload.event in ANSWERED_EVENTS else ""
        except Exception as error:
            # No error here may stop the host.
            self._log_failure(error)
            return ""

    def log_late(self, timeout: float) -> None:
        """Logs that the host got no answer in time, and the call itself, which the worker may not have logged yet."""
        reason = f"no answer within {timeout:g} seconds"
        self._log_error(f"{reason}; the host continued without one")
        self._log_outcome("late", reason)

    def _answer_event(self, payload: HookPayload) -> str:
        from memoranda.adapters.hosts.hook_log import HookLog  # noqa: PLC0415
        from memoranda.adapters.hosts.hooks import answer_event  # noqa: PLC0415
        from memoranda.cli.hosts.hook_error_log import log_to_home  # noqa: PLC0415

        home = self._locate_home()
        log = HookLog(home.root, self._started_at)
        with log_to_home(home.root):
            log.begin(self._options.host, payload.event, payload.session_id, payload.prompt)
            answer = answer_event(home, self._options.user, payload, self._options.host)
            log.end(answer.outcome, answer.reason, answer.details)
        return answer.text

    def _call_tool(self, payload: HookPayload) -> str:
        from memoranda.adapters.hosts.hooks import call_tool  # noqa: PLC0415
        from memoranda.cli.hosts.hook_error_log import log_to_home  # noqa: PLC0415

        home = self._locate_home()
        with log_to_home(home.root):
            return call_tool(home, self._options.user, payload, self._options.host)

    def _start_capture(self, transcript: str) -> None:
        """Imports the transcript in a separate process, so that the host need not wait; with --wait, in this one."""
        path = os.path.abspath(os.path.expanduser(transcript))
        if self._options.wait:
            from pathlib import Path  # noqa: PLC0415

            self._capture(Path(path))
        elif os.path.isfile(path):
            session = ["--session", self._payload.session_id] if self._payload.session_id else []
            start_detached([self._options.host, CAPTURE, "--transcript", path, *session, *self._home_options()])

    def _capture(self, transcript: "Path") -> None:
        from memoranda.adapters.hosts.session_capture import capture_transcript  # noqa: PLC0415
        from memoranda.app import open_memory  # noqa: PLC0415
        from memoranda.cli.hosts.hook_error_log import log_to_home  # noqa: PLC0415

        options = self._options
        if options.host in PLUGIN_HOSTS:
            from memoranda.adapters.hosts.turn_spool import record_turns  # noqa: PLC0415

            home = self._locate_home()
            with log_to_home(home.root):
                record_turns(home, options.host, options.user)
            return
        with (
            log_to_home(self._locate_home().root),
            open_memory(options.home, profile=options.profile, user=options.user) as memory,
        ):
            session = options.session or self._payload.session_id
            summary = capture_transcript(memory, transcript, options.host, session)
        if summary is not None and summary.problem_count:
            first = summary.problems[0].text
            self._log_error(f"{summary.problem_count} lines of {transcript} could not be read; the first: {first}")

    def _locate_home(self) -> "Home":
        from memoranda.config.environment import locate_home  # noqa: PLC0415

        home = locate_home(self._options.home, self._options.profile)
        home.refuse_if_foreign()
        return home

    def _home_options(self) -> list[str]:
        values = {"--home": self._options.home, "--profile": self._options.profile, "--user": self._options.user}
        return [word for name, value in values.items() if value is not None for word in (name, value)]

    def _log_failure(self, error: Exception) -> None:
        from memoranda.safety.redaction import Redactor  # noqa: PLC0415

        self._log_error("a hook failed", error)
        self._log_outcome("error", Redactor().text(f"{type(error).__name__}: {error}")[0][:500])

    def _log_outcome(self, outcome: str, reason: str) -> None:
        """Adds a result to the list of `memoranda hook status`, which contains the answered events only."""
        from memoranda.adapters.hosts.hook_log import HookLog  # noqa: PLC0415
        from memoranda.errors import MemorandaError  # noqa: PLC0415

        payload = self._payload
        if payload.event not in ANSWERED_EVENTS:
            return
        try:
            log = HookLog(self._locate_home().root, self._started_at)
        except (MemorandaError, OSError):
            return
        log.begin(self._options.host, payload.event, payload.session_id, payload.prompt)
        log.end(outcome, reason)

    def _log_error(self, text: str, error: Exception | None = None) -> None:
        """Writes to logs/hooks.log; does nothing without a usable home."""
        from memoranda.cli.hosts.hook_error_log import log_error  # noqa: PLC0415
        from memoranda.errors import MemorandaError  # noqa: PLC0415

        try:
            root = self._locate_home().root
        except (MemorandaError, OSError):
            return
        log_error(root, f"{self._options.host} {self._options.event}: {text}", error)


def start_detached(arguments: list[str]) -> None:
    """Starts this command again in a process that the host neither waits for nor ends."""
    command = [sys.executable, "-P", "-m", "memoranda", "hook", *arguments]
    import subprocess  # noqa: PLC0415

    options: dict[str, object] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    subprocess.Popen(  # type: ignore[call-overload]
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
