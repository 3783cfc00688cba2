"""One route of the service as a value: what it needs, what it takes, what it answers, with an example of each."""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from memoranda.api.memory import Memory
from memoranda.home.access.keys import Scope
from memoranda.home.access.schema import forgotten_name
from memoranda.service.http.callers import Caller
from memoranda.service.http.service import Service
from memoranda.service.http.shapes import Field, Shape, Text
from memoranda.service.http.workers import PoolName
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON = "application/json"
JSON_LINES = "application/x-ndjson"
EVENTS = "text/event-stream"

USER = Field(
    "user",
    Text(1, 200),
    "The user whose memory the request is about. A key that is bound to a user needs none; the default tenant means "
    "the home's owner without one.",
)


USER_HEADER = "x-memoranda-user"


@dataclasses.dataclass(eq=False)
class Call:
    """A checked request, as a handler receives it in a thread."""

    service: Service
    caller: Caller
    path: Mapping[str, str]
    query: JsonObject
    body: Any
    headers: Mapping[str, str]
    request_id: str
    token: str | None = None
    """Identifies a request with an Idempotency-Key: the same request has the same token, another one another."""

    @cached_property
    def user(self) -> str | None:
        """The user, as stored, that the request acts as: the parameter `user`, or a header where a client has none."""
        return self.stored_user(self.query.get("user") or self.headers.get(USER_HEADER))

    @cached_property
    def memory(self) -> Memory:
        """The home as that user sees it."""
        return self.service.memory_of(self.user)

    def stored_user(self, name: str | None) -> str | None:
        """The user, as stored, that a request with this user's name acts as; raises Problem if it may not."""
        return self.caller.stored_user(name, self.service.authenticator.read_tenants)

    def audit(self, action: str, subject: str = "", *, user_is_forgotten: bool = False) -> None:
        """Note a change of curated memory or a deletion in the audit log, which does not name a forgotten user."""
        user = self.user
        self.service.audit.add(
            key_id=self.caller.key_id,
            tenant=self.caller.tenant,
            user=forgotten_name(user) if user_is_forgotten and user is not None else user,
            action=action,
            subject=subject,
            request_id=self.request_id,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers: a JSON value, or nothing for 204."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is produced part by part, in threads."""

    parts: Iterator[bytes]
    media_type: str = JSON_LINES
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitingAnswer:
    """An answer that waits for something in the event loop, without occupying a thread."""

    wait: Callable[[], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """A stream whose parts are produced in the event loop, for as long as the client stays."""

    parts: Callable[[], AsyncIterator[bytes]]
    media_type: str


Result = Answer | Stream | WaitingAnswer | LiveAnswer
Handler = Callable[[Call], Result]


@dataclass(frozen=True, slots=True)
class Example:
    """A request of the documentation, and the answer to it in the home that the tests prepare."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path. `scope` is None where no key is needed."""

    method: Method
    path: str
    name: str
    scope: Scope | None
    handler: Handler
    summary: str
    answer: Shape | None = None
    status: int = 200
    query: tuple[Field, ...] = ()
    body: Shape | None = None
    for_user: bool = True
    """Whether the request is about one user, so that it takes the parameter `user`."""
    idempotent: bool = False
    """Whether it takes an Idempotency-Key; its answer must then contain no text of a user, because it is stored."""
    conditional: bool = False
    """Whether it takes If-Match."""
    media_type: str = JSON
    """The type of the answer."""
    body_type: str = JSON
    """The type of the request's body; anything but JSON reaches the handler as bytes."""
    large_body: bool = False
    """Whether the limit for imports applies to the body."""
    other_statuses: tuple[int, ...] = ()
    """Further statuses of success: what was to be created existed, or awaits approval."""
    problems: tuple[int, ...] = ()
    """The statuses of problems that are special to this route."""
    example: Example | None = None
    tag: str = ""
    documented: bool = True
    pool: PoolName | None = "store"
    """The threads that call the handler; None for one that waits for nothing, which the event loop calls."""
    open_query: bool = False
    """Whether the handler reads the parameters of the query itself, as text: for the APIs of others."""
    during_outage: bool = False
    """Whether callers who were recognised lately are answered while the database cannot be reached."""

    @property
    def parameters(self) -> tuple[Field, ...]:
        return (*self.query, USER) if self.for_user else self.query

    @property
    def path_names(self) -> tuple[str, ...]:
        """The names of the variable parts of the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
