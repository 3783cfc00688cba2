"""The `memoranda` command as processes that start at once: they are forked from one that has loaded everything.

A chat loads the SDK of a vendor, which takes two seconds. Here a separate process, without threads and without pytest,
loads it once; then it forks a process for each start, which runs and ends as the command does.
"""

import atexit
import fcntl
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What takes long to load; the rest a chat loads by itself.
_USED = ("openai", "memoranda.__main__", "memoranda.cli.main", "memoranda.cli.chat", "memoranda.api.agents")
_STARTERS: dict[int, socket.socket] = {}


@dataclass(frozen=True, slots=True)
class WarmProcess:
    """A running command."""

    pid: int
    _status: io.TextIOWrapper

    def wait(self) -> int:
        """Return its exit code, or the negative number of a signal, once it has ended."""
        with self._status:
            return int(self._status.readline())


def start_program(
    arguments: Sequence[str], *, stdin: int, stdout: int, stderr: int, env: Mapping[str, str], terminal: bool = False
) -> WarmProcess:
    """Run the command with these descriptors, which stay open here; in a terminal, it gets a session of its own."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile("w+") as request:
        json.dump({"arguments": list(arguments), "env": dict(env), "cwd": os.getcwd(), "terminal": terminal}, request)
        request.flush()
        socket.send_fds(_starter(), [b"."], [request.fileno(), stdin, stdout, stderr, writer])
    os.close(writer)
    status = open(reader, encoding="ascii")  # noqa: SIM115
    return WarmProcess(int(status.readline()), status)


def run_program(
    arguments: Sequence[str], said: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end with a text in its pipe, as `subprocess.run` does."""
    reader, writer = os.pipe()
    os.write(writer, said.encode())
    os.close(writer)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        code = start_program(
            arguments, stdin=reader, stdout=out.fileno(), stderr=errors.fileno(), env=os.environ if env is None else env
        ).wait()
        os.close(reader)
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), errors.read())


def _starter() -> socket.socket:
    """The connection to the process that forks; one for each process of the tests."""
    if os.getpid() not in _STARTERS:
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(
            [sys.executable, "-c", f"from tests.cli.warm_program import serve; serve({theirs.fileno()})"],
            cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        _STARTERS[os.getpid()] = ours
        atexit.register(_stop, os.getpid(), process)
    return _STARTERS[os.getpid()]


def _stop(owner: int, process: "subprocess.Popen[bytes]") -> None:
    if os.getpid() == owner:
        _STARTERS.pop(owner).close()
        process.wait()


def serve(connection: int) -> None:
    """Load everything, fork for each request, and become the command in the process that was forked."""
    for name in _USED:
        import_module(name)
    from openai import OpenAI

    with OpenAI(api_key="none") as client:
        assert client.chat.completions
    # Looking for garbage in all of this would make each process copy it.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    requests = socket.socket(fileno=connection)
    started: set[int] = set()
    while True:
        # Waited for and not ignored, so that the time that they used is counted.
        started -= {each for each in started if os.waitpid(each, os.WNOHANG)[0]}
        _, received, _, _ = socket.recv_fds(requests, 1, 5)
        if not received:
            return
        watcher = os.fork()
        if watcher == 0:
            requests.close()
            _become_command(*received)
            import_module("memoranda.__main__").main()
            return
        started.add(watcher)
        for each in received:
            os.close(each)


def _become_command(request: int, stdin: int, stdout: int, stderr: int, status: int) -> None:
    """Wait for the command in this process and report its end; return in another one, which becomes the command."""
    child = os.fork()
    if child:
        os.write(status, f"{child}\n".encode())
        for each in (stdin, stdout, stderr, 0, 1, 2):
            os.close(each)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(status, f"{code}\n".encode())
        os._exit(0)
    os.close(status)
    with open(request, encoding="utf-8") as file:
        file.seek(0)
        wanted = json.load(file)
    if wanted["terminal"]:
        os.setsid()
        fcntl.ioctl(stdin, termios.TIOCSCTTY, 0)
    for given, standard in ((stdin, 0), (stdout, 1), (stderr, 2)):
        os.dup2(given, standard)
    for given in {stdin, stdout, stderr}:
        os.close(given)
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    sys.argv[:] = [str(ROOT / "src" / "memoranda" / "__main__.py"), *wanted["arguments"]]
    # As the interpreter opens them when it starts.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1 if os.isatty(1) else -1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
