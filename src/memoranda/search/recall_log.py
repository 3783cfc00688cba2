"""The log of recalls: what memory gave to each prompt, or why it gave nothing.

Programs (our own agent, the HTTP service, adapters of frameworks) write one line for each recall: the owner's to
`logs/recall-events.jsonl`, those of a user to a file of that user in `logs/users`. Hooks of hosts write lines of the
same form to a file of their own (`integrations.hooks.log`), because they read it when they answer. Only plain words of
a prompt are stored, and none of a message that the record has. A file is halved when it exceeds its limit; while that
happens, another line may be lost. This module loads nothing that a hook does not load anyway, and no error of it
reaches the caller.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.support.durable_files import append_unsynced, make_private_directory, sync
from memoranda.support.home import encode_user_id
from memoranda.support.json_object import parse_object

GIVEN, NOTHING, LATE, ERROR, STOPPED, RUNNING = "given", "nothing", "late", "error", "stopped", "running"

TURN, PROMPT, QUESTION = "turn", "prompt", "recall"
"""The events of programs: a turn of our own agent, the prompt of a framework, a question to all parts of memory."""

MAX_BYTES = 400_000
# A service may have thousands of users.
_MAX_USER_BYTES = 100_000
_MAX_PROMPT_CHARS = 160
_MAX_TEXT_CHARS = 2_000
_MAX_GIVEN = 10
_MAX_ID_CHARS = 100
_DIGEST_CHARS = 10
# The ids of Claude Code, Codex, Cursor and Gemini CLI are UUIDs; OpenCode has its own form.
_ORDINARY_ID = re.compile(r"[0-9A-Fa-f-]{0,64}|ses_[0-9A-Za-z]{1,40}")
HIDDEN = "•••"
# A call that has no result after this many seconds was stopped.
_MAX_SECONDS = 30.0
_PLAIN_WORD = re.compile(
    r"[\"'(\[]?[^\W\d_]{1,24}(?:['’._-][^\W\d_]{1,24})*[\"')\].,;:!?…。！？、，；：」）]*"
    r"|\d{1,4}(?:\.\d{1,4}){0,3}[.,;:!?]?|[-–—&+=/]"
)
_NAMES_A_SECRET = re.compile(
    r"(?i)pass(?:word|wort|phrase|code)?s?|pwd|pin|secrets?|tokens?|keys?|credentials?|bearer|login|auth"
)
_FILLER = re.compile(r"(?i)is|are|was|the|my|our|[:=]|it|to|be")


def recalls_path(home: Path, user: str | None) -> Path:
    """The file with the recalls of programs for a user; None is the home's owner."""
    logs = home / "logs"
    return logs / "recall-events.jsonl" if user is None else logs / "users" / f"{encode_user_id(user)}.jsonl"


def hook_calls_path(home: Path) -> Path:
    """The file with the calls of hooks, for all users."""
    return home / "logs" / "hook-events.jsonl"


def mask_words(text: str) -> str:
    """Returns the plain words of a text; anything that could be a secret, such as letters mixed with digits, is hidden.

    Names such as `heron.internal` and versions such as 3.12 are plain. The word that follows `password`, `key` or a
    similar word is hidden too. A redactor knows more formats, but loading one would take longer than a whole hook.
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
        if plain or not words or words[-1] != HIDDEN:
            words.append(word if plain else HIDDEN)
    masked = " ".join(words)
    return masked if len(masked) <= _MAX_PROMPT_CHARS else f"{masked[: _MAX_PROMPT_CHARS - 1]}…"


def prompt_digest(text: str) -> str:
    """Return what tells a prompt from every other text; too short to find out a secret in it."""
    import hashlib  # noqa: PLC0415 - only prompts need it, and it takes a moment to load

    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]


def logged_id(session_id: str) -> str:
    """Returns the id of a host's session as the log has it: without credentials."""
    if not _ORDINARY_ID.fullmatch(session_id):
        # No known host has such ids, so loading the redactor delays none of them.
        from memoranda.safety.redaction import Redactor  # noqa: PLC0415

        session_id = Redactor().name(session_id)
    return session_id[:_MAX_ID_CHARS]


