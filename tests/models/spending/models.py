"""Models for the tests of the ledger: what they answer, and what they say it took, is fixed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoranda.models.model import Message, OnText, Reply, Usage
from memoranda.support.tool import Tool

PRICED = "claude-sonnet-4-5"


@dataclass
class Fixed:
    """Answers the same every time and says that it took the same."""

    usage: Usage = field(default_factory=lambda: Usage(1_000, 100))
    name: str = PRICED
    provider: str = "anthropic"
    window: int = 200_000
    raises: BaseException | None = None
    before: Callable[[], object] = lambda: None
    asked: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        on_text: OnText | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> Reply:
        with self.lock:
            self.asked.append({"system": system, "max_tokens": max_tokens, "deadline": deadline})
        self.before()
        if on_text is not None:
            on_text("yes, ")
        if self.raises is not None:
            raise self.raises
        if on_text is not None:
            on_text("of course")
        return Reply("yes, of course", usage=self.usage)


QUESTION: list[Message] = [{"role": "user", "content": "Is it so?"}]
