"""One call of a hook: answers within the time a host waits, and never fails the host.

The host waits while this module runs, so it loads only what the event needs: no command-line library, no logging and no
store before they are used.
"""

import os
import sys
import threading
import time

from memoranda.cli.hooks.process import CAPTURE, HookOptions, write_answer, write_problem
from memoranda.integrations.hooks.answers import HookPayload, read_payload
from memoranda.integrations.hooks.events import (
    ANSWERED_EVENTS,
    CAPTURE_EVENTS,
    HOSTS,
    PLUGIN_HOSTS,
    SESSION_END,
    TOOL_CALL,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from memoranda.integrations.hooks.home_config import HomeConfig
    from memoranda.integrations.hooks.log import HookLog
    from memoranda.support.home import Home


def run(options: HookOptions, call: "HookCall | None" = None, deadline: float | None = None) -> bool:
    """Answers on standard output before the deadline, or logs that the answer was late.

    Returns whether there was an answer. Without one, a thread is still working, and the caller must end the process.
    """
    call = call or HookCall(options)
    deadline = time.monotonic() + options.timeout if deadline is None else deadline
    answers: list[str] = []
    worker = threading.Thread(target=lambda: answers.append(call.answer()), name="memoranda-hook", daemon=True)
    worker.start()
    worker.join(None if options.wait or options.event == CAPTURE else max(0.0, deadline - time.monotonic()))
    answer = answers[0] if answers else None
    write_answer((answer or "").encode("utf-8", "replace"))
    if answer is None:
        call.log_late()
    return answer is not None


class HookCall:
    """One call of the command. `payload` and `started_at` are given when the caller has read standard input already."""

    def __init__(self, options: HookOptions, payload: bytes | None = None, started_at: float | None = None) -> None:
        self._options = options
        self._started_at = time.time() if started_at is None else started_at
        self._raw_payload = payload
        self._payload = HookPayload(options.event)
        self._config: HomeConfig | None = None
        self._log: HookLog | None = None
        self._log_lock = threading.Lock()

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
            payload = self._payload = read_payload(self._read_input(), options.event, options.host)
            if payload.problem:
                problem = f"{payload.problem}; nothing is lost: the next event records the session."
                write_problem(f"memoranda hook {options.host} {options.event}: standard input {problem}")
                self._log_error(f"standard input {problem}")
            if payload.event == TOOL_CALL:
                return self._call_tool(payload)
            if payload.event in CAPTURE_EVENTS and payload.transcript:
                self._start_capture(payload.transcript)
            return self._answer_event(payload) if payload.event in ANSWERED_EVENTS else ""
        except Exception as error:
            # No error here may stop the host.
            self._config = None
            self._log_failure(error)
            return ""

    def log_late(self) -> None:
        """Logs that the host got no answer in time, and the call itself, which the worker may not have logged yet."""
        reason = f"no answer within {self._options.timeout:g} seconds"
        self._log_error(f"{reason}; the host continued without one")
        self._log_outcome("late", reason)

    def start_helper(self) -> None:
        """Starts a helper for the next calls, unless this one failed or the settings forbid it."""
        if self._config is None:
            return
        from memoranda.cli.hooks.helper_files import start_helper  # noqa: PLC0415

        try:
            start_helper(self._config)
        except Exception as error:
            # The host has its answer; without a helper the next call does the work itself.
            self._log_error("no helper could be started", error)

    def _read_input(self) -> bytes:
        if self._raw_payload is None:
            self._raw_payload = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
        return self._raw_payload

    def _answer_event(self, payload: HookPayload) -> str:
        from memoranda.integrations.hooks.home_config import HomeConfig  # noqa: PLC0415

        self._config = config = HomeConfig(self._locate_home())
        return answer_and_log(config, self._options, payload, self._open_log(config.home.root))

    def _open_log(self, root: "Path") -> "HookLog":
        """The one log of this call, for the worker and for the thread that finds it late."""
        from memoranda.integrations.hooks.log import HookLog  # noqa: PLC0415

        with self._log_lock:
            self._log = self._log or HookLog(root, self._started_at)
            return self._log

    def _call_tool(self, payload: HookPayload) -> str:
        from memoranda.cli.log_file import log_to_home  # noqa: PLC0415
        from memoranda.integrations.hooks.answers import call_tool  # noqa: PLC0415

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
            from memoranda.cli.hooks.process import start_detached  # noqa: PLC0415

            session = ["--session", self._payload.session_id] if self._payload.session_id else []
            ended = ["--ended", where] if (where := self._ended_in()) else []
            start_detached([self._options.host, CAPTURE, "--transcript", path, *session, *ended, *self._home_options()])

    def _ended_in(self) -> str:
        """Where the session worked that ends with this event; "" for other events."""
        return (self._payload.directory or os.getcwd()) if self._payload.event == SESSION_END else ""

    def _capture(self, transcript: "Path") -> None:
        from memoranda.api.memory import open_memory  # noqa: PLC0415
        from memoranda.cli.log_file import log_to_home  # noqa: PLC0415
        from memoranda.integrations.hooks.capture import capture_transcript  # noqa: PLC0415

        options = self._options
        if options.host in PLUGIN_HOSTS:
            from memoranda.integrations.hooks.capture import record_turns  # noqa: PLC0415

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
            if (worked_in := options.ended or self._ended_in()) and memory.config.curate.mode != "off":
                from pathlib import Path  # noqa: PLC0415

                from memoranda.api.curate import curate_if_due  # noqa: PLC0415

                curate_if_due(memory.services, memory.curated, options.user, Path(worked_in))
        if summary is not None and summary.problem_count:
            first = summary.problems[0].text
            self._log_error(f"{summary.problem_count} lines of {transcript} could not be read; the first: {first}")

    def _locate_home(self) -> "Home":
        from memoranda.home.config.environment import locate_home  # noqa: PLC0415

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
        from memoranda.errors import MemorandaError  # noqa: PLC0415

        payload = self._payload
        if payload.event not in ANSWERED_EVENTS:
            return
        try:
            log = self._open_log(self._locate_home().root)
        except (MemorandaError, OSError):
            return
        log.begin(self._options.host, payload.event, payload.session_id, payload.prompt, self._options.user)
        log.end(outcome, reason)

    def _log_error(self, text: str, error: Exception | None = None) -> None:
        """Writes to logs/hooks.log; does nothing without a usable home."""
        from memoranda.cli.log_file import log_error  # noqa: PLC0415
        from memoranda.errors import MemorandaError  # noqa: PLC0415

        try:
            root = self._locate_home().root
        except (MemorandaError, OSError):
            return
        log_error(root, f"{self._options.host} {self._options.event}: {text}", error)


def answer_and_log(config: "HomeConfig", options: HookOptions, payload: HookPayload, log: "HookLog") -> str:
    """Finds the answer, and logs the call and its result for `memoranda hook status`. A helper calls this too."""
    from memoranda.cli.log_file import log_to_home  # noqa: PLC0415
    from memoranda.integrations.hooks.answers import answer_event  # noqa: PLC0415

    with log_to_home(config.home.root):
        log.begin(options.host, payload.event, payload.session_id, payload.prompt, options.user)
        answer = answer_event(config, options.user, payload, options.host)
        log.end(answer.outcome, answer.reason, answer.details)
    return answer.text
