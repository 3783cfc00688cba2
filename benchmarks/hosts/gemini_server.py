"""A server that speaks the Gemini API, as Gemini CLI 0.61 calls it."""

import json
from typing import Any

from benchmarks.hosts.model_server import REPLY, ModelServer


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
