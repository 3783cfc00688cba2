"""HTTP/1.1 on one connection, with httptools, the parser of Node.js: limits on size and time until a message ends.

The parser limits nothing: it collects headers, trailers and sizes of chunks for as long as a client sends them.
"""

import asyncio
import re
from http import HTTPStatus
from typing import Any, Literal

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from memoranda.service.http.json_text import write_json
from memoranda.service.http.problems import MEDIA_TYPE, Problem

_METHOD = re.compile(rb"[A-Z]{1,20} ")
# A chunk of one byte has five bytes around it; clients may add zeros to its size.
_FRAMING_PER_BYTE = 8


class LimitedProtocol(HttpToolsProtocol):
    """Counts every byte of a message and limits its time, and answers what is not HTTP with a problem of ours."""

    max_header_bytes = 32_768
    header_seconds = 10.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._expected: Literal["headers", "body", "nothing"] = "headers"
        self._allowance = self.max_header_bytes
        """How many bytes that are not body the message may still have: headers, sizes and extensions of chunks."""
        self._timer: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None
        """The request that the application answers; `cycle` is the newest one, which may wait for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._answering is not None:
            # An answer to a client that has left is not written, which would be an error.
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._allowance -= len(data)
        try:
            self._parse(memoryview(data))
        except httptools.HttpParserError as error:
            self._refuse(_problem_of(error, data))
            return
        if self._allowance < 0:
            self._refuse(Problem(431, "too_large", f"Send headers with at most {self.max_header_bytes:,} bytes."))
        elif self._expected == "headers" or self._is_answered():
            # The application limits the time for a body that it reads, and only for that.
            self._start_timer()

    def _parse(self, data: memoryview) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                # The parser ends the message at its headers; read it again as one without the offer, with its body.
                self.parser.feed_data(self._head_without_offer())
                data = data[offer.args[0] :]
            else:
                return

    def _head_without_offer(self) -> bytes:
        method, version = self.scope["method"].encode(), self.scope["http_version"].encode()
        headers = b"".join(b"%b: %b\r\n" % pair for pair in self.headers if pair[0] != b"upgrade")
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, headers)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expected = "headers"

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._expected != "headers":
            raise Problem(431, "trailers", "Send all headers before the body.")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            raise Problem(400, "not_http", "The target of the request is not a path: the service is not a proxy.")
        if self.parser.should_upgrade():
            self.scope["method"] = self.parser.get_method().decode("ascii")
            self.scope["http_version"] = self.parser.get_http_version()
            return
        self._expected = "body"
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._allowance += len(body) * (1 + _FRAMING_PER_BYTE)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._expected != "body":
            return
        # Bytes of the next request that came along are not counted: at most what one read returns.
        self._expected, self._allowance = "nothing", self.max_header_bytes
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._expected == "body":
            self._start_timer()

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _refuse(self, problem: Problem) -> None:
        """Answer without the application, unless the client would take it for another answer; close the connection."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        if self._expected == "headers" and not self._is_answered():
            # The answer to an earlier request comes first, and is the last one.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        is_first_answer = self._expected != "body" or not (self.pipeline or self.cycle.response_started)
        if is_first_answer:
            body = write_json(problem.body(""))
            head = (
                f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _start_timer(self) -> None:
        if self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _problem_of(error: httptools.HttpParserError, data: bytes) -> Problem:
    if isinstance(error.__context__, Problem):
        return error.__context__
    if isinstance(error, httptools.HttpParserInvalidMethodError) and _METHOD.match(data):
        return Problem(405, "wrong_method", "The service knows no such method.")
    return Problem(400, "not_http", "This is not a valid HTTP request.")
