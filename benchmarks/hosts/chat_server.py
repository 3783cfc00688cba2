"""A server that speaks OpenAI's Chat Completions API, as OpenCode 1.18 calls a provider in its settings."""

import json
from typing import Any

from benchmarks.hosts.model_server import REPLY, ModelServer


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
