"""One TLS context for all HTTP clients of a test process.

Every client reads all certificates of the machine when it is created: as long as twenty tests of a function take, and
the tests speak plain HTTP to servers of their own.
"""

import functools
import ssl
from typing import Any


def share_default_contexts() -> None:
    """Let clients that ask for the same certificates have the same context; contexts of servers stay apart."""
    create = ssl.create_default_context
    create_once = functools.cache(create)

    @functools.wraps(create)
    def create_or_share(purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH, **certificates: Any) -> ssl.SSLContext:
        return (create_once if purpose is ssl.Purpose.SERVER_AUTH else create)(purpose, **certificates)

    ssl.create_default_context = create_or_share
