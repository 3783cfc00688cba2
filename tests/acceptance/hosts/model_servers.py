"""Small local servers in place of model vendors: they give every request the same answer, and store the requests."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

REPLY = "Noted."


class ModelServer(ThreadingHTTPServer):
    """Stores the bodies of requests in the order in which they arrived; a subclass speaks the API of one vendor."""

    daemon_threads = True
    path = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self.path}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        """Returns the content type and the text of an answer, and stores the request."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self._send(*self.server.answer(self.path, body))

    def do_GET(self) -> None:
        """Answers requests for the list of models with none, because the program knows its own."""
        self._send("application/json", '{"models": []}')

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing."""

    def _send(self, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ChatServer(ModelServer):
    """Stores the requests that offer tools, which belong to the conversation; the others are for titles."""

    path = "/v1"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        if body.get("tools"):
            self.requests.append(body)
        chunk = {"id": "chat", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        text = {"role": "assistant", "content": REPLY}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        chunks = [
            {**chunk, "choices": [{"index": 0, "delta": text, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        ]
        lines = [*map(json.dumps, chunks), "[DONE]"]
        return "text/event-stream", "".join(f"data: {line}\n\n" for line in lines)


class GeminiServer(ModelServer):
    """Stores the requests for a streamed answer, which belong to the conversation; the others are for titles."""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        content = {"role": "model", "parts": [{"text": REPLY}]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        reply = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
        if ":streamGenerateContent" in path:
            self.requests.append(body)
            return "text/event-stream", f"data: {json.dumps(reply)}\r\n\r\n"
        return "application/json", json.dumps({"totalTokens": 1} if ":countTokens" in path else reply)


class ResponsesServer(ModelServer):
    """Answers `POST /v1/responses` with a stream of events."""

    path = "/v1"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        self.requests.append(body)
        return "text/event-stream", "".join(map(_format_event, _reply_events(len(self.requests))))


def _reply_events(number: int) -> list[dict[str, Any]]:
    response = {"id": f"resp_{number}"}
    message = {"type": "message", "role": "assistant", "id": f"msg_{number}"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": response},
        {
            "type": "response.output_item.done",
            "item": {**message, "content": [{"type": "output_text", "text": REPLY}]},
        },
        {"type": "response.completed", "response": {**response, "usage": usage}},
    ]


def _format_event(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
