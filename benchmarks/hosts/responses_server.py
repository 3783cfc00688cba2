"""A small server that speaks OpenAI's Responses API, as Codex 0.166 calls it, and keeps every request."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

REPLY = "Noted."


class ResponsesServer(ThreadingHTTPServer):
    """Answers every request with the same text; `requests` contains the bodies in the order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> "ResponsesServer":
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
    server: ResponsesServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self.server.requests.append(body)
        self._send("text/event-stream", "".join(map(_format_event, _reply_events(len(self.server.requests)))))

    def do_GET(self) -> None:
        """Answers a request for the list of models with an empty list, because Codex has its own."""
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
