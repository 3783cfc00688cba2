"""What a vendor of memory implements: how to reach its service, search, store and delete; and the values it gets.

No HTTP is assumed. A vendor receives turns, writes of curated memory and boundaries of sessions as deliveries. Its text
for the system prompt depends on the mode only, and so never changes in a session.

    class AcmeVendor(Vendor):
        name = "acme"
        label = "Acme"
        fields = (
            ConfigField("url", "Address of the service", default="https://api.acme.example", env_var="ACME_URL"),
            ConfigField("api_key", "API key", secret=True, required=True, env_var="ACME_API_KEY"),
            *COMMON_FIELDS,
        )

        def open(self) -> None:
            self._client = self.connect(self.settings["url"], self.settings["api_key"])

        def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
            body = {"q": query, "user": self.scope.peer(), "limit": limit}
            found = self._client.post("/search", body, timeout=timeout, retry_safe=True)
            return [RecalledItem(hit["text"], hit["at"], hit["score"], hit["id"]) for hit in found["hits"]]

        def store_turn(self, turn: Turn) -> str:
            if turn.may_be_stored and (known := self._client.get("/memories", query={"key": turn.key})["ids"]):
                return known[0]
            body = {"text": turn.user, "answer": turn.assistant, "user": self.scope.peer(), "key": turn.key}
            return self._client.post("/memories", body)["id"]

        def test_connection(self) -> str:
            return f"Acme answers for {self._client.get('/account')['name']}."


    class AcmeProvider(VendorProvider):
        vendor_class = AcmeVendor

and one line in `memoranda.external.loading.discovery`. Errors of `RemoteClient` need no handling: the outbox
understands them. A vendor that is a program or a library instead raises TemporaryProviderError or
PermanentProviderError itself.
"""

# Methods that do nothing by default are intended.
# ruff: noqa: B027

import hashlib
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from memoranda.errors import PermanentProviderError, ProviderError
from memoranda.external.loading.setup import ConfigField, read_settings
from memoranda.external.provider import Message
from memoranda.external.remote import RemoteClient
from memoranda.external.settings import MODES
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem, SentRecord
from memoranda.external.vendors.texts import RecalledItem
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

_NAMESPACE = uuid.UUID("6f6e9c1c-2f0b-5d1c-9a52-2f2f6d0a7c11")

