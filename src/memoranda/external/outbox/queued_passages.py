"""Finds a text in the notifications that wait for providers, and removes it before they are sent.

A mirrored memory write that carries the text is dropped. Any other notification is sent without the text, so that a
provider does not miss the rest of it. Turns are read from the record when they are delivered, so that what was removed
from their messages needs no more. A job of the outbox has no text, except for the error of its last delivery, which is
forgotten with the other tables of the home.
"""

import json
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.external.outbox.jobs import Kind
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.record_feed import OpenRecord, RecordFeed
from memoranda.external.outbox.schema import outbox_database
from memoranda.memory.record.notifications import Notification
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.processes import has_ended
from memoranda.support.text_matcher import TextMatcher

_DROPPED: Kind = "memory_write"
_FORGET: Kind = "forget"


@dataclass(frozen=True, slots=True)
class QueuedPassage:
    """A waiting notification with the text. `running`: a process that lives may be delivering it at this moment."""

    provider: str
    kind: str
    session_id: str
    count: int
    running: bool


class QueuedPassages:
    """The notifications of a home for one user; a scope of None is for all users, and empty for the home's owner."""

    def __init__(self, home: Path, scope: str | None, server_url: str = "", record: OpenRecord | None = None) -> None:
        """`server_url` names the server that has the record and the outbox, if they are not files of the home.

        `record` returns the record if the caller has it open.
        """
        self._home = home
        self._scope = scope
        self._server_url = server_url
        self._record = record
        self._file = outbox_database(home, server_url)

    def find(self, matcher: TextMatcher) -> list[QueuedPassage]:
        """The waiting notifications that carry the text."""
        with closing(self._feed()) as feed:
            return [
                QueuedPassage(row.provider, row.kind, row.session_id, count, self._is_running(row))
                for row, _, count in self._matching(feed, matcher)
            ]

    def forget(self, matcher: TextMatcher, *, keep_removals: bool = False) -> int:
        """Drop or change the notifications that carry the text; returns how many.

        `keep_removals` keeps the notification that an entry was removed, which a provider needs to remove it, too.
        """
        changed = 0
        with closing(self._feed()) as feed:
            for row, content, _ in list(self._matching(feed, matcher)):
                is_write = row.kind == _DROPPED
                if keep_removals and is_write and content is not None and content["args"].get("action") == "remove":
                    continue
                changed += 1
                if is_write or content is None:
                    self._remove(feed, [row])
                else:
                    feed.everyone().feed.notifications.replace(row, content)
        return changed

    def erase_removed(self) -> bool:
        """Overwrite what removed notifications left in the files; False while another program is reading them."""
        erased = True
        with closing(self._feed()) as feed:
            if feed.exists():
                erased = feed.everyone().deletion.empty_log()
        if not self._file.exists():
            return erased
        with closing(self._file):
            database = self._file.open()
            database.release_space()
            return database.shrink_log() and erased

    def put_deletion(self, provider: str, session_ids: Collection[str]) -> None:
        """Queue a deletion of sessions at a provider, ahead of everything else; it has ids and no text."""
        key, args = f"{_FORGET}:{uuid.uuid4().hex}", {"session_ids": sorted(session_ids)}
        with closing(Outbox(self._home, server_url=self._server_url, record=self._record)) as outbox:
            # In an order of its own: nothing that fails comes before it.
            outbox.put(provider, _FORGET, key, args, {}, scope=self._scope or "", key=key, leased=False)

    def drop_deletions(self, provider: str) -> None:
        """Remove queued deletions that were just carried out."""
        with closing(self._feed()) as feed:
            self._remove(feed, self._deletions(feed, provider))

    def queued_deletions(self, provider: str) -> set[str]:
        """The sessions whose deletion an interrupted run has queued and not carried out."""
        with closing(self._feed()) as feed:
            contents = [row.content() for row in self._deletions(feed, provider)]
        return {session_id for content in contents if content for session_id in content["args"]["session_ids"]}

    def _feed(self) -> RecordFeed:
        return RecordFeed(self._home, self._server_url, self._record)

    def _remove(self, feed: RecordFeed, rows: Collection[Notification]) -> None:
        """Remove notifications, and their jobs, which would otherwise count as waiting."""
        if rows:
            feed.everyone().feed.notifications.remove([row.id for row in rows])
        if rows and self._file.exists():
            with closing(self._file), self._file.open().writing() as connection:
                connection.executemany("DELETE FROM jobs WHERE notification = ?", [(row.id,) for row in rows])

    def _deletions(self, feed: RecordFeed, provider: str) -> list[Notification]:
        rows = feed.everyone().feed.notifications.select(provider, self._scope or "") if feed.exists() else []
        return [row for row in rows if row.kind == _FORGET]

    def _matching(self, feed: RecordFeed, matcher: TextMatcher) -> Iterator[tuple[Notification, Any, int]]:
        """The notifications with the text, each with its content without the text, and how many times it had it."""
        for row in feed.everyone().feed.notifications.select(None, self._scope) if feed.exists() else []:
            content, count = _without(row.payload, matcher)
            if count:
                yield row, content, count

    def _is_running(self, row: Notification) -> bool:
        if not self._file.exists():
            return False
        with closing(self._file), self._file.open().reading() as connection:
            lease = connection.execute("SELECT owner, until FROM jobs WHERE notification = ?", (row.id,)).fetchone()
        owner, until = lease or (None, None)
        return bool(owner and until and until > time.time() and not has_ended(owner.rpartition("-")[0]))


def _without(payload: str, matcher: TextMatcher) -> tuple[Any, int]:
    """The content of a payload without the text, and how many times it had it; None for an unreadable one."""
    try:
        content = json.loads(payload)
        replaced = matcher.replace_value(content)
        return replaced.value if isinstance(content, dict) else None, replaced.count
    except (ValueError, RecursionError):
        return None, matcher.count(payload)
