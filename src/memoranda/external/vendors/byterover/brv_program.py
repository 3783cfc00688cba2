"""Runs `brv`, the program of ByteRover, and reads the JSON that it prints.

`brv` starts a daemon that stays for half an hour, and every command costs a second or two of CPU. It ends with the exit
code 0 also when it failed, so only its last line of JSON counts. If it cannot reach ByteRover's servers, its daemon
does not start, and the command tries again for minutes: each command here has a deadline, at which its group of
processes is killed. `brv` would also update itself; that is turned off.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.support.json_object import parse_object
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

NO_MODEL = "No provider connected"
INSTALL = "'npm install -g byterover-cli' installs it (it needs Node 20 or newer)"
_LOCATIONS = ("~/.brv-cli/bin/brv", "/usr/local/bin/brv", "~/.npm-global/bin/brv")
_VARIABLES = ("BRV_DISABLE_AUTOUPDATE=1", "NO_UPDATE_NOTIFIER=1")
_MAX_ERROR_CHARS = 300
_KILL_SECONDS = 2.0


class NoModelError(ProviderError):
    """No language model is connected to `brv`, so it can neither extract nor answer."""


def find_program(configured: str = "") -> str:
    """The path of `brv`: as configured, in PATH, or where its installers put it; empty if it is not installed."""
    if configured:
        return shutil.which(os.path.expanduser(configured)) or ""
    found = (shutil.which(os.path.expanduser(location)) for location in ("brv", *_LOCATIONS))
    return next((path for path in found if path), "")


class BrvProgram:
    """Commands in one project directory. Thread-safe; `close` kills those that are running."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(self, *arguments: str, text: str = "", timeout: float) -> JsonObject:
        """Run a command and return its data. `text` is its last argument, whatever it begins with.

        Raises NoModelError if the command needs a model and none is connected, TemporaryProviderError if it does not
        end in time or fails.
        """
        # What an argument of a program cannot contain.
        text = text.encode("utf-8", "replace").decode().replace("\0", " ")
        command = [self._program, *arguments, "--format", "json", *(["--", text] if text else [])]
        # The variables come from `env`, because they must reach no other program.
        prefix = [] if sys.platform == "win32" else ["env", *_VARIABLES]
        name = f"brv {arguments[0]}"
        output, errors, code = self._execute([*prefix, *command], name, timeout)
        events = _json_objects(output)
        last = events[-1] if events else {}
        if not last:
            said = shorten_end(" ".join((errors or output).split()), _MAX_ERROR_CHARS)
            raise TemporaryProviderError(f"{name} printed no answer (exit code {code}){f': {said}' if said else ''}.")
        data = last.get("data")
        data = data if isinstance(data, dict) else {"entries": data}
        if last.get("success") is not True:
            raise _failure(name, data)
        # The answer of `brv query` comes before the line that ends it.
        answers = [event["data"].get("content") for event in events if isinstance(event.get("data"), dict)]
        return {"content": next((text for text in reversed(answers) if text), ""), **data}

    def close(self) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            kill_group(process)

    def _execute(self, command: list[str], name: str, timeout: float) -> tuple[str, str, int]:
        deadline = time.monotonic() + timeout
        with self._lock:
            if self._closed:
                raise TemporaryProviderError("ByteRover was shut down.")
            process = self._start(command)
            self._running.add(process)
        try:
            output, errors = process.communicate(timeout=max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            kill_group(process)
            _reap(process)
            raise TemporaryProviderError(
                f"{name} did not end within {timeout:g} s. It does not start if ByteRover's servers cannot be reached."
            ) from None
        finally:
            with self._lock:
                self._running.discard(process)
        return output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), process.returncode

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                command,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise TemporaryProviderError(f"brv cannot be started: {error.strerror}. {INSTALL}.") from error
        except (OSError, ValueError) as error:
            raise TemporaryProviderError(f"brv cannot be started: {error}.") from error


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a command with all processes that it has started; the daemon has a session of its own, and stays."""
    if sys.platform == "win32":
        process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()


def _reap(process: "subprocess.Popen[bytes]") -> None:
    """Close the pipes of a killed command. A process outside its group may hold them open; it is not waited for."""
    try:
        process.communicate(timeout=_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        process.poll()


def _json_objects(output: str) -> list[JsonObject]:
    """The JSON objects that a command printed: one per line, or a single one over many lines."""
    try:
        whole = json.loads(output)
        return [whole] if isinstance(whole, dict) else []
    except (ValueError, RecursionError):
        pass
    return [value for line in output.splitlines() if (value := parse_object(line)) is not None]


def _failure(name: str, data: Mapping[str, Any]) -> ProviderError:
    reason = shorten_end(
        " ".join(str(data.get("error") or data.get("message") or "no reason").split()), _MAX_ERROR_CHARS
    )
    if NO_MODEL in reason:
        return NoModelError(f"No model is connected to brv. {reason}")
    if "login" in reason.lower() or "unauthorized" in reason.lower():
        return PermanentProviderError(f"{name} was refused: {reason} 'brv login' signs in.")
    return TemporaryProviderError(f"{name} failed: {reason}")