MODE = ConfigField(
    "mode",
    "Recall before each turn (context), tools for the model (tools), or both (hybrid)",
    default="hybrid",
    choices=MODES,
)
RECALL_LIMIT = ConfigField("recall_limit", "Maximum number of items per turn", default=6, minimum=1, maximum=50)
TIMEOUT = ConfigField(
    "timeout", "Seconds that a delivery or a tool waits for the service", default=30.0, minimum=1, maximum=300
)
ALLOW_HTTP = ConfigField("allow_http", "Accept http:// to another machine, in a network that you trust", default=False)
COMMON_FIELDS = (MODE, RECALL_LIMIT, TIMEOUT)


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What all deliveries have.

    `key` is the same for each attempt. `attempt` is 1 at first, and more if an earlier one may have been stored
    although its answer was lost: then look for the key at the vendor before storing again. `time` is when it was
    recorded, in seconds since 1970.
    """

    key: str
    attempt: int
    time: float
    session_id: str

    @property
    def may_be_stored(self) -> bool:
        return self.attempt > 1

    @property
    def iso_time(self) -> str:
        return datetime.fromtimestamp(self.time, UTC).isoformat()

    @property
    def uuid(self) -> str:
        """A UUID made from the key, for vendors that let the caller choose an id."""
        return str(uuid.uuid5(_NAMESPACE, self.key))


@dataclass(frozen=True, slots=True)
class Turn(Delivery):
    """A completed turn. `messages` is its transcript with tool calls; empty if the caller has none."""

    user: str
    assistant: str
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryWrite(Delivery):
    """A write of curated memory: `action` is add, replace or remove, `target` is memory or user.

    `old_text` is the entry that a replace or a remove changed.
    """

    action: str
    target: str
    content: str
    old_text: str = ""

    @property
    def entry_id(self) -> str:
        """A name for the entry as it is now; a later write of the entry has it as its `old_entry_id`."""
        return digest(self.target, self.content.strip())

    @property
    def old_entry_id(self) -> str:
        return digest(self.target, self.old_text.strip())


@dataclass(frozen=True, slots=True)
class Delegation(Delivery):
    """The work of a delegate of the session."""

    task: str
    result: str
    child_session_id: str = ""


@dataclass(frozen=True, slots=True)
class SessionEnd(Delivery):
    """The end of a session, with its transcript."""

    messages: tuple[Message, ...] = ()


def digest(*parts: str, chars: int = 32) -> str:
    """A name that is made from texts: the same for the same texts, and another one for others."""
    raw = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:chars]


def delivery_facts(facts: Mapping[str, Any], session_id: str, now: float) -> tuple[str, int, float, str]:
    """Key, attempt, time and session of a delivery from the facts of its hook.

    A caller without an outbox has none of them: its delivery is the first of its kind.
    """
    attempt, time = facts.get("attempt"), facts.get("timestamp")
    return (
        str(facts.get("idempotency_key") or uuid.uuid4().hex),
        attempt if isinstance(attempt, int) and attempt > 0 else 1,
        float(time) if isinstance(time, int | float) and time > 0 else now,
        session_id,
    )


class ToolArgumentError(ValueError):
    """The arguments of a tool call are not usable; the message says which and why, for the model."""


@dataclass(frozen=True, slots=True)
class VendorTool:
    """A tool: `run` gets the vendor, checked arguments and the id of the session, and returns a JSON value.

    `properties` is that of a JSON schema. A number outside `minimum` and `maximum` is moved to the nearest of them, and
    `default` is filled in. `writes`: only sessions that may write can call it.
    """

    name: str
    description: str
    properties: Mapping[str, JsonObject]
    run: "ToolMethod"
    required: tuple[str, ...] = ()
    writes: bool = False

    def schema(self) -> JsonObject:
        """The tool as `get_tool_schemas` reports it."""
        parameters = {"type": "object", "properties": dict(self.properties), "required": list(self.required)}
        return {"name": self.name, "description": self.description, "parameters": parameters}

    def check(self, args: Mapping[str, Any]) -> JsonObject:
        """The arguments that the schema names, checked; raises ToolArgumentError. Others are ignored."""
        checked: JsonObject = {}
        for name, schema in self.properties.items():
            value = args.get(name)
            blank = value is None or (isinstance(value, str) and not value.strip())
            if blank and name in self.required:
                raise ToolArgumentError(f"{self.name} needs {name}: {schema.get('description', 'it is required')}")
            if blank:
                if "default" in schema:
                    checked[name] = schema["default"]
                continue
            checked[name] = _check_value(name, value, schema)
        return checked


ToolMethod = Callable[[Any, JsonObject, str], Any]


def tool(
    name: str, description: str, required: tuple[str, ...] = (), *, writes: bool = False, **properties: JsonObject
) -> Callable[[ToolMethod], VendorTool]:
    """Make a method of a vendor one of its tools; see `VendorTool`."""
    return lambda method: VendorTool(name, description, properties, method, required, writes)


def text(description: str, **more: Any) -> JsonObject:
    """The schema of an argument that is a text."""
    return {"type": "string", "description": description, **more}


def integer(minimum: int, maximum: int, default: int, **more: Any) -> JsonObject:
    """The schema of an argument that is a whole number."""
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "default": default, **more}


def _check_value(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    kind = str(schema.get("type", "string"))
    value = _as_number(value, kind)
    if not isinstance(value, _KINDS.get(kind, (object,))) or (isinstance(value, bool) and kind != "boolean"):
        raise ToolArgumentError(f"{name} must be of the type {kind}, not {type(value).__name__}.")
    choices = schema.get("enum")
    if choices is not None and value not in choices:
        raise ToolArgumentError(f"{name} must be one of {', '.join(map(str, choices))}.")
    if kind in ("integer", "number"):
        value = max(schema.get("minimum", value), min(schema.get("maximum", value), value))
    if kind == "array":
        item_kind = str((schema.get("items") or {}).get("type"))
        if not all(isinstance(item, _KINDS.get(item_kind, (object,))) for item in value):
            raise ToolArgumentError(f"{name} must be a list of the type {item_kind}.")
    return value


def _as_number(value: Any, kind: str) -> Any:
    """A number that a model wrote as text, or with a fraction of zero."""
    try:
        if kind == "integer" and isinstance(value, str | float) and float(value) == int(float(value)):
            return int(float(value))
        if kind == "number" and isinstance(value, str):
            return float(value)
    except (ValueError, OverflowError):
        return value
    return value


def resolve_settings(
    fields: Iterable[ConfigField],
    name: str,
    home: Path | None,
    given: Mapping[str, Any],
    variables: Mapping[str, str],
) -> dict[str, Any]:
    """A value for every field: of its variable, else given by the caller, else saved by setup, else the default.

    Raises ProviderError for a value that is not valid; an empty one counts as absent.
    """
    saved = read_settings(home, name) if home is not None else {}
    values: dict[str, Any] = {}
    for field in fields:
        found = (variables.get(field.env_var), given.get(field.key), saved.get(field.key))
        value = next((value for value in found if value is not None and value != ""), None)
        try:
            values[field.key] = field.default_for(values) if value is None else field.parse(value)
        except ProviderError as error:
            raise PermanentProviderError(f"{name}: {error} 'memoranda provider setup {name}' sets it.") from error
    return values


def missing_fields(fields: Iterable[ConfigField], values: Mapping[str, Any]) -> list[ConfigField]:
    """The required fields that have no value, among those that the values so far make necessary."""
    return [field for field in fields if field.required and field.applies(values) and not values.get(field.key)]


class Vendor(ABC):
    """One vendor, for one user. `open`, `search` and `store_turn` are required; everything else has a default.

    `settings` has a value for every field, `scope` says for whom it was started, and `sent` is the record of what the
    vendor has received. Methods that write (`store_…`, `end_session`) are only called for sessions that may write. They
    raise ProviderError unless the vendor accepted, and may be called from another thread than `search` and the tools.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    """The vendor's name as people write it; it labels recalled items."""
    fields: ClassVar[tuple[ConfigField, ...]] = COMMON_FIELDS
    guidance: ClassVar[tuple[str, str, str]] = ("", "", "")
    """What a model reads: about the vendor, about its recall unless it has only tools, and about its tools if any."""
    live_recall: bool = True
    """False for a vendor that is slower than a turn waits: it is only searched after a turn, for the next one."""
    recall_ahead: Literal["after_miss", "always"] = "after_miss"
    """When to search after a turn for the next one: if the live search failed or was late, or always. `always` adds
    the result to that of the live search."""

    def __init__(self, settings: Mapping[str, Any], scope: VendorScope, sent: SentRecord, session_id: str) -> None:
        self.settings = settings
        self.scope = scope
        self.sent = sent
        self.session_id = session_id
        self._http: RemoteClient | None = None

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        """What must be installed first and how, as a sentence; empty if nothing is missing. Fast, without network."""
        return ""

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """The vendor's names for the user, the workspace …, for `memoranda provider status`."""
        return {"user_at_vendor": scope.peer()}

    @abstractmethod
    def open(self) -> None:
        """Create the client from `self.settings` and `self.scope`. No network: the service may be down."""

    def connect(self, url: str, key: str = "", headers: Mapping[str, str] | None = None) -> RemoteClient:
        """A client of the vendor's service with the common settings, and `key` as its bearer token."""
        self._http = RemoteClient(
            self.name,
            url,
            headers=({"Authorization": f"Bearer {key}"} if key else {}) | dict(headers or {}),
            timeout=self.timeout,
            allow_http=self.settings.get("allow_http", False),
        )
        return self._http

    def close(self) -> None:
        """Close what `open` created; `connect` needs no more than this."""
        if self._http is not None:
            self._http.close()

    def test_connection(self) -> str:
        """Make one cheap call that needs the key, and return a sentence about what answered. Raises ProviderError."""
        return ""

    @property
    def mode(self) -> str:
        """hybrid, context or tools."""
        return str(self.settings.get("mode") or "hybrid")

    @property
    def recall_limit(self) -> int:
        """How many items `search` is asked for."""
        return int(self.settings.get("recall_limit") or 6)

    @property
    def timeout(self) -> float:
        """How many seconds a delivery or a tool waits for the service."""
        return float(self.settings["timeout"])

    def prompt_block(self) -> str:
        """Static text for the system prompt; no network."""
        about, recall, tools = self.guidance
        parts = (about, recall if self.mode != "tools" else "", tools if self.mode != "context" else "")
        return "\n".join(filter(None, parts))

    @abstractmethod
    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Search the vendor, at most `timeout` seconds, best items first. Raises ProviderError."""

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Search after a turn, for the next one; may be slower and deeper than `search`."""
        return self.search(query, limit, timeout)

    @abstractmethod
    def store_turn(self, turn: Turn) -> str | None:
        """Store a turn and return the vendor's id for it, or "" if it gives none. Raises ProviderError otherwise.

        None means that there is nothing to store, by the settings or without text: the turn is not recorded as sent. If
        `turn.may_be_stored`, first look for `turn.key` at the vendor, unless storing it twice has no effect.
        """

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror a write of curated memory; like `store_turn`."""
        return None

    def store_delegation(self, delegation: Delegation) -> str | None:
        """Store the result of a delegate; like `store_turn`."""
        return None

    def end_session(self, end: SessionEnd) -> None:
        """A session has ended. May be repeated."""

    def drop_recalled(self) -> None:
        """Forget what was recalled for the session: the conversation continues under another id, or was rewound."""

    def before_compression(self, messages: list[Message], session_id: str) -> str:
        """Text for the summary of messages that are about to leave the context; under a deadline."""
        return ""

    def tools(self) -> Sequence[VendorTool]:
        """The tools for the model: the methods that `tool` marks, in their order."""
        members = (member for kind in reversed(type(self).__mro__) for member in vars(kind).values())
        return [member for member in members if isinstance(member, VendorTool)]

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        """Delete what the vendor has received: of some sessions, or all of it if None.

        Return the items of `self.sent` that are deleted, and descriptions of what remains. Raises ProviderError.
        """
        kept = self.sent.of_sessions(session_ids)
        return [], [f"{len(kept)} turns and memory writes: {self.label} offers no way to delete them"] if kept else []
