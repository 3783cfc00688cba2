"""HTTP/1.1 with httptools, the parser of Node.js: a request costs a third of what it costs with h11."""

import re
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memoranda.service.http.header_timer import HeaderTimer
from memoranda.service.http.json_text import write_json
from memoranda.service.http.problems import MEDIA_TYPE, Problem

_METHOD = re.compile(rb"[A-Z]{1,20} ")


class HttpToolsLimited(HeaderTimer, HttpToolsProtocol):
    """Limits the time and the size of headers, and answers what is not HTTP with a problem of ours."""

    max_header_bytes = 32_768

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_bytes = 0
        self._in_headers = True
        """Whether the headers of a request are awaited: from its first byte on, and on a new connection at once."""

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        was_in_headers = self._in_headers
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            if isinstance(error, httptools.HttpParserInvalidMethodError) and _METHOD.match(data):
                self._refuse(Problem(405, "wrong_method", "The service knows no such method."))
            else:
                self._refuse(Problem(400, "not_http", "This is not a valid HTTP request."))
        except httptools.HttpParserUpgrade:
            # It is answered as if it had not asked. What follows on the connection may be another protocol.
            self.cycle.keep_alive = False
        if self._in_headers:
            self._limit_headers(len(data) if was_in_headers else 0)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers = True

    def on_headers_complete(self) -> None:
        self._in_headers, self._header_bytes = False, 0
        self._stop_timer()
        if not self.url.startswith(b"/"):
            # An address with a host is for proxies; the parser reports this as an invalid request.
            raise ValueError("the target of the request is not a path")
        super().on_headers_complete()

    def _limit_headers(self, size: int) -> None:
        """Count bytes of incomplete headers, which the parser collects, and limit the time for the rest of them.

        Bytes that came together with the end of another request are not counted: at most what one read returns.
        """
        self._header_bytes += size
        if self._header_bytes > self.max_header_bytes:
            self._refuse(Problem(431, "too_large", f"Send headers with at most {self.max_header_bytes:,} bytes."))
        else:
            self._start_timer()

    def _refuse(self, problem: Problem) -> None:
        """Answer without the application, which has no request to look at, and close the connection."""
        self._in_headers = False
        self._stop_timer()
        if self.transport.is_closing():
            return
        body = write_json(problem.body(""))
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
