"""MCP over standard input and output: one process for one host, one message a line, gone when the host is."""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from memoranda.adapters.mcp.server import Server
from memoranda.adapters.mcp.wire import PARSE_ERROR, ProtocolError, decode, encode, failure

_LONGEST_LINE = 16 * 1024 * 1024
_MOST_CALLS = 8
_LAST_CALLS_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_LOOKS = 120


def take_over() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone: whatever else prints or reads in this process does no harm."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        # Some hosts leave no standard error open.
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink


class StdioServer:
    """Reads messages until the host closes its end. Calls of tools run beside each other; everything else in order."""

    def __init__(self, server: Server, source: BinaryIO, sink: BinaryIO) -> None:
        self._server = server
        self._source = source
        self._sink = sink
        self._writing = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_CALLS)
        self._calls: dict[threading.Thread, Any] = {}
        self._gone = False
        self._over = threading.Event()

    def serve(self) -> None:
        """Answer until the input ends, and a little longer for calls that are under way."""
        if self._server.may_have_news:
            threading.Thread(target=self._watch, name="memoranda-mcp-news", daemon=True).start()
        try:
            self._read()
        finally:
            self._over.set()
        deadline = time.monotonic() + _LAST_CALLS_SECONDS
        for call in list(self._calls):
            call.join(max(0.0, deadline - time.monotonic()))

    def _read(self) -> None:
        while not self._gone and (line := self._source.readline(_LONGEST_LINE + 1)):
            if len(line) > _LONGEST_LINE:
                self._skip_line(line)
                self._send(failure(None, ProtocolError(PARSE_ERROR, "This message is too long.")))
            elif line.strip():
                self._take(line)

    def _watch(self) -> None:
        """Tell the host of tools that come while it is silent, for as long as a provider may take to start."""
        for _ in range(_LOOKS):
            if self._over.wait(_LOOK_SECONDS):
                return
            self._tell_news()

    def _tell_news(self) -> None:
        for notice in self._server.news():
            self._send(notice)

    def _skip_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._source.readline(_LONGEST_LINE)

    def _take(self, line: bytes) -> None:
        try:
            message = decode(line)
        except ProtocolError as error:
            self._send(failure(None, error))
            return
        method = message.get("method") if isinstance(message, Mapping) else None
        if method == "notifications/cancelled":
            self._cancel(message)
        elif method == "tools/call":
            self._room.acquire()
            call = threading.Thread(target=self._run, args=(message,), name="memoranda-mcp-call", daemon=True)
            self._calls[call] = message.get("id")
            call.start()
        else:
            self._send(self._server.answer(message))

    def _run(self, message: Any) -> None:
        call = threading.current_thread()
        try:
            answer = self._server.answer(message)
            if call in self._calls:
                self._send(answer)
            self._tell_news()
        finally:
            self._calls.pop(call, None)
            self._room.release()

    def _cancel(self, message: Mapping[str, Any]) -> None:
        """A host that no longer waits gets no answer; what the call does, it does."""
        params = message.get("params")
        wanted = params.get("requestId") if isinstance(params, Mapping) else None
        for call in [call for call, number in list(self._calls.items()) if wanted is not None and number == wanted]:
            self._calls.pop(call, None)

    def _send(self, answer: Any) -> None:
        if answer is None:
            return
        with self._writing:
            if self._gone:
                return
            try:
                self._sink.write(encode(answer) + b"\n")
                self._sink.flush()
            except OSError:
                # A host that is gone reads no answers; there is nobody left to serve.
                self._gone = True
                with suppress(OSError):
                    self._sink.close()
