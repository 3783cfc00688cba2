"""An HTTP server for tests that follows a script and speaks OpenAI's chat completions and Anthropic's messages API.

It also answers OpenAI's `/embeddings` and `/models`, for which the script needs no steps.

    with ScriptedServer([Reply("Hello."), Refuse(429), Cut(Reply("Half of this"))]) as server:
        OpenAIChat(ModelSettings(name="any", base_url=server.openai_url), "key")

Each request uses the next step, or one function answers them all; `received` has the requests. As a program it serves a
script from a file or from a function:

    python -m memoranda.testing.scripted --port 0 --log requests.jsonl --script script.json

Without a script the program answers by rules (`rules.py`).

`ScriptedCache` simulates the prompt caches of both APIs, to count the cached tokens of a request. OpenAI-compatible
services read the longest known prefix from the cache. Anthropic caches at the breakpoints of a request, and finds a
cached prefix that ends at a breakpoint or up to twenty blocks before one.
"""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, assert_never

from memoranda.models.model import Reply, Usage
from memoranda.models.tokens import estimate_message, estimate_text
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.embeddings import answer_embeddings
from memoranda.testing.scripted.model import Scripted, ScriptError
from memoranda.testing.scripted.steps import Body, Cut, Garbage, ReceivedRequest, Refuse, Script, Slow, Step, Trouble
from memoranda.testing.scripted.wire_format import Event, error_body, events, trouble, whole

_LOOKBACK = 20


class ScriptedCache:
    """The caches of both APIs; it keeps fingerprints, not texts."""

    def __init__(self) -> None:
        self._prefixes: set[bytes] = set()
        self._written: set[bytes] = set()

    def usage(self, received: ReceivedRequest) -> Usage:
        """The input tokens of a request, including cached ones; adds the request to the cache."""
        return self._anthropic(received.json) if received.api == "anthropic" else self._openai(received.json)

    def _openai(self, body: JsonObject) -> Usage:
        parts = [_text(part) for part in (*(body.get("tools") or ()), *(body.get("messages") or ()))]
        tokens = [estimate_text(part) for part in parts]
        digests = list(prefix_digests(parts))
        known = next((index for index, digest in enumerate(digests) if digest not in self._prefixes), len(digests))
        self._prefixes.update(digests)
        return Usage(sum(tokens), cache_read_tokens=sum(tokens[:known]))

    def _anthropic(self, body: JsonObject) -> Usage:
        blocks = _blocks(body)
        parts = [_text({key: value for key, value in block.items() if key != "cache_control"}) for block in blocks]
        tokens = [estimate_text(part) for part in parts]
        digests = list(prefix_digests(parts))
        breakpoints = [index for index, block in enumerate(blocks) if "cache_control" in block]
        known = [
            index + 1
            for position in breakpoints
            for index in range(max(0, position - _LOOKBACK + 1), position + 1)
            if digests[index] in self._written
        ]
        read = max(known, default=0)
        end = max(breakpoints, default=-1) + 1
        self._written.update(digests[position] for position in breakpoints)
        return Usage(
            sum(tokens), cache_read_tokens=sum(tokens[:read]), cache_write_tokens=sum(tokens[read : max(read, end)])
        )


def prefix_digests(parts: Sequence[str]) -> Iterator[bytes]:
    """The fingerprint of the parts up to and including each one."""
    running = hashlib.sha256()
    for part in parts:
        running.update(len(part).to_bytes(8, "big"))
        running.update(part.encode("utf-8", "surrogatepass"))
        yield running.digest()[:16]


def _blocks(body: JsonObject) -> list[JsonObject]:
    """Everything that the cache covers, in its order: tools, system prompt, messages."""
    system = body.get("system") or []
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    messages = [
        {"role": entry.get("role")} | block
        for entry in body.get("messages") or ()
        for block in _as_list(entry.get("content"))
    ]
    return [*(body.get("tools") or ()), *system, *messages]


def _as_list(content: Any) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _text(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, sort_keys=True)


_PATHS = ("/chat/completions", "/messages")
_EMBEDDINGS = "/embeddings"
_MODELS: JsonObject = {
    "object": "list",
    "data": [
        {"id": name, "object": "model", "created": 1, "owned_by": "memoranda"}
        for name in ("scripted-model", "scripted-embeddings")
    ],
}
_TOO_LONG = {
    "openai": ("context_length_exceeded", "This model's maximum context length is {window} tokens, not {tokens}."),
    "anthropic": ("invalid_request_error", "prompt is too long: {tokens} tokens > {window} maximum"),
}


