"""Installs and starts programs for `make vendors`: environments of Python, processes, ports, sizes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.acceptance.vendors.real_vendor import CannotRun

_INSTALL_SECONDS = 1_800.0


def install_python_packages(environment: Path, packages: Sequence[str], python: str = sys.executable) -> Path:
    """Install packages into an environment of their own and return its Python; does nothing if it is complete."""
    interpreter, mark = environment / "bin" / "python", environment / ".complete"
    wanted = "\n".join(packages)
    if mark.is_file() and mark.read_text("utf-8") == wanted:
        return interpreter
    shutil.rmtree(environment, ignore_errors=True)
    uv = shutil.which("uv")
    if uv is not None:
        run([uv, "venv", "--quiet", "--python", python, str(environment)])
        run([uv, "pip", "install", "--quiet", "--python", str(interpreter), *packages])
    else:
        run([python, "-m", "venv", str(environment)])
        run([str(interpreter), "-m", "pip", "install", "--quiet", *packages])
    mark.write_text(wanted, "utf-8")
    return interpreter


def run(command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return its output; raises CannotRun with the end of it when it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"{command[0]}: {error}") from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        raise CannotRun(f"{' '.join(command[:4])} … ended with {done.returncode}: {output[-500:].strip()}")
    return output


def start_process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    user: int | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a server in a process group of its own; its output goes to a file. `user` is another user's id."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
        )


def stop_process(process: "subprocess.Popen[bytes]", seconds: float = 20.0) -> None:
    """Stop a process and everything that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait(seconds)


def wait_for(ready: Callable[[], bool], what: str, seconds: float, process: "subprocess.Popen[bytes] | None") -> None:
    """Wait until something is ready; raises CannotRun after `seconds`, or when the process has ended."""
    deadline = time.monotonic() + seconds
    while not ready():
        if process is not None and process.poll() is not None:
            raise CannotRun(f"{what} ended with {process.returncode} while it started")
        if time.monotonic() > deadline:
            raise CannotRun(f"{what} did not start within {seconds:g} s")
        time.sleep(0.2)


def accepts_connections(port: int) -> bool:
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_model(folder: Path, *options: str) -> "tuple[subprocess.Popen[bytes], str]":
    """Start the scripted model, which needs no key, and return its address for OpenAI's clients."""
    port = free_port()
    command = [sys.executable, "-m", "memoranda.testing.scripted", "--port", str(port), *options]
    process = start_process(command, folder / "model.log")
    wait_for(lambda: accepts_connections(port), "the scripted model", 60, process)
    return process, f"http://127.0.0.1:{port}/v1"


def megabytes_of(folder: Path) -> float:
    """The size of a folder, each file once."""
    seen: set[int] = set()
    size = 0
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            state = path.stat()
            size += 0 if state.st_ino in seen else state.st_size
            seen.add(state.st_ino)
    return size / 1e6


def memory_of(processes: Sequence["subprocess.Popen[bytes]"]) -> float:
    """The resident memory of processes and their descendants in MB; 0 where the system does not show it."""
    parents = {}
    sizes = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines() if ":" in line)
        except (OSError, ValueError):
            # The process has ended meanwhile.
            continue
        number = int(status.parent.name)
        parents[number] = int(fields["PPid"])
        sizes[number] = int(fields.get("VmRSS", "0 kB").split()[0]) / 1e3
    wanted = {process.pid for process in processes}
    while more := {number for number, parent in parents.items() if parent in wanted} - wanted:
        wanted |= more
    return sum(sizes.get(number, 0.0) for number in wanted)
