"""Doubles of vendors at the edge of the network: real sockets, the vendor's wire format, a state, and faults.

A double answers as the real service was recorded to answer. Recorded answers are in `recorded/<name>.json` in the tests
of a vendor: `{"status": 401, "headers": {…}, "body": …}`, trimmed and without secrets. A fault that is a status is
answered with the recording of that name, if there is one.
"""

import io
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from tests.external.http_service import Exchange, Service, serving
from tests.timing import HANG

Fault = int | Literal["slow", "truncated", "garbage", "down", "empty", "other", "proxy", "huge"]
RETRY_AFTER = 7
_OTHER = {"status": "ok", "service": "gateway", "version": "2.1", "message": "Welcome!", "success": True}
_PROXY = b"<html><head><title>404 Not Found</title></head><body><center>nginx</center></body></html>"
_HUGE_BYTES = 300_000_000
_PART = b'{"results": [' + b" " * 65_523


class VendorDouble(ABC):
    """What a vendor's contract needs of a double, whatever the vendor is: a service, a program or a library."""

    @abstractmethod
    def fail(self, fault: Fault | None) -> None:
        """Answer every request with a fault from now on; None: answer again."""

    @abstractmethod
    def lose_next_answer(self) -> None:
        """Store what comes next, and drop the connection instead of answering."""

    @abstractmethod
    def stored_texts(self) -> Sequence[str]:
        """The text of everything that is stored, in its order; a text may contain more than was sent."""


class HttpDouble(VendorDouble):
    """A double of a service. A vendor's own implements `handle` and `stored_texts`."""

    recorded: ClassVar[Path]
    """The folder with recorded answers."""
    store_path: ClassVar[str]
    """A pattern that finds the requests that store a turn, in `POST /path`."""

    def __init__(self) -> None:
        self.service: Service
        self._fault: Fault | None = None
        self.sent_bytes = 0
        """How much of a huge answer a client has read, or has in its buffers."""
        self._lose = False
        self._lock = threading.Lock()

    @abstractmethod
    def handle(self, exchange: Exchange) -> None:
        """Answer one request from the state; `exchange.body` has its bytes. Called by one thread at a time."""

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[Self]:
        double = cls()
        with serving(double.respond) as double.service:
            yield double

    @property
    def url(self) -> str:
        return self.service.url

    @property
    def requests(self) -> list[tuple[str, str]]:
        """Method and path of every request so far."""
        return [(method, path) for method, path, *_ in self.service.requests]

    def fail(self, fault: Fault | None) -> None:
        self._fault = fault

    def lose_next_answer(self) -> None:
        self._lose = True

    def respond(self, exchange: Exchange) -> None:
        if self._fault is not None:
            self._answer_with_fault(exchange, self._fault)
            return
        stores = re.search(self.store_path, f"{exchange.command} {exchange.path.partition('?')[0]}")
        with self._lock:
            lost, self._lose = self._lose and bool(stores), self._lose and not stores
            if not lost:
                self.handle(exchange)
                return
            exchange.wfile = io.BytesIO()
            self.handle(exchange)
        exchange.reset()

    def answer_recorded(self, exchange: Exchange, name: str) -> None:
        """Answer with a recording."""
        recording = read_recording(self.recorded, name)
        headers = {key.replace("-", "_"): value for key, value in recording.get("headers", {}).items()}
        exchange.answer(recording["status"], recording["body"], **headers)

    def _answer_with_fault(self, exchange: Exchange, fault: Fault) -> None:
        if fault == "slow":
            self.service.ended.wait(HANG)
            exchange.reset()
        elif fault == "down":
            exchange.reset()
        elif fault == "truncated":
            exchange.raw(
                b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"results": ['
            )
        elif fault == "garbage":
            exchange.answer(200, b"<html>It works!</html>")
        elif fault in ("empty", "other"):
            exchange.answer(200, {} if fault == "empty" else _OTHER)
        elif fault == "proxy":
            exchange.answer(404, _PROXY, Content_Type="text/html")
        elif fault == "huge":
            self._answer_without_end(exchange)
        elif (self.recorded / f"{fault}.json").exists():
            self._answer_status(exchange, int(fault), read_recording(self.recorded, str(fault))["body"])
        else:
            self._answer_status(exchange, int(fault), {"detail": f"status {fault}"})

    def _answer_without_end(self, exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        with suppress(ConnectionError):
            while self.sent_bytes < _HUGE_BYTES:
                exchange.wfile.write(_PART)
                self.sent_bytes += len(_PART)

    def _answer_status(self, exchange: Exchange, status: int, body: Any) -> None:
        exchange.answer(status, body, **({"Retry_After": str(RETRY_AFTER)} if status == 429 else {}))


def read_recording(folder: Path, name: str) -> dict[str, Any]:
    recording = json.loads((folder / f"{name}.json").read_text("utf-8"))
    assert isinstance(recording, dict)
    return recording