class ScriptedServer(Scripted):
    """The server, which runs until `close`; as a context manager it fails at the end if steps are left."""

    def __init__(
        self,
        steps: Iterable[Step | Script] | Script,
        *,
        port: int = 0,
        log: Path | None = None,
        window: int = 0,
        key: str = "",
        embeddings: Script = answer_embeddings,
    ) -> None:
        """Refuses requests with more than `window` tokens (0: no limit) or with another `key` ("": any key).

        `embeddings` answers the requests for embeddings, which use no step.
        """
        self.received: list[ReceivedRequest] = []
        self.usages: list[Usage] = []
        self.stopped = threading.Event()
        self._always = steps if callable(steps) else None
        self._steps: list[Step | Script] = [] if callable(steps) else list(steps)
        self._log = log
        self._window = window
        self._key = key
        self._embeddings = embeddings
        self._cache = ScriptedCache()
        self._lock = threading.Lock()
        self._http = _HttpServer(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base address for Anthropic's SDK."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The base address for OpenAI's SDK."""
        return f"{self.url}/v1"

    def close(self) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
        super().__exit__(kind, error, trace)

    def take(self, path: str, headers: dict[str, str], text: str) -> tuple[ReceivedRequest, Step, Usage]:
        """Records a request; returns it with its step and the tokens it used."""
        with self._lock:
            received = ReceivedRequest(len(self.received) + 1, time.time(), path, headers, text)
            self.received.append(received)
            if self._log is not None:
                record = {"number": received.number, "at": received.at, "path": path, "headers": headers, "body": text}
                with self._log.open("a") as file:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
            refusal = self._refusal(received)
            step = refusal or self._next(received)
            used = self._cache.usage(received) if refusal is None else Usage()
            self.usages.append(used)
        return received, step if not callable(step) else step(received), used

    def _next(self, received: ReceivedRequest) -> Step | Script:
        if received.resource.endswith(_EMBEDDINGS):
            return self._embeddings
        if self._always is not None:
            return self._always
        if self._steps:
            return self._steps.pop(0)
        return Refuse(418, f"The script has no step for request {received.number}.")

    def _refusal(self, received: ReceivedRequest) -> Refuse | None:
        key = received.headers.get("x-api-key") or received.headers.get("authorization", "").removeprefix("Bearer ")
        if not received.resource.endswith((*_PATHS, _EMBEDDINGS)):
            return Refuse(404, f"There is nothing at {received.path}.")
        if not received.json:
            return Refuse(400, "The body is not a JSON object.")
        if self._key and key != self._key:
            return Refuse(401, f"Incorrect API key provided: {key}", "invalid_api_key")
        if self._window:
            tokens = ScriptedCache().usage(received).input_tokens
            if tokens > self._window:
                code, words = _TOO_LONG[received.api]
                return Refuse(400, words.format(window=self._window, tokens=tokens), code)
        return None


class _HttpServer(ThreadingHTTPServer):
    """Passes every request to the scripted server."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], owner: ScriptedServer) -> None:
        self.owner = owner
        super().__init__(address, _ScriptHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnect in the middle, which many scripts cause."""


class _ScriptHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The server sends an answer in many small pieces, which must not wait for each other.
    disable_nagle_algorithm = True
    server: _HttpServer
    _pause_between = 0.0

    def do_GET(self) -> None:
        found = self.path.partition("?")[0].rstrip("/").endswith("/models")
        refusal = error_body("openai", Refuse(404, f"There is nothing at {self.path}."))
        self._send(200 if found else 404, json.dumps(_MODELS if found else refusal))

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in self.headers.items()}
        received, step, used = self.server.owner.take(self.path, headers, text)
        if isinstance(step, Slow):
            self._pause(step.before)
            self._pause_between = step.between
            step = step.step
        self._perform(received, step, used)

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing: `received` and the log file have the requests."""

    def _perform(self, received: ReceivedRequest, step: Step, used: Usage) -> None:
        match step:
            case Reply():
                self._answer(received, _with_usage(step, used))
            case Refuse():
                self._send(step.status, json.dumps(error_body(received.api, step)), headers=dict(step.headers))
            case Body():
                self._send(step.status, json.dumps(step.json, ensure_ascii=False))
            case Garbage() if received.streamed and step.status == 200:
                self._send_events([("message_start", line) for line in step.text.splitlines()])
            case Garbage():
                self._send(step.status, step.text, step.content_type)
            case Cut():
                self._answer(received, _with_usage(step.reply, used), step)
            case Trouble() if received.streamed:
                stream = list(events(received.api, step.reply, received.number, with_usage=False))[: step.after]
                self._send_events([*stream, trouble(received.api, step.code, step.message)])
            case Trouble():
                refusal = Refuse(500, step.message, step.code)
                self._send(refusal.status, json.dumps(error_body(received.api, refusal)))
            case Slow():
                raise ScriptError("A slow step cannot contain another slow step.")
            case _:
                assert_never(step)

    def _answer(self, received: ReceivedRequest, reply: Reply, cut: Cut | None = None) -> None:
        if not received.streamed:
            body = json.dumps(whole(received.api, reply, received.number), ensure_ascii=False)
            self._send(200, body, cut_at=None if cut is None else len(body) // 2)
            return
        wants_usage = bool((received.json.get("stream_options") or {}).get("include_usage"))
        stream = list(events(received.api, reply, received.number, with_usage=wants_usage))
        self._send_events(stream if cut is None else stream[: cut.after], whole=cut is None or cut.clean)

    def _send(
        self,
        status: int,
        text: str,
        content_type: str = "application/json",
        *,
        headers: dict[str, str] | None = None,
        cut_at: int | None = None,
    ) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"content-type": content_type, "content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        sent = body[:cut_at]
        size = 64 if self._pause_between else 65_536
        for chunk in (sent[start : start + size] for start in range(0, len(sent), size)):
            self.wfile.write(chunk)
            self._pause(self._pause_between)
        if cut_at is not None:
            self._drop()

    def _send_events(self, stream: Iterable[Event], *, whole: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in stream:
            event = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
            chunk = event.encode()
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.flush()
            self._pause(self._pause_between)
        if whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._drop()

    def _drop(self) -> None:
        """Ends the connection as a failing network does."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _pause(self, seconds: float) -> None:
        if seconds:
            self.server.owner.stopped.wait(seconds)


def _with_usage(reply: Reply, used: Usage) -> Reply:
    """The reply with the tokens that it would have used, unless the script sets them."""
    if reply.usage != Usage():
        return reply
    written = Usage(output_tokens=estimate_message(reply.message()))
    return Reply(
        reply.text, reply.tool_calls, used + written, reply.finish_reason,
        reply.model, reply.reasoning, reply.reasoning_details,
    )  # fmt: skip
