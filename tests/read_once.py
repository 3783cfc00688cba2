"""What is read once in a test process: the certificates of the machine, and the list of installed packages.

Every HTTP client reads all certificates when it is created, and every search for providers reads the descriptions of
all packages: each as long as several tests take. The tests speak plain HTTP to servers of their own, and none installs
a package.
"""

import functools
import importlib.metadata
import ssl
import sys
from typing import Any


def read_certificates_and_packages_once() -> None:
    """Answer from memory from now on."""
    _share_default_contexts()
    _share_entry_points()


def _share_default_contexts() -> None:
    """Let clients that ask for the same certificates have the same context; contexts of servers stay apart."""
    create = ssl.create_default_context
    create_once = functools.cache(create)

    @functools.wraps(create)
    def create_or_share(purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH, **certificates: Any) -> ssl.SSLContext:
        return (create_once if purpose is ssl.Purpose.SERVER_AUTH else create)(purpose, **certificates)

    ssl.create_default_context = create_or_share


def _share_entry_points() -> None:
    """Let modules that are imported later find entry points once for each `sys.path`."""
    find = importlib.metadata.entry_points

    @functools.cache
    def find_once(path: tuple[str, ...], **wanted: str) -> Any:
        return find(**wanted)

    find_or_share: Any = functools.wraps(find)(lambda **wanted: find_once(tuple(sys.path), **wanted))
    importlib.metadata.entry_points = find_or_share
