"""The log of answered hooks: what each prompt received, or why it received nothing, in `logs/hook-events.jsonl`.

A call appends one line when it begins and one with its result, so a call that was killed is in the log too. Only plain
words of a prompt are stored. The file is halved when it exceeds `_MAX_BYTES`; while that happens, another call's line
may be lost. This module loads nothing that a hook does not load anyway.
"""

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from memoranda.support.durable_files import make_private_directory

GIVEN, NOTHING, LATE, ERROR, STOPPED, RUNNING = "given", "nothing", "late", "error", "stopped", "running"

_MAX_BYTES = 400_000
_MAX_PROMPT_CHARS = 160
_MAX_ID_CHARS = 100
_HIDDEN = "•••"
# A call that has no result after this many seconds was stopped.
_MAX_SECONDS = 30.0
_PLAIN_WORD = re.compile(r"[\"'(\[]?[^\W\d_]{1,24}(?:['’-][^\W\d_]{1,24})*[\"')\].,;:!?…]*|\d{1,4}[.,;:!?]?|[-–—&+=/]")
_NAMES_A_SECRET = re.compile(
    r"(?i)pass(?:word|wort|phrase|code)?s?|pwd|pin|secrets?|tokens?|keys?|credentials?|bearer|login|auth"
)
_FILLER = re.compile(r"(?i)is|are|was|the|my|our|[:=]|it|to|be")


def log_path(home: Path) -> Path:
    return home / "logs" / "hook-events.jsonl"


def mask_words(text: str) -> str:
    """Returns the plain words of a text; anything that could be a secret, such as letters mixed with digits, is hidden.

    The word that follows `password`, `key` or a similar word is hidden too. A redactor knows more formats, but loading
    one would take longer than the whole hook.
    """
    words: list[str] = []
    follows_name = False
    for word in text[: 4 * _MAX_PROMPT_CHARS].split():
        plain = bool(_PLAIN_WORD.fullmatch(word))
        bare = word.strip("\"'()[].,;:!?…")
        if follows_name and not _FILLER.fullmatch(bare or word):
            plain = follows_name = False
        if _NAMES_A_SECRET.fullmatch(bare):
            follows_name = True
        if plain or not words or words[-1] != _HIDDEN:
            words.append(word if plain else _HIDDEN)
    masked = " ".join(words)
    return masked if len(masked) <= _MAX_PROMPT_CHARS else f"{masked[: _MAX_PROMPT_CHARS - 1]}…"


class HookCaller:
    """The process of a hook, for the helper that answers it: its id, its CPU so far, and that of the helper before."""

    __slots__ = ("cpu", "helper_cpu_before", "process")

    def __init__(self, process: int, cpu: float) -> None:
        self.process = process
        self.cpu = cpu
        self.helper_cpu_before = time.process_time()


class HookLog:
    """The lines of one call. Nothing is written into a home that does not exist, and no error reaches the caller."""

    def __init__(self, home: Path, started_at: float | None = None, caller: HookCaller | None = None) -> None:
        """`started_at` is the time of the call; the id is made from it, so that two threads of a call have the same.

        A helper that answers for another process names it as the `caller`.
        """
        self._home = home
        self._caller = caller
        process = os.getpid() if caller is None else caller.process
        self._started_at = time.time() if started_at is None else started_at
        # Short enough to type; it only has to be unique among the calls that are still in the log.
        self.call_id = f"{int(1000 * self._started_at) & 0xFFFFFFF:07x}{process & 0xFF:02x}"

    def begin(self, host: str, event: str, session_id: str, prompt: str) -> None:
        """Logs the start of a call; a call without a second line was stopped before it had a result."""
        fields = {"host": host, "event": event, "session_id": session_id[:_MAX_ID_CHARS], "prompt": mask_words(prompt)}
        self._append({"at": round(self._started_at, 3), **fields})

    def end(self, outcome: str, reason: str, details: dict[str, Any] | None = None) -> None:
        """Logs the result: an outcome, the reason in words, and the details behind the decision."""
        cpu, caller = time.process_time(), self._caller
        helper = {}
        if caller is not None:
            cpu += caller.cpu - caller.helper_cpu_before
            helper = {"helper": os.getpid()}
        durations = {"ms": round(1000 * (time.time() - self._started_at)), "cpu_ms": round(1000 * cpu)}
        self._append({"outcome": outcome, "reason": reason, **(details or {}), **durations, **helper})

    def _append(self, fields: dict[str, Any]) -> None:
        path = log_path(self._home)
        line = json.dumps({"id": self.call_id, **fields}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            if not self._home.is_dir():
                return
            make_private_directory(path.parent)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line)
                size = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
            if size > _MAX_BYTES:
                _drop_older_half(path)
        except OSError:
            # A disk that is full or read-only must not cost the host its answer.
            return


def _drop_older_half(path: Path) -> None:
    newer = path.read_bytes()[-_MAX_BYTES // 2 :].partition(b"\n")[2]
    staged = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, newer)
    finally:
        os.close(descriptor)
    os.replace(staged, path)


def was_given_memory(home: Path, session_id: str) -> bool:
    """Whether a call of this session received the memory, as far as the log goes back."""
    if not session_id:
        return False
    try:
        lines = log_path(home).read_bytes().splitlines()
    except OSError:
        return False
    begun = json.dumps({"session_id": session_id[:_MAX_ID_CHARS]}, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    ids = {_parse(line).get("id") for line in lines if begun in line}
    results: dict[str, bool] = {}
    for line in lines if ids else ():
        if b'"outcome"' in line and (fields := _parse(line)).get("id") in ids:
            # A call that was late may have a second result, which the host did not get.
            results.setdefault(fields["id"], fields.get("memory") is True)
    return any(results.values())


def _parse(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def read_calls(home: Path) -> list[dict[str, Any]]:
    """Returns the calls in the log, newest first, each with its outcome; lines that cannot be read are skipped."""
    try:
        lines = log_path(home).read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    calls: dict[str, dict[str, Any]] = {}
    for line in lines:
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        if isinstance(fields, dict) and isinstance(fields.get("id"), str):
            # A late call may still end and log a second result; the first one is what the host received.
            call = calls.setdefault(fields["id"], {})
            calls[fields["id"]] = fields | call if "outcome" in call else call | fields
    found = [call for call in calls.values() if isinstance(call.get("at"), int | float)]
    for call in found:
        if "outcome" not in call:
            stopped = time.time() - call["at"] > _MAX_SECONDS
            call["outcome"] = STOPPED if stopped else RUNNING
            call["reason"] = "the process ended before it had a result" if stopped else "it has no result yet"
    return sorted(reversed(found), key=lambda call: call["at"], reverse=True)
