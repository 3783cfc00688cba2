"""Starts a Hindsight server on this machine if none runs: the mode `local_embedded`.

The server outlives the session that started it, because it takes half a minute to start and other sessions use it. It
inherits a lock: while that is held, a server is starting or running, and no second one is started. Until it answers,
turns wait in the outbox, and recall finds nothing. Its settings are the variables that it reads itself.
"""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from memoranda.errors import TemporaryProviderError
from memoranda.support.durable_files import make_private_directory

INSTALL = "pip install 'hindsight-api-slim[embedded-db]'"
_CONNECT_SECONDS = 0.2
# Kept, so that a server that ends is not left as a zombie while this process runs.
_started: list["subprocess.Popen[bytes]"] = []


def describe_obstacle(program: str) -> str:
    """What prevents a server from being started here; "" if nothing does."""
    if sys.platform == "win32":
        return "local_embedded needs Linux or macOS; start a server and use local_external."
    if os.geteuid() == 0:
        return "Hindsight's own PostgreSQL refuses to run as root; use another account, or a server (local_external)."
    if shutil.which(program) is None:
        return f"{program} is not installed: {INSTALL}."
    return ""


def start_if_missing(home: Path, url: str, program: str) -> None:
    """Start the server of an address on this machine, without waiting for it; raises TemporaryProviderError."""
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 8888
    if _accepts(host, port) or sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415

    _started[:] = [process for process in _started if process.poll() is None]
    directory = home / "providers"
    make_private_directory(directory)
    lock = os.open(directory / "hindsight.server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with (directory / "hindsight.server.log").open("ab") as log:
            process = subprocess.Popen(
                [program, "--host", host, "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
            )
        _started.append(process)
    except BlockingIOError:
        # Another session has just started it.
        return
    except OSError as error:
        raise TemporaryProviderError(f"{program} cannot be started: {error}. {INSTALL}.") from error
    finally:
        os.close(lock)


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
