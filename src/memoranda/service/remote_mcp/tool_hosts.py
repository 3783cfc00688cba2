"""The tool hosts of a service: one per user, shared by all connections of that user."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from memoranda.api.memory import Memory
from memoranda.integrations.tool_host import ToolHost

_MAX_HOSTS = 256
_SOURCE = "mcp"


class ToolHosts:
    """Creates the tool host of a user at the first request; the ones that were not used for longest are closed."""

    def __init__(self, memory_of: Callable[[str | None], Memory], *, max_hosts: int = _MAX_HOSTS) -> None:
        self._memory_of = memory_of
        self._max_hosts = max_hosts
        self._lock = threading.Lock()
        self._hosts: OrderedDict[str | None, ToolHost] = OrderedDict()

    def of(self, user: str | None) -> ToolHost:
        """The tool host of a user, as stored; None is the home's owner."""
        with self._lock:
            if user in self._hosts:
                self._hosts.move_to_end(user)
                return self._hosts[user]
        created = ToolHost(self._memory_of(user), source=_SOURCE)
        with self._lock:
            host = self._hosts.setdefault(user, created)
            surplus = [self._hosts.popitem(last=False)[1] for _ in range(len(self._hosts) - self._max_hosts)]
        for old in surplus:
            old.close()
        return host

    def close(self) -> None:
        """Ends the sessions behind the tools."""
        with self._lock:
            hosts = list(self._hosts.values())
            self._hosts.clear()
        for host in hosts:
            host.close()
