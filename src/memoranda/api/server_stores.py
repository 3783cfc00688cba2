"""The stores of a fleet, over which the users of a home are distributed: each is opened when it is needed.

A store is opened by its first request. A store whose users have all moved away gets none, so this node also opens every
store of which it has indexes, and these follow deletions before any user comes.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from memoranda.errors import HomeError, MemorandaError
from memoranda.home import config
from memoranda.support.home import Home, server_index_path
from memoranda.upkeep.home_tables import component_schemas


class Closable(Protocol):
    def close(self) -> None: ...


_Services = TypeVar("_Services", bound=Closable)


class StoreServices(Generic[_Services]):
    """Opens a store when the first of its users comes, and closes all of them together."""

    def __init__(self, home: Home, settings: config.Config, create: Callable[[config.Config], _Services]) -> None:
        """`create` makes the services of one store out of settings that name only that store."""
        from memoranda.home.shards.directory import Directory

        self._urls = config.store_urls(home, settings)
        self._settings = settings
        self._create = create
        self._lock = threading.Lock()
        self._services: dict[int, _Services] = {}
        self._directory = Directory(self._urls, component_schemas())

    def of_user(self, user: str | None) -> _Services:
        """The services of the store that has a user now."""
        return self.of_store(self._directory.store_of(user))

    def of_store(self, number: int) -> _Services:
        """The services of one store."""
        with self._lock:
            services = self._services.get(number)
            if services is None:
                store = replace(self._settings.store, url=self._urls[number], servers=())
                services = self._services[number] = self._create(replace(self._settings, store=store))
            return services

    def refresh(self) -> None:
        """Read the map of users again, after a store has said that a user has moved."""
        self._directory.refresh()

    def close(self) -> None:
        for services in self._services.values():
            services.close()
        self._directory.close()


_log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0


def open_indexed_stores(home: Home, settings: config.Config, open_store: Callable[[int], object]) -> None:
    """Call `open_store`, in a thread, with the number of each store of which the home has indexes, until it succeeds.

    Starting does not wait for a server that cannot be reached. The thread ends when the home is closed.
    """
    urls = config.store_urls(home, settings) or [config.server_url(home, settings)]
    names = [server_index_path(home.root, url).stem for url in urls]
    numbers = [number for number, name in enumerate(names) if any(home.root.glob(f"{name}.*"))]
    if numbers:
        threading.Thread(target=_open_all, args=(numbers, open_store), name="memoranda-open", daemon=True).start()


def _open_all(numbers: list[int], open_store: Callable[[int], object]) -> None:
    while numbers:
        try:
            open_store(numbers[0])
            numbers.pop(0)
        except HomeError:
            # The home was closed.
            return
        except MemorandaError as error:
            _log.warning("Deletions do not reach an index of this node yet: %s", error)
            # Another store may be available.
            numbers.append(numbers.pop(0))
            time.sleep(_RETRY_SECONDS)
