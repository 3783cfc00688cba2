"""What a hook and its helper exchange over a Unix socket: who they are, where they meet, and the form of a message.

The hook asks with `ask_helper`; whatever goes wrong, it does the work itself. Every prompt loads this module, so it
needs only modules that start in no time: `_socket` instead of `socket`.
"""

import os
import sys
import time
from binascii import crc32

from memoranda import __file__ as _package_file
from memoranda import __version__
from memoranda.home.config.environment import choose_home, helper_is_off, variables_in_answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Sequence

    from memoranda.cli.hooks.process import HookOptions

ANSWER, FAILED, LEAVING = b"answer", b"failed", b"leaving"
"""The first word of a reply: here is the text; do it yourself; do it yourself, and start another helper."""

IS_SUPPORTED = sys.platform == "linux"
"""Whether a socket can be asked here which user is at its other end."""

DIRECTORY = "run"
_PREFIX = "hooks-"
_FORMAT = "1"
_MAX_SOCKET_PATH = 100
_MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_LENGTH_BYTES = 4


def identity_of(root: str) -> bytes:
    """Everything that must be equal in a hook and its helper, so that both would give the same answers.

    That is the program with its version and its path, the interpreter, the user, the home, and the settings in the
    environment.
    """
    program = (_FORMAT, __version__, os.path.dirname(os.path.abspath(_package_file)), sys.prefix, sys.version)
    words = [*program, str(os.geteuid()), root, *variables_in_answers()]
    return "\0".join(words).encode("utf-8", "surrogateescape")


def name_of(identity: bytes) -> str:
    """The file name of a helper without its suffix. The identity itself is compared when the two have met."""
    return f"{_PREFIX}{crc32(identity):08x}"


def socket_address(root: str, name: str) -> str:
    """The path of a helper's socket in a form that the system accepts; raises OSError when there is no directory.

    A path that is too long for a socket goes through the open directory, which stays open until the process ends.
    """
    path = os.path.join(root, DIRECTORY, f"{name}.sock")
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{directory}/{name}.sock"


def peer_is_same_user(connection: "socket") -> bool:
    """Whether the process at the other end belongs to this user."""
    if sys.platform != "linux":
        return False
    import _socket  # noqa: PLC0415

    # struct ucred: process, user, group.
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid()


def send(connection: "socket", fields: "Sequence[bytes]") -> None:
    """Sends one message; the timeout of the connection applies."""
    body = b"".join(len(field).to_bytes(_LENGTH_BYTES, "big") + field for field in fields)
    connection.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)


def receive(connection: "socket", deadline: float) -> list[bytes] | None:
    """Receives one message; None when it is incomplete or malformed. Raises OSError, also after the deadline."""
    head = _receive_exactly(connection, _LENGTH_BYTES, deadline)
    size = int.from_bytes(head, "big")
    if len(head) < _LENGTH_BYTES or size > _MAX_MESSAGE_BYTES:
        return None
    body = _receive_exactly(connection, size, deadline)
    return _split(body) if len(body) == size else None


def _receive_exactly(connection: "socket", size: int, deadline: float) -> bytes:
    found = b""
    while len(found) < size:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        chunk = connection.recv(min(size - len(found), 1 << 16))
        if not chunk:
            break
        found += chunk
    return found


def _split(body: bytes) -> list[bytes] | None:
    fields: list[bytes] = []
    start = 0
    while start < len(body):
        size = int.from_bytes(body[start : start + _LENGTH_BYTES], "big")
        start += _LENGTH_BYTES
        if start + size > len(body):
            return None
        fields.append(body[start : start + size])
        start += size
    return fields


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
    if not IS_SUPPORTED or helper_is_off() or len(payload) > _MAX_PAYLOAD_BYTES:
        return HelperReply(None, False)
    root = _root_of_home(options)
    identity = identity_of(root)
    from _socket import AF_UNIX, SOCK_STREAM, socket  # noqa: PLC0415

    deadline = time.monotonic() + _TIMEOUT
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(_TIMEOUT)
    try:
        connection.connect(socket_address(root, name_of(identity)))
    except OSError:
        return HelperReply(None, False)
    try:
        if not peer_is_same_user(connection):
            return HelperReply(None, True)
        send(connection, [identity, *_request(options, payload, started_at)])
        reply = receive(connection, deadline)
    except OSError:
        return HelperReply(None, True)
    if reply is None or len(reply) != 3 or reply[0] != identity:
        return HelperReply(None, True)
    return HelperReply(reply[2] if reply[1] == ANSWER else None, reply[1] != LEAVING)


def _root_of_home(options: "HookOptions") -> str:
    """The path of the home as a `Home` has it. What is wrong with it is found when there is no helper for it."""
    base, profile = choose_home(options.home, options.profile)
    root = os.path.realpath(os.path.expanduser(base))
    return root if profile in (None, _DEFAULT_PROFILE) else os.path.join(root, "profiles", profile)


def _request(options: "HookOptions", payload: bytes, started_at: float) -> list[bytes]:
    numbers = (repr(started_at), str(os.getpid()), repr(time.process_time()))
    words = (options.host, options.event, options.user or "", *numbers)
    return [*(word.encode("utf-8", "surrogateescape") for word in words), payload]
