"""The arguments of a hook command: which host, which event, which home."""

from memoranda.integrations.hooks.events import HOSTS, PLUGIN_HOSTS, TOOL_CALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# A host waits for its hooks; an answer that takes longer than this is not worth the wait.
TIMEOUT = 2.0
# Plugins call the program within a turn in which the host waits for a model anyway.
PLUGIN_TIMEOUT = 4.0
# A model that called a tool waits for the answer.
TOOL_TIMEOUT = 20.0
CAPTURE = "capture"
HELPER = "helper"
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

    @property
    def timeout(self) -> float:
        """How many seconds the host waits."""
        if self.event == TOOL_CALL:
            return TOOL_TIMEOUT
        return PLUGIN_TIMEOUT if self.host in PLUGIN_HOSTS else TIMEOUT


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