class PromptPlace(NamedTuple):
    """Where a prompt was asked: the event, the program, and its session and message in the record if they are known."""

    event: str
    source: str
    session_id: str = ""
    message_id: int | None = None


class RecallLog:
    """Writes the recalls of programs for one user. Nothing is written into a home that does not exist."""

    def __init__(self, home: Path, user: str | None, redact: Callable[[str], str]) -> None:
        """`redact` removes credentials from a text, as the record does."""
        self._home = home
        self._user = user
        self._redact = redact

    def add(
        self,
        prompt: PromptPlace,
        words: str,
        outcome: str,
        reason: str,
        *,
        began: float,
        text: str = "",
        details: dict[str, Any] | None = None,
    ) -> None:
        """Log one recall for a prompt with these words, which began at a timestamp and has just ended.

        `text` is what was recalled; `details` names messages of the record as `given`.
        """
        fields: dict[str, Any] = {"at": round(began, 3), "host": prompt.source[:_MAX_ID_CHARS], "event": prompt.event}
        fields |= {"session_id": prompt.session_id} if prompt.session_id else {}
        fields |= {} if prompt.message_id is None else {"message_id": prompt.message_id}
        # The record has the words of a message, and only the record: what is redacted there is gone.
        fields |= {"prompt": mask_words(words)} if prompt.message_id is None else {}
        fields |= {} if self._user is None else {"user": self._user}
        fields |= {"outcome": outcome, "reason": reason, **(details or {})}
        if isinstance(given := fields.get("given"), list):
            fields["given"] = given[:_MAX_GIVEN]
        if text:
            # Redacted as a whole: a credential that was cut in two would not be recognised.
            fields["text"] = self._redact(text)[:_MAX_TEXT_CHARS]
        fields["ms"] = round(1000 * (time.time() - began))
        limit = MAX_BYTES if self._user is None else _MAX_USER_BYTES
        append_line(self._home, recalls_path(self._home, self._user), {"id": os.urandom(6).hex(), **fields}, limit)


def append_line(home: Path, path: Path, fields: dict[str, Any], max_bytes: int = MAX_BYTES) -> None:
    """Append a line to a log of a home that exists; the file is halved when it gets larger than `max_bytes`."""
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        if not home.is_dir():
            return
        make_private_directory(path.parent)
        if append_unsynced(path, line) > max_bytes:
            _drop_older_half(path, max_bytes)
    except OSError:
        # A disk that is full or read-only must not cost the caller its answer.
        return


def _drop_older_half(path: Path, max_bytes: int) -> None:
    newer = path.read_bytes()[-max_bytes // 2 :].partition(b"\n")[2]
    staged = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, newer)
    finally:
        os.close(descriptor)
    os.replace(staged, path)


def read_calls(path: Path) -> list[dict[str, Any]]:
    """Returns the calls in a log, newest first, each with its outcome; lines that cannot be read are skipped."""
    try:
        lines = path.read_bytes().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    calls: dict[str, dict[str, Any]] = {}
    for line in lines:
        fields = parse_line(line)
        if isinstance(fields.get("id"), str):
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


def parse_line(line: bytes) -> dict[str, Any]:
    """The fields of a line; none of a line that cannot be read, such as one that was erased."""
    return parse_object(line.decode("utf-8", "replace")) or {}


def erase_calls(path: Path, belongs: Callable[[dict[str, Any]], bool]) -> int:
    """Overwrite the lines of calls in place, because other processes append to the file; returns how many calls.

    `belongs` gets the fields of a call, and says whether it is erased.
    """
    try:
        stream = open(path, "r+b")  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError):
        return 0
    with stream:
        lines = list(_positions(stream.read()))
        ids = {fields["id"] for _, _, fields in lines if isinstance(fields.get("id"), str) and belongs(fields)}
        for position, length, fields in lines:
            if fields.get("id") in ids:
                stream.seek(position)
                stream.write(b"*" * length)
        stream.flush()
        sync(stream.fileno())
    return len(ids)


def _positions(content: bytes) -> Iterator[tuple[int, int, dict[str, Any]]]:
    position = 0
    for line in content.split(b"\n"):
        yield position, len(line), parse_line(line)
        position += len(line) + 1
