"""MCP over standard input and output: one process per client, one message per line, until the client closes its end."""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from memoranda.integrations.mcp.protocol import PARSE_ERROR, ProtocolError, decode, encode, failure
from memoranda.integrations.mcp.server import McpServer

_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_PARALLEL_CALLS = 8
_LAST_CALLS_TIMEOUT = 5.0
_WATCH_INTERVAL = 1.0
_WATCH_ROUNDS = 120


def claim_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Reserves standard input and output for the protocol; other output of this process goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null_device = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_device, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        # Some hosts leave no standard error open.
        os.dup2(null_device, 1)
    os.close(null_device)
    return source, sink


class McpStdioServer:
    """Reads messages until the client closes its end. Tool calls run in parallel, everything else in order."""

    def __init__(self, server: McpServer, source: BinaryIO, sink: BinaryIO) -> None:
        self._server = server
        self._source = source
        self._sink = sink
        self._write_lock = threading.Lock()
        self._free_calls = threading.BoundedSemaphore(_MAX_PARALLEL_CALLS)
        self._calls: dict[threading.Thread, Any] = {}
        self._client_gone = False
        self._finished = threading.Event()

    def serve(self) -> None:
        """Answers until the input ends, then waits a few seconds for tool calls that are still running."""
        if self._server.may_notify:
            threading.Thread(target=self._watch_tools, name="memoranda-mcp-watch", daemon=True).start()
        try:
            self._read_messages()
        finally:
            self._finished.set()
        deadline = time.monotonic() + _LAST_CALLS_TIMEOUT
        for call in list(self._calls):
            call.join(max(0.0, deadline - time.monotonic()))

    def _read_messages(self) -> None:
        while not self._client_gone and (line := self._source.readline(_MAX_LINE_BYTES + 1)):
            if len(line) > _MAX_LINE_BYTES:
                self._skip_line(line)
                self._send(failure(None, ProtocolError(PARSE_ERROR, "This message is too long.")))
            elif line.strip():
                self._handle_line(line)

    def _watch_tools(self) -> None:
        """Notifies the client of tools that appear while it is silent, for as long as a provider may take to start."""
        for _ in range(_WATCH_ROUNDS):
            if self._finished.wait(_WATCH_INTERVAL):
                return
            self._send_notifications()

    def _send_notifications(self) -> None:
        for notification in self._server.notifications():
            self._send(notification)

    def _skip_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._source.readline(_MAX_LINE_BYTES)

    def _handle_line(self, line: bytes) -> None:
        try:
            message = decode(line)
        except ProtocolError as error:
            self._send(failure(None, error))
            return
        method = message.get("method") if isinstance(message, Mapping) else None
        if method == "notifications/cancelled":
            self._cancel_call(message)
        elif method == "tools/call":
            self._free_calls.acquire()
            call = threading.Thread(target=self._run_call, args=(message,), name="memoranda-mcp-call", daemon=True)
            self._calls[call] = message.get("id")
            call.start()
        else:
            self._send(self._server.answer(message))

    def _run_call(self, message: Any) -> None:
        call = threading.current_thread()
        try:
            answer = self._server.answer(message)
            if call in self._calls:
                self._send(answer)
            self._send_notifications()
        finally:
            self._calls.pop(call, None)
            self._free_calls.release()

    def _cancel_call(self, message: Mapping[str, Any]) -> None:
        """Drops the answer of a call that the client cancelled; the call itself runs to its end."""
        params = message.get("params")
        cancelled = params.get("requestId") if isinstance(params, Mapping) else None
        if cancelled is None:
            return
        for call in [call for call, request_id in list(self._calls.items()) if request_id == cancelled]:
            self._calls.pop(call, None)

    def _send(self, answer: Any) -> None:
        if answer is None:
            return
        with self._write_lock:
            if self._client_gone:
                return
            try:
                self._sink.write(encode(answer) + b"\n")
                self._sink.flush()
            except OSError:
                # The client closed its end, so no further answer can be read.
                self._client_gone = True
                with suppress(OSError):
                    self._sink.close()
