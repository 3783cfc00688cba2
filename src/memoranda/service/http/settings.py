"""The limits of the service, which `memoranda server serve` takes as options."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What one process of the service may do at once, and what one request may cost."""

    threads: int = 8
    """How many requests work on the store at the same time, searches not counted."""
    search_threads: int = 2
    """How many searches work at the same time: each keeps a core busy, and the rest must stay fast."""
    max_waiting: int = 256
    """How many more may wait for a thread; others get 503."""
    max_body_bytes: int = 8_000_000
    max_import_bytes: int = 64_000_000
    """The limit for the bodies of imports, instead of `max_body_bytes`."""
    max_header_bytes: int = 32_768
    """The limit for the request line and all headers together."""
    header_seconds: float = 10.0
    """How long a client may take to send the headers."""
    body_seconds: float = 30.0
    """How long a client may take to send the body."""
    request_seconds: float = 60.0
    """How long a handler may work before the client gets 503."""
    rate: float = 100.0
    """Requests a second for each key; 0 for no limit."""
    burst: int = 400
    """How many requests a key may send at once."""
    max_streams: int = 200
    """How many clients may follow the feed at the same time."""
    shutdown_seconds: float = 20.0
    """How long running requests may take after the service was asked to stop."""
