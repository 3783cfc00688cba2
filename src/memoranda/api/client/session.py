"""A conversation at a service, and its turns."""

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self, cast

from memoranda.api.client import curated
from memoranda.api.client.curated import Target
from memoranda.api.client.session_store import RemoteSessionStore, session_path
from memoranda.api.client.transport import Request, Transport, without_none
from memoranda.errors import SessionBusyError, SessionError, UnknownSessionError
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject, Tool, facts_of
from memoranda.types import ChatMessage, MemoryAnswer

Reply = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
TURN_WAIT = 30.0
BUSY_PAUSE = 0.1
"""The seconds after which a turn asks again whether another one has ended."""


@dataclass(frozen=True, slots=True)
class UndoneTurn:
    """A turn that was undone: the user's text, how many messages left the context, and what it saved in memory."""

    text: str
    messages: int
    saved: tuple[JsonObject, ...] = ()


class RemoteSession:
    """One conversation at a service. After compression it is the same object with another `id` and another prompt."""

    def __init__(self, transport: Transport, session_id: str, options: Mapping[str, str]) -> None:
        self.id = session_id
        self.source = options["source"]
        self._transport = transport
        self._options = {name: value for name, value in options.items() if value}
        self._opened: JsonObject | None = None

    def open(self) -> None:
        """Start or resume the session now, so that its prompt and its tools are known without another request."""
        self._open()

    @property
    def is_open(self) -> bool:
        """Whether the prompt and the tools are known."""
        return self._opened is not None

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        return str(self._open()["prompt"])

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call, as far as the key allows it."""
        return tuple(
            Tool(
                tool["name"],
                tool["description"],
                tool["parameters"],
                self._caller_of(tool["name"]),
                facts=facts_of(tool["name"]),
            )
            for tool in self._open()["tools"]
        )

    def turn(self, text: Any, *, wait: float = TURN_WAIT) -> "RemoteTurn":
        """Begin a turn: the user's message (text or structured content) is durable when this returns.

        While another turn of the conversation is in progress, this waits for up to `wait` seconds, then raises
        SessionBusyError. Raises SessionError for an empty message.
        """
        deadline = time.monotonic() + wait
        while True:
            try:
                answer = self._transport.write("POST", self._path("turns"), {"content": text, **self._options})
                break
            except SessionBusyError:
                # The service never waits.
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise
                time.sleep(min(BUSY_PAUSE, remaining))
        if answer["session_id"] != self.id:
            # The conversation was compressed, and its prompt is another one.
            self.id, self._opened = str(answer["session_id"]), None
        return RemoteTurn(self._transport, self.id, int(answer["message_id"]))

    def record(self, /, role: str, content: Any = None, **fields: Any) -> int:
        """Record one message outside a turn; it is durable when its id is returned."""
        return self.record_all([{"role": role, "content": content, **fields}])[0]

    def record_all(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit."""
        self._open()
        return RemoteSessionStore(self._transport).append_messages(self.id, messages)

    def conversation(self) -> list[ChatMessage]:
        """The recorded messages in the form that chat APIs accept."""
        try:
            answer = self._transport.read("GET", self._path("conversation"))
        except UnknownSessionError:
            # Nothing was recorded yet.
            return []
        return cast("list[ChatMessage]", answer["messages"])

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as the model would; the answer is always a JSON object."""
        # Sent once: a tool may do something twice.
        request = Request("POST", self._path("tools", name), {"arguments": dict(arguments)})
        try:
            return cast(JsonObject, self._transport.send(request))
        except UnknownSessionError:
            # The service has not got the session yet, so no tool was called.
            self._open()
            return cast(JsonObject, self._transport.send(request))

    def remember(self, text: str, target: Target = "memory", *, key: str = "", until: str = "") -> MemoryAnswer:
        """Save a fact that the user asked to keep; the answer is a receipt, or says why it was refused."""
        return curated.remember(self._transport, text, target, self.id, key=key, until=until)

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of a memory as they may be shown."""
        return curated.entries(self._transport, target)

    def undo(self) -> UndoneTurn | None:
        """Undo the last turn, the user's message and everything after it; None when there is none."""
        try:
            # Sent once: a second time it would undo another turn.
            answer = self._transport.send(Request("POST", self._path("undo")))
        except UnknownSessionError:
            return None
        return UndoneTurn(answer["text"], answer["messages"], tuple(answer["saved"]))

    def end(self, reason: str = "session_end") -> None:
        """End the conversation; a later turn resumes it."""
        # One in which nothing was recorded does not exist, and needs no end.
        with suppress(UnknownSessionError):
            RemoteSessionStore(self._transport).end_session(self.id, reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _open(self) -> JsonObject:
        if self._opened is None:
            # Its id changes with compression.
            request = Request("POST", self._path("open"), dict(self._options), safe=True)
            self._opened = cast(JsonObject, self._transport.send(request))
            self.id = self._opened["session_id"]
        return self._opened

    def _path(self, *parts: str) -> str:
        return session_path(self.id, *parts)

    def _caller_of(self, name: str) -> Any:
        return lambda arguments: self.call(name, arguments)


class RemoteTurn:
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn that is left without `done` is interrupted: what was recorded stays.
    """

    def __init__(self, transport: Transport, session_id: str, message_id: int) -> None:
        self.message_id = message_id
        self.interrupted = True
        self._session_id = session_id
        self._transport = transport
        self._left = False

    @property
    def messages(self) -> list[ChatMessage]:
        """The conversation so far in the form that chat APIs accept, with recalled memory in a copy of the question."""
        return cast("list[ChatMessage]", self._transport.read("GET", self._path("messages"))["messages"])

    def record(self, /, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next step starts."""
        step = without_none({"role": role, "content": content, **fields})
        return int(self._transport.write("POST", self._path("messages"), {"messages": [step]})["ids"][0])

    def done(self, reply: Reply) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit. A turn is done once."""
        if not self.interrupted:
            raise SessionError("This turn is done, and its answer is recorded. session.turn() begins the next one.")
        messages = [without_none(message) for message in _as_messages(reply)]
        answer = self._transport.write("POST", self._path("done"), {"messages": messages})
        self.interrupted, self._left = False, True
        return [int(number) for number in answer["ids"]]

    def close(self) -> None:
        """Leave the turn, so that the next one can begin; without `done` before, it is interrupted."""
        if not self._left:
            self._left = True
            self._transport.send(Request("DELETE", self._path(), safe=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _path(self, *parts: str) -> str:
        return session_path(self._session_id, "turns", self.message_id, *parts)


def new_session_id() -> str:
    """An id for a session that this client starts; ids sort by time."""
    return f"{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(6)}"


def _as_messages(reply: Reply) -> list[Mapping[str, Any]]:
    """An answer as a list of messages; raises SessionError for one that is empty."""
    if isinstance(reply, str):
        reply = [{"role": "assistant", "content": reply}]
    elif isinstance(reply, Mapping):
        reply = [{"role": "assistant", **reply}]
    if not reply:
        raise SessionError("The answer has no message, and the turn is not done.")
    return list(reply)
