"""The process of a hook as its host starts it: arguments, standard input and output, and processes that outlive it."""

import os
import sys
import time

from memoranda.integrations.hooks.events import EVENT_NAMES, HOSTS, PLUGIN_HOSTS, SESSION_START, TOOL_CALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# A host waits for its hooks; an answer that takes longer than this is not worth the wait.
TIMEOUT = 2.0
# A session without its memory is worse than one that begins late; hosts stop a hook after ten seconds.
SESSION_START_TIMEOUT = 9.0
# Plugins call the program within a turn in which the host waits for a model anyway.
PLUGIN_TIMEOUT = 4.0
# A model that called a tool waits for the answer.
TOOL_TIMEOUT = 20.0
CAPTURE = "capture"
HELPER = "helper"
_VALUE_OPTIONS = frozenset({"--ended", "--home", "--profile", "--session", "--transcript", "--user"})


class HookOptions:
    """The arguments of the command: the host, its event, and the options."""

    __slots__ = ("ended", "event", "home", "host", "profile", "session", "transcript", "user", "wait")

    def __init__(self, host: str, event: str, *, wait: bool = False, transcript: str = "") -> None:
        self.host = host
        self.event = event
        self.wait = wait
        self.transcript = transcript
        self.session = ""
        self.ended = ""
        """Where the session worked, if it has ended."""
        self.home: str | None = None
        self.profile: str | None = None
        self.user: str | None = None

    @property
    def timeout(self) -> float:
        """How many seconds the host waits."""
        if self.event == TOOL_CALL:
            return TOOL_TIMEOUT
        if self.host in PLUGIN_HOSTS:
            return PLUGIN_TIMEOUT
        return SESSION_START_TIMEOUT if EVENT_NAMES.get(self.event, self.event) == SESSION_START else TIMEOUT


def parse_arguments(arguments: "Iterable[str]") -> HookOptions | None:
    """Parses `HOST EVENT [options]` as an installed hook has them; None for anything else, which click parses.

    `helper [options]`, with which a hook starts its helper, has HELPER as its event and no host.
    """
    rest = iter(arguments)
    host = next(rest, "")
    host, event = ("", HELPER) if host == HELPER else (host, next(rest, ""))
    if event != HELPER and (host not in HOSTS or not event or event.startswith("-")):
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


_CHUNK = 1 << 16
# A host's payload is far smaller; reading stops here, and whatever is cut off makes it no payload.
_MAX_BYTES = 16 * 1024 * 1024 + 1


def read_input(deadline: float) -> bytes | None:
    """Reads the whole payload; None when the host did not end it in time. A terminal or nothing at all is empty."""
    from select import select  # noqa: PLC0415

    found: list[bytes] = []
    size = 0
    try:
        if os.isatty(0):
            return b""
        while size < _MAX_BYTES:
            if not select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            chunk = os.read(0, _CHUNK)
            if not chunk:
                break
            found.append(chunk)
            size += len(chunk)
    except OSError:
        # The host closed its end, or gave no standard input.
        return b""
    return b"".join(found)


def write_answer(answer: bytes) -> None:
    """Writes an answer and ends the process when the host does not take it."""
    try:
        if answer:
            # Bytes, because the terminal's encoding is not that of the host.
            stream = getattr(sys.stdout, "buffer", None)
            if stream is None:
                sys.stdout.write(answer.decode("utf-8", "replace") + "\n")
            else:
                stream.write(answer + b"\n")
        sys.stdout.flush()
    except OSError:
        # The host closed its end. Exiting at once keeps Python from reporting that while it shuts down.
        os._exit(0)


def write_problem(line: str) -> None:
    """Writes a line for people to standard error, which hosts show when they are debugged."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        # The host closed it, and still wants its answer.
        return


def start_detached(arguments: list[str]) -> None:
    """Starts this command again, in a session of its own and without the host's standard streams."""
    command = [sys.executable, "-P", "-m", "memoranda", "hook", *arguments]
    import subprocess  # noqa: PLC0415

    options: dict[str, object] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    subprocess.Popen(  # type: ignore[call-overload]
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
