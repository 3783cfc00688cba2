"""What all requests share: the home, its users' memories, keys, the audit log, limits and counters."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from memoranda.api.memory import Memory
from memoranda.home.access.keys import ApiKeys
from memoranda.home.access.request_log import Answers, AuditLog
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.service.http.callers import Authenticator
from memoranda.service.http.conversations import Conversations
from memoranda.service.http.feed_watch import FeedWatch
from memoranda.service.http.metrics import Metrics
from memoranda.service.http.rate_limit import RateLimit
from memoranda.service.http.settings import ServerSettings
from memoranda.service.http.workers import Workers

_log = logging.getLogger(__name__)

_MAX_USERS = 256


class Service:
    """One process of the service over one open home."""

    def __init__(self, memory: Memory, settings: ServerSettings | None = None, *, loopback_only: bool = True) -> None:
        """`loopback_only` says that the service listens on the loopback address, where no key may be needed."""
        self.memory = memory
        self.settings = settings or ServerSettings()
        self.loopback_only = loopback_only
        self.database = ServiceDatabase(memory.home.root, memory.services.record_location)
        self.keys = ApiKeys(self.database)
        self.audit = AuditLog(self.database)
        self.answers = Answers(self.database)
        self.authenticator = Authenticator(self.keys)
        self.metrics = Metrics()
        self.rate_limit = RateLimit(self.settings.rate, self.settings.burst)
        self.conversations = Conversations()
        self.workers = Workers(self.settings, self.metrics)
        self.feed = FeedWatch(self._read_head, self.workers)
        memory.services.follow_others(self.feed.notify)
        self.stopping = threading.Event()
        self._on_stop: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._memories: OrderedDict[tuple[str | None, int], Memory] = OrderedDict()

    def memory_of(self, user: str | None) -> Memory:
        """The home as one user sees it; None is the home's owner."""
        # A user may have moved to another store of the fleet since the last request.
        key = (user, id(self.memory.services.for_user(user)))
        with self._lock:
            found = self._memories.get(key)
            if found is not None:
                self._memories.move_to_end(key)
                return found
        opened = self.memory.for_user(user)
        with self._lock:
            self._memories[key] = opened
            while len(self._memories) > _MAX_USERS:
                self._memories.popitem(last=False)
        return opened

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call a function when the service is asked to stop, from any thread."""
        self._on_stop.append(callback)

    def _read_head(self) -> object:
        return self.memory.sessions.head()

    def stop(self) -> None:
        """End the requests that wait for something, so that the process can end."""
        self.stopping.set()
        self.feed.notify()
        for callback in self._on_stop:
            callback()

    def close(self) -> None:
        """Close the service's own database; the home belongs to the caller."""
        self.conversations.close()
        self.database.close()
