"""One conversation as every program under measurement gets it; standard library only."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.sessions.corpus import Message


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session with its messages, and the system prompt it ran under."""

    id: str
    title: str
    source: str
    chinese: bool
    started_at: float
    messages: list[Message]
    system_prompt: str | None = None

    def as_json(self) -> str:
        fields = asdict(self)
        fields["messages"] = [
            {name: value for name, value in message.items() if value is not None} for message in fields["messages"]
        ]
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Conversation":
        fields: dict[str, Any] = json.loads(text)
        fields["messages"] = [Message(**message) for message in fields["messages"]]
        return cls(**fields)
