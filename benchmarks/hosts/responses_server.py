"""A server that speaks OpenAI's Responses API, as Codex 0.166 calls it."""

import json
from typing import Any

from benchmarks.hosts.model_server import REPLY, ModelServer


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
