"""Which UUID Zep gave to the user and to each conversation, in the record of what was sent.

The record can be lost: the user is then looked up by its id, and the threads by their first message, whose metadata
names the conversation. What was deleted at Zep is created again.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.vendors.sent_record import SentItem, SentRecord
from memoranda.external.vendors.zep.client import ZepClient

SOURCE = "memoranda"
IDS = ("user", "thread", "threads_found")
"""The kinds of rows in the record that are ids, not deliveries."""

Result = TypeVar("Result")


class ZepDirectory:
    """Finds or creates the user and the threads of one user of a home. Thread-safe."""

    def __init__(self, client: ZepClient, sent: SentRecord, user_id: str) -> None:
        self._client = client
        self._sent = sent
        self._user_id = user_id
        self._lock = threading.RLock()

    def find_user(self, timeout: float | None = None) -> str:
        """The UUID of the user; empty when Zep does not know the user yet."""
        known = self._sent.find("user", self._user_id)
        if known:
            return known
        found = self._client.look_up_user(self._user_id, timeout)
        return self._remember("user", self._user_id, str(found["uuid"])) if found and found.get("uuid") else ""

    def find_thread(self, session_id: str) -> str:
        """The UUID of a conversation's thread; empty when this home knows none."""
        return self._sent.find("thread", self._thread_id(session_id)) or ""

    def with_user(self, call: Callable[[str], Result]) -> Result:
        """Call with the UUID of the user, who is created if necessary, also if Zep has deleted the user meanwhile."""
        return self._with_id(self._make_user, call)

    def with_thread(self, session_id: str, call: Callable[[str], Result]) -> Result:
        """Call with the UUID of a conversation's thread, which is created if necessary."""
        return self._with_id(lambda: self._make_thread(session_id), call)

    def remove(self, session_id: str = "") -> None:
        """Forget the id of a thread that was deleted; without one, the ids of the user and of all threads."""
        for item in self.ids():
            if not session_id or item.local_id == self._thread_id(session_id):
                self._sent.remove(item)

    def ids(self) -> list[SentItem]:
        """The rows of this user in the record that are ids."""
        return [
            item for item in self._sent.items() if item.kind in IDS and item.local_id.split(" ")[0] == self._user_id
        ]

    def _thread_id(self, session_id: str) -> str:
        return f"{self._user_id} {session_id}"

    def _with_id(self, make: Callable[[], str], call: Callable[[str], Result]) -> Result:
        try:
            return call(make())
        except PermanentProviderError as error:
            if error.status != 404:
                raise
        # The user or the thread was deleted at Zep: find or create them again.
        with self._lock:
            self.remove()
        return call(make())

    def _make_user(self) -> str:
        with self._lock:
            if known := self.find_user():
                return known
            row = self._client.create_user(self._user_id, {"source": SOURCE})
            row = row or self._client.look_up_user(self._user_id)
            if not row or not row.get("uuid"):
                raise TemporaryProviderError(f"Zep has not created the user {self._user_id} yet.")
            self._remember("threads_found", self._user_id, "")
            return self._remember("user", self._user_id, str(row["uuid"]))

    def _make_thread(self, session_id: str) -> str:
        with self._lock:
            if known := self.find_thread(session_id):
                return known
            user_uuid = self._make_user()
            if self._sent.find("threads_found", self._user_id) is None:
                self._find_threads(user_uuid)
                if known := self.find_thread(session_id):
                    return known
            row = self._client.create_thread(user_uuid)
            if not row.get("uuid"):
                raise TemporaryProviderError("Zep gave the new thread no id.")
            return self._remember_thread(session_id, str(row["uuid"]))

    def _find_threads(self, user_uuid: str) -> None:
        """Fill an empty record with the threads that Zep has, by the conversations that their messages name."""
        for thread in self._client.list_threads(user_uuid):
            first = self._client.oldest_message(str(thread["uuid"])) or {}
            about = first.get("metadata") or {}
            if about.get("source") == SOURCE and about.get("session"):
                self._remember_thread(str(about["session"]), str(thread["uuid"]))
        self._remember("threads_found", self._user_id, "")

    def _remember(self, kind: str, local_id: str, remote_id: str) -> str:
        self._sent.add(kind, local_id, remote_id)
        return remote_id

    def _remember_thread(self, session_id: str, thread_uuid: str) -> str:
        self._sent.add("thread", self._thread_id(session_id), thread_uuid, session_id)
        return thread_uuid
