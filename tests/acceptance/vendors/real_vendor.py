"""What `make vendors` needs of a vendor: how its real server is installed, started and inspected on this machine."""

# Methods that do nothing by default are intended.
# ruff: noqa: B027

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


class CannotRun(Exception):
    """A vendor cannot run on this machine; the message says why."""


class RealVendor(ABC):
    """One way to run a vendor. A module of this folder lists its ways in `VENDORS`.

    `install` and `start` begin on a bare machine: nothing but Python, uv or npm may be there. Everything goes into
    `self.folder`, which stays, so a second run installs nothing.
    """

    name: ClassVar[str]
    """The name of the provider."""
    title: ClassVar[str]
    """The vendor and the way it runs, such as `Mem0, library`."""
    recalls_facts: ClassVar[bool] = True
    """False if recall depends on a real model, so that nothing is expected of a scripted one."""

    folder_name: ClassVar[str] = ""
    """The folder in the cache, if several ways share one; else it is named like the title."""

    def __init__(self, cache: Path) -> None:
        name = self.folder_name or self.title.lower().replace(",", "").replace(" ", "-")
        self.folder = cache.resolve() / name
        self.folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def install(self) -> None:
        """Install the server or the library; raises CannotRun."""

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers; raises CannotRun."""

    @abstractmethod
    def stop(self) -> None:
        """Stop everything that `start` has started. May be called without `start`."""

    @property
    def port(self) -> int | None:
        """The server's port on this machine; None for a library or a program."""
        return None

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, Any]:
        """The provider's settings; `url` leads to the server through a gate, and is empty without a port."""

    def variables(self) -> Mapping[str, str]:
        """Variables for `.env`, such as keys."""
        return {}

    @abstractmethod
    def stored_texts(self) -> Sequence[str]:
        """The texts that are stored at the server for the owner of the home, in their order.

        Ask the server itself, not the provider. A text may contain more than one turn.
        """

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Calls of the provider's tools, in an order in which all of them succeed."""
        return ()

    def settle(self) -> None:
        """Wait until the server has processed what it accepted."""

    def begin_outage(self) -> None:
        """Make a library or a program fail; a server is cut off by the gate."""
        raise NotImplementedError

    def end_outage(self) -> None:
        raise NotImplementedError

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        """The processes that `start` has started, for their memory."""
        return ()
