"""HTTP/1.1 with h11, which is written in Python: for platforms without httptools."""

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from memoranda.service.http.header_timer import HeaderTimer


class H11Limited(HeaderTimer, H11Protocol):
    """Limits the time for headers; h11 itself limits their size."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_timer()
        else:
            self._stop_timer()
