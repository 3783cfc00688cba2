"""Finds a text in the deliveries that wait for providers, and removes it before they are sent.

A mirrored memory write that carries the text is dropped. Any other delivery is sent without the text, so that a
provider does not miss the rest of a turn.
"""

import json
import secrets
import time
import uuid
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.external.outbox.jobs import IDENTITY_COLUMNS, JobIdentity, replace_payload, seal_payload, stored_key
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.schema import outbox_database
from memoranda.storage.connection import Connection
from memoranda.storage.sqlite.stored_texts import readable_rows
from memoranda.support.processes import has_ended
from memoranda.support.text_matcher import TextMatcher

_DROPPED = "memory_write"
_FORGET = "forget"


@dataclass(frozen=True, slots=True)
class QueuedPassage:
    """A waiting delivery with the text. `running`: a process that lives may be delivering it at this moment."""

    id: int
    provider: str
    kind: str
    session_id: str
    count: int
    running: bool


class QueuedPassages:
    """The deliveries of a home for one user; a scope of None is for all users, and empty for the home's owner."""

    def __init__(self, home: Path, scope: str | None, server_url: str = "") -> None:
        """`server_url` names the server that has the outbox, if it is not a file of the home."""
        self._home = home
        self._scope = scope
        self._server_url = server_url
        self._file = outbox_database(home, server_url)

    def find(self, matcher: TextMatcher) -> list[QueuedPassage]:
        """The waiting deliveries that carry the text; those in the spool are moved into the queue first."""
        found: list[QueuedPassage] = []
        self._each(matcher, lambda connection, passage, content, payload: found.append(passage), write=False)
        return found

    def forget(self, matcher: TextMatcher, *, keep_removals: bool = False) -> int:
        """Drop or change the deliveries that carry the text; returns how many.

        `keep_removals` keeps the notification that an entry was removed, which a provider needs to remove it, too.
        """
        changed = 0

        def change(connection: Connection, passage: QueuedPassage, content: Any, payload: str) -> None:
            nonlocal changed
            if keep_removals and _is_removal(passage.kind, content):
                return
            changed += 1
            if passage.kind == _DROPPED or content is None:
                connection.execute("DELETE FROM jobs WHERE id = ?", (passage.id,))
            else:
                connection.execute("UPDATE jobs SET payload = ?, last_error = '' WHERE id = ?", (payload, passage.id))

        self._each(matcher, change, write=True)
        return changed

    def erase_removed(self) -> bool:
        """Overwrite what removed deliveries left in the file; False while another program is reading it."""
        if not self._file.exists():
            return True
        with closing(self._file):
            database = self._file.open()
            database.release_space()
            return database.shrink_log()

    def put_deletion(self, provider: str, session_ids: Collection[str]) -> None:
        """Queue a deletion of sessions at a provider, ahead of everything else; it has ids and no text."""
        key = stored_key(provider, f"{_FORGET}:{uuid.uuid4().hex}")
        identity = JobIdentity(provider, self._scope or "", key, _FORGET, "", time.time())
        payload = seal_payload(identity, {"session_ids": sorted(session_ids)}, {})
        with closing(self._file), self._file.open().writing() as connection:
            (first,) = connection.execute("SELECT min(id) FROM jobs").fetchone()
            number = min(0, first or 0) - 1
            if self._server_url:
                # Another store of a fleet must not have the same number, because a user's jobs may move there.
                number = -1 - secrets.randbelow(2**62)
            connection.execute(
                f"INSERT INTO jobs (id, payload, {IDENTITY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (number, payload, *identity),
            )

    def drop_deletions(self, provider: str) -> None:
        """Remove queued deletions that were just carried out."""
        if self._file.exists():
            with closing(self._file), self._file.open().writing() as connection:
                connection.execute(
                    "DELETE FROM jobs WHERE provider = ? AND scope = ? AND kind = ?",
                    (provider, self._scope or "", _FORGET),
                )

    def queued_deletions(self, provider: str) -> set[str]:
        """The sessions whose deletion an interrupted run has queued and not carried out."""
        if not self._file.exists():
            return set()
        with closing(self._file), self._file.open().reading() as connection:
            rows = connection.execute(
                "SELECT payload FROM jobs WHERE provider = ? AND scope = ? AND kind = ?",
                (provider, self._scope or "", _FORGET),
            ).fetchall()
        return {session_id for (payload,) in rows for session_id in json.loads(payload)["args"]["session_ids"]}

    def _each(
        self, matcher: TextMatcher, use: Callable[[Connection, QueuedPassage, Any, str], None], *, write: bool
    ) -> None:
        """Call `use` for each delivery with the text, with its content without the text, and that as a payload."""
        with closing(Outbox(self._home, server_url=self._server_url)) as outbox:
            outbox.load_spooled(None, None)
        if not self._file.exists():
            return
        condition, values = ("", ()) if self._scope is None else (" WHERE scope = ?", (self._scope,))
        database = self._file.open()
        with closing(self._file), database.writing() if write else database.reading() as connection:
            statement = f"SELECT id, payload, last_error, owner, until, {IDENTITY_COLUMNS} FROM jobs"
            for number, payload, error, owner, until, *columns in list(
                readable_rows(connection, f"{statement}{condition} ORDER BY id", values)
            ):
                content, count = _without(payload, matcher)
                count += matcher.count(error or "")
                if count:
                    running = bool(owner and until and until > time.time() and not has_ended(owner.rpartition("-")[0]))
                    job = JobIdentity(*columns)
                    passage = QueuedPassage(number, job.provider, job.kind, job.session_id, count, running)
                    use(connection, passage, content, replace_payload(job, payload, content or {}))


def _is_removal(kind: str, content: Any) -> bool:
    return kind == _DROPPED and isinstance(content, dict) and content["args"].get("action") == "remove"


def _without(payload: str, matcher: TextMatcher) -> tuple[Any, int]:
    """The content of a payload without the text, and how many times it had it; None for an unreadable one."""
    try:
        content = json.loads(payload)
        if isinstance(content, dict):
            # A part of the checksum may look like the text.
            content.pop("checksum", None)
        replaced = matcher.replace_value(content)
        return replaced.value if isinstance(content, dict) else None, replaced.count
    except (ValueError, RecursionError):
        return None, matcher.count(payload)
