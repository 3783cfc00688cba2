"""The services of each store of a fleet, over which the users of a home are distributed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from memoranda.home import config
from memoranda.storage.files.fork_lock import ForkLock
from memoranda.support.home import Home
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
        self._lock = ForkLock()
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
