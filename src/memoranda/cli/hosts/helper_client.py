"""Asks a running helper for an answer. Whatever goes wrong, the hook does the work itself."""

import os
import time

from memoranda.cli.hosts import helper_protocol
from memoranda.home.config.environment import choose_home, helper_is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memoranda.cli.hosts.hook_options import HookOptions

# Long enough for a helper on a busy machine, and short enough to do the work after it within the timeout of a hook.
_TIMEOUT = 1.2
_MAX_PAYLOAD_BYTES = 1024 * 1024
_DEFAULT_PROFILE = "default"


class HelperReply:
    """The text for the host, None when the hook must find it itself; and whether a helper is there."""

    __slots__ = ("is_running", "text")

    def __init__(self, text: bytes | None, is_running: bool) -> None:
        self.text = text
        self.is_running = is_running


def ask_helper(options: "HookOptions", payload: bytes, started_at: float) -> HelperReply:
    """Sends one event to the helper of the home, if there is one."""
    if not helper_protocol.IS_SUPPORTED or helper_is_off() or len(payload) > _MAX_PAYLOAD_BYTES:
        return HelperReply(None, False)
    root = _root_of_home(options)
    identity = helper_protocol.identity_of(root)
    from _socket import AF_UNIX, SOCK_STREAM, socket  # noqa: PLC0415

    deadline = time.monotonic() + _TIMEOUT
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(_TIMEOUT)
    try:
        connection.connect(helper_protocol.socket_address(root, helper_protocol.name_of(identity)))
    except OSError:
        return HelperReply(None, False)
    try:
        if not helper_protocol.peer_is_same_user(connection):
            return HelperReply(None, True)
        helper_protocol.send(connection, [identity, *_request(options, payload, started_at)])
        reply = helper_protocol.receive(connection, deadline)
    except OSError:
        return HelperReply(None, True)
    if reply is None or len(reply) != 3 or reply[0] != identity:
        return HelperReply(None, True)
    return HelperReply(reply[2] if reply[1] == helper_protocol.ANSWER else None, reply[1] != helper_protocol.LEAVING)


def _root_of_home(options: "HookOptions") -> str:
    """The path of the home as a `Home` has it. What is wrong with it is found when there is no helper for it."""
    base, profile = choose_home(options.home, options.profile)
    root = os.path.realpath(os.path.expanduser(base))
    return root if profile in (None, _DEFAULT_PROFILE) else os.path.join(root, "profiles", profile)


def _request(options: "HookOptions", payload: bytes, started_at: float) -> list[bytes]:
    numbers = (repr(started_at), str(os.getpid()), repr(time.process_time()))
    words = (options.host, options.event, options.user or "", *numbers)
    return [*(word.encode("utf-8", "surrogateescape") for word in words), payload]
