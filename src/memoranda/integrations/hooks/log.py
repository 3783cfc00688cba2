"""The log of answered hooks: what each prompt received, or why it received nothing, in `logs/hook-events.jsonl`.

A call appends one line when it begins and one with its result, so a call that was killed is in the log too. Only plain
words of a prompt are stored; `search.recall_log` has the form of the lines and their limits. This module loads nothing
that a hook does not load anyway.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from memoranda.integrations.hooks.events import SESSION_START
from memoranda.search.recall_log import append_line, hook_calls_path, logged_id, mask_words, parse_line, prompt_digest
from memoranda.search.recall_log import read_calls as read_calls_in


class HookCaller:
    """The process of a hook, for the helper that answers it: its id, its CPU so far, and that of the helper before."""

    __slots__ = ("cpu", "helper_cpu_before", "process")

    def __init__(self, process: int, cpu: float) -> None:
        self.process = process
        self.cpu = cpu
        self.helper_cpu_before = time.process_time()


class HookLog:
    """The two lines of one call, each written once, whichever thread is first.

    Nothing is written into a home that does not exist, and no error reaches the caller.
    """

    def __init__(self, home: Path, started_at: float | None = None, caller: HookCaller | None = None) -> None:
        """`started_at` is the time of the call; the id is made from it, so that two threads of a call have the same.

        A helper that answers for another process names it as the `caller`.
        """
        self._home = home
        self._caller = caller
        self._lock = threading.Lock()
        self._has_begun = self._has_ended = False
        process = os.getpid() if caller is None else caller.process
        self._started_at = time.time() if started_at is None else started_at
        # Short enough to type; it only has to be unique among the calls that are still in the log.
        self.call_id = f"{int(1000 * self._started_at) & 0xFFFFFFF:07x}{process & 0xFF:02x}"

    def begin(self, host: str, event: str, session_id: str, prompt: str, user: str | None = None) -> None:
        """Logs the start of a call; a call without a second line was stopped before it had a result.

        `user` is the user of the home for whom the hook was called; the line of the owner names none.
        """
        fields = {"host": host, "event": event, "session_id": logged_id(session_id), "prompt": mask_words(prompt)}
        named = {} if user is None else {"user": user}
        if prompt:
            named["digest"] = prompt_digest(prompt)
        with self._lock:
            if not self._has_begun:
                self._has_begun = True
                self._append({"at": round(self._started_at, 3), **fields, **named})

    def end(self, outcome: str, reason: str, details: dict[str, Any] | None = None) -> None:
        """Logs the result: an outcome, the reason in words, and the details behind the decision."""
        cpu, caller = time.process_time(), self._caller
        helper = {}
        if caller is not None:
            cpu += caller.cpu - caller.helper_cpu_before
            helper = {"helper": os.getpid()}
        durations = {"ms": round(1000 * (time.time() - self._started_at)), "cpu_ms": round(1000 * cpu)}
        with self._lock:
            if not self._has_ended:
                self._has_ended = True
                self._append({"outcome": outcome, "reason": reason, **(details or {}), **durations, **helper})

    def _append(self, fields: dict[str, Any]) -> None:
        append_line(self._home, hook_calls_path(self._home), {"id": self.call_id, **fields})


def was_given_memory(home: Path, session_id: str) -> bool:
    """Whether a call of this session received the memory, as far as the log goes back."""
    return any(fields.get("memory") is True for fields in _calls_of(home, session_id).values())


def missed_memory(home: Path, session_id: str) -> bool:
    """Whether the hook at the start of this session had no answer in time, and no later one brought the memory."""
    calls = _calls_of(home, session_id).values()
    started = [fields for fields in calls if fields["event"] == SESSION_START]
    unanswered = bool(started) and all(fields.get("outcome") in (None, "late", "error") for fields in started)
    return unanswered and not any(fields.get("memory") is True for fields in calls)


def announced_proposals(home: Path, session_id: str) -> set[str]:
    """The proposals of which a call of this session has said that they wait."""
    return {each for fields in _calls_of(home, session_id).values() for each in fields.get("waiting", ())}


def _calls_of(home: Path, session_id: str) -> dict[str, dict[str, Any]]:
    """The calls of a session by their ids, each with its result if it has one."""
    if not session_id:
        return {}
    try:
        lines = hook_calls_path(home).read_bytes().splitlines()
    except OSError:
        return {}
    begun = json.dumps({"session_id": logged_id(session_id)}, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    calls = {fields["id"]: fields for line in lines if begun in line and "event" in (fields := parse_line(line))}
    for line in lines if calls else ():
        if b'"outcome"' in line and (fields := parse_line(line)).get("id") in calls:
            # A call that was late may have a second result, which the host did not get.
            calls[fields["id"]] |= fields if calls[fields["id"]].get("outcome") != "late" else {}
    return calls


def read_calls(home: Path) -> list[dict[str, Any]]:
    """Returns the calls of hooks in a home, newest first, each with its outcome."""
    return read_calls_in(hook_calls_path(home))
