"""Closes a connection whose client does not send complete headers in time, whatever parses them."""

import asyncio
from typing import Any


class HeaderTimer(asyncio.Protocol):
    """The part of a protocol that waits for headers: on a new connection at once, later when the parser says so."""

    header_seconds = 10.0
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_seconds, self._close_slow_connection)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_slow_connection(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing():
            self.transport.close()
