"""A chat model that follows a script and fails on steps that were not used.

    model = ScriptedModel([Reply("Hello."), ModelOverloadedError("busy"), lambda system, messages, tools: Reply("...")])

Each call uses the next step: the model returns a reply, raises an error, or calls a function with the request. As a
context manager it fails at the end if steps are left.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

from memoranda.errors import ModelError
from memoranda.models.model import Message, OnText, Reply, Usage
from memoranda.models.tokens import estimate_message, estimate_request
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import Tool

Answer = Callable[[str, Sequence[Message], Sequence[Tool]], Reply]
Step = Reply | ModelError | Answer


class ScriptError(AssertionError):
    """The calls did not follow the script."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call as the model received it."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    streamed: bool
    max_tokens: int | None
    deadline: float | None


class Scripted:
    """Follows a script; as a context manager it fails at the end if steps are left."""

    _steps: list[Any]

    @property
    def unused(self) -> int:
        """How many steps were not used."""
        return len(self._steps)

    def check(self) -> None:
        """Raises ScriptError if steps are left."""
        if self._steps:
            raise ScriptError(f"{len(self._steps)} steps of the script were not used; the next is {self._steps[0]!r}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        # The exception that is propagating says more than the steps that are left.
        if error is None:
            self.check()


class ScriptedModel(Scripted):
    """A `ChatModel` that follows a script; `requests` has every request that it received."""

    provider = "scripted"

    def __init__(
        self,
        steps: Iterable[Step] | Answer,
        *,
        name: str = "scripted-model",
        window: int = 128_000,
        piece: int = 12,
    ) -> None:
        """`steps` is a list, or one function that answers every call; streams `piece` characters at a time."""
        self.name = name
        self.window = window
        self.requests: list[ModelRequest] = []
        self._always = steps if callable(steps) else None
        self._steps: list[Step] = [] if callable(steps) else list(steps)
        self._piece = piece
        self._lock = threading.Lock()

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
        sent = copy.deepcopy(tuple(messages))
        request = ModelRequest(system, sent, tuple(tools), on_text is not None, max_tokens, deadline)
        step = self._next(request)
        if isinstance(step, ModelError):
            raise step
        reply = step if isinstance(step, Reply) else step(system, sent, tools)
        if on_text is not None:
            for start in range(0, len(reply.text), self._piece):
                on_text(reply.text[start : start + self._piece])
        return self._fill_defaults(reply, request)

    def _next(self, request: ModelRequest) -> Step:
        with self._lock:
            self.requests.append(request)
            if self._always is not None:
                return self._always
            if not self._steps:
                last = request.messages[-1] if request.messages else None
                raise ScriptError(f"The script has no step for call {len(self.requests)}, which ends with {last!r}.")
            return self._steps.pop(0)

    def _fill_defaults(self, reply: Reply, request: ModelRequest) -> Reply:
        """Adds usage, model name and finish reason if the script does not set them."""
        usage = reply.usage
        if usage == Usage():
            sent = estimate_request(request.system, request.messages, request.tools)
            usage = Usage(sent, estimate_message(reply.message()))
        reason = "tool_calls" if reply.tool_calls and reply.finish_reason == "stop" else reply.finish_reason
        return replace(reply, usage=usage, finish_reason=reason, model=reply.model or self.name)
