"""The HTTP calls about one memory bank of a Hindsight server, as version 1.1 answers them, and the settings of it.

Hindsight extracts facts from what it retains with a language model, in the background: it accepts an operation, answers
at once, and may fail later. An operation that has failed stays failed. Sending it again with the same id is answered
with success and stores nothing, so `retry` is the only way to have it processed.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any
from urllib.parse import quote

from memoranda.errors import PermanentProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.remote import RemoteClient, confirmed, unless_refused
from memoranda.external.vendors.scope import VendorScope, encode_name
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import ALLOW_HTTP, MODE, RECALL_LIMIT, TIMEOUT
from memoranda.support.lazy_dataclass import dataclass

# The server refuses longer ids of banks.
_MAX_BANK_CHARS = 192
_PAGE = 100
_NAMESPACE = uuid.UUID("5b0c2c57-9f5e-5c4e-8f0a-6a9d3b1f7e42")
# Operations of one request: the parent, which can be retried as a whole.
_RETAIN = "batch_retain"

_CLOUD = "https://api.hindsight.vectorize.io"
_LOCAL = "http://localhost:8888"
_CONTEXT = "A conversation between a user and an AI assistant."

_TYPES = ("observation", "world", "experience")

FIELDS = (
    ConfigField(
        "mode", "Where Hindsight runs: cloud, a server of yours (local_external), or one that Memoranda starts here "
        "(local_embedded)", default="cloud", choices=("cloud", "local_external", "local_embedded"),
        env_var="HINDSIGHT_MODE",
    ),
    ConfigField(
        "api_url", "Address of the server", default=_CLOUD, env_var="HINDSIGHT_API_URL",
        default_from={"field": "mode", "map": {"cloud": _CLOUD, "local_external": _LOCAL, "local_embedded": _LOCAL}},
    ),
    ConfigField("server_program", "Program that local_embedded starts", default="hindsight-api"),
    ConfigField(
        "api_key", "API key; the cloud requires one, a server of yours only if it was started with one", secret=True,
        env_var="HINDSIGHT_API_KEY", url="https://ui.hindsight.vectorize.io",
    ),
    ALLOW_HTTP,
    ConfigField("bank_id", "First part of the names of banks", default="memoranda", env_var="HINDSIGHT_BANK_ID"),
    ConfigField(
        "bank_id_template", "Name of a bank instead, with {profile}, {workspace}, {platform} and {user}", default=""
    ),
    replace(MODE, key="memory_mode"),
    RECALL_LIMIT,
    ConfigField(
        "recall_budget", "How thoroughly to search", default="mid", choices=("low", "mid", "high"),
        env_var="HINDSIGHT_BUDGET",
    ),
    ConfigField(
        "recall_prefetch_method", "What joins a turn: memories (recall), or also an answer that Hindsight's model "
        "wrote from them after the turn before (reflect)", default="recall", choices=("recall", "reflect"),
    ),
    ConfigField("recall_types", "Kinds of memories, separated by commas", default=",".join(_TYPES)),
    ConfigField("recall_max_tokens", "Maximum size of an answer", default=4096, minimum=1, maximum=100_000),
    ConfigField("recall_max_input_chars", "Maximum length of a query", default=800, minimum=10, maximum=8_000),
    ConfigField("recall_tags", "Only memories with these tags, separated by commas", default=""),
    ConfigField(
        "recall_tags_match", "How the tags must match", default="any",
        choices=("any", "all", "any_strict", "all_strict", "exact"),
    ),
    ConfigField("auto_recall", "Recall before each turn", default=True),
    ConfigField("auto_retain", "Store each turn", default=True),
    ConfigField(
        "retain_every_n_turns", "How many turns of a session are one document; the rest when it ends", default=1,
        minimum=1, maximum=100,
    ),
    ConfigField(
        "retain_async", "Let Hindsight extract facts after it has accepted a turn; false waits for them", default=True
    ),
    ConfigField("retain_context", "What Hindsight's model learns about each turn", default=_CONTEXT),
    ConfigField("retain_tags", "Tags of each turn, separated by commas", default="", env_var="HINDSIGHT_RETAIN_TAGS"),
    ConfigField("retain_source", "Source in the metadata", default="memoranda", env_var="HINDSIGHT_RETAIN_SOURCE"),
    ConfigField(
        "observation_scopes", "Which memories are consolidated together; shared: those of all sessions",
        default="shared", choices=("shared", "combined", "per_tag", "all_combinations"),
        env_var="HINDSIGHT_RETAIN_OBSERVATION_SCOPES",
    ),
    ConfigField("retain_user_prefix", "Name of the user", default="User", env_var="HINDSIGHT_RETAIN_USER_PREFIX"),
    ConfigField(
        "retain_assistant_prefix", "Name of the assistant", default="Assistant",
        env_var="HINDSIGHT_RETAIN_ASSISTANT_PREFIX",
    ),
    ConfigField("bank_mission", "What reflect should consider, in a sentence", default=""),
    ConfigField("bank_retain_mission", "What is worth extracting, in a sentence", default=""),
    replace(TIMEOUT, env_var="HINDSIGHT_TIMEOUT", default=50.0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetainedItem:
    """Text for the bank. An item with the id of an earlier document replaces that document."""

    content: str
    document_id: str
    context: str = ""
    timestamp: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    observation_scopes: str = ""

    def as_json(self) -> dict[str, Any]:
        parts = {
            # PostgreSQL stores no NUL.
            "content": self.content.replace("\0", ""),
            "document_id": self.document_id,
            "context": self.context,
            "timestamp": self.timestamp,
            "tags": list(self.tags),
            "metadata": dict(self.metadata),
            "observation_scopes": self.observation_scopes,
        }
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """An operation that the server accepted and could not carry out."""

    id: str
    document_id: str
    error: str


class HindsightClient:
    """One bank. Every method raises a subclass of ProviderError when the server does not do what is asked."""

    def __init__(self, http: RemoteClient, bank_id: str) -> None:
        self._http = http
        self._path = f"v1/default/banks/{quote(bank_id, safe='')}"
        self.bank_id = bank_id

    def version(self) -> str:
        """The version of the server, which it tells without a key."""
        answer = self._http.get("version")
        found = answer.get("api_version") if isinstance(answer, dict) else None
        if not isinstance(found, str):
            raise PermanentProviderError(
                "The address does not answer like a Hindsight server: GET /version has no api_version."
            )
        return found

    def check_access(self) -> None:
        """Raise unless the key is accepted; the bank need not exist."""
        self._http.get("v1/default/banks", query={"limit": 1})

    def retain(self, item: RetainedItem, key: str, *, wait: bool = False, repeat: bool = False) -> None:
        """Store an item once, however often this is called with the same key.

        Without `wait` the server extracts facts later; with it, the call lasts as long as that takes. `repeat` is for a
        caller without an outbox: a request whose answer is lost is sent again.
        """
        # The ids of operations are unique across banks.
        operation_id = str(uuid.uuid5(_NAMESPACE, f"{self.bank_id}\0{key}"))
        body = {"items": [item.as_json()], "async": not wait, "operation_id": operation_id}
        answer = self._http.post(f"{self._path}/memories", body, retry_safe=repeat)
        confirmed(answer, "Hindsight", "operation_id", "items_count")

    def recall(self, query: str, options: Mapping[str, Any], *, timeout: float | None = None) -> list[RecalledItem]:
        """What the bank remembers about a query, best first; nothing if it does not exist yet."""
        body = {"query": query, **options}
        path = f"{self._path}/memories/recall"
        answer = unless_refused(lambda: self._http.post(path, body, timeout=timeout, retry_safe=True), {})
        return [item for entry in _entries(answer, "results") if (item := _recalled(entry)) is not None]

    def reflect(self, query: str, budget: str, *, timeout: float | None = None) -> str:
        """An answer that the server's model writes from the memories; empty if the bank does not exist yet."""
        body = {"query": query, "budget": budget}
        answer = unless_refused(lambda: self._http.post(f"{self._path}/reflect", body, timeout=timeout), {})
        text = answer.get("text") if isinstance(answer, dict) else None
        return text if isinstance(text, str) else ""

    def failed_operations(self) -> list[FailedOperation]:
        """Accepted items that the server could not process, oldest first."""
        failed = list(self._pages("operations", "operations", {"status": "failed"}))
        return [
            FailedOperation(
                _text(entry, "id"), _text(entry, "document_id"), _text(entry, "error_message").split("\n")[0]
            )
            for entry in reversed(failed)
            if entry.get("operation_type") == _RETAIN
        ]

    def retry(self, operation_id: str) -> None:
        """Have a failed operation processed again; one that is not failed any more is left alone."""
        path = f"{self._path}/operations/{operation_id}/retry"
        unless_refused(lambda: self._http.post(path, retry_safe=True), None, 404, 409)

    def documents(self, tags: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The documents of the bank; with `tags`, those with one of them."""
        return self._pages("documents", "items", {"tags": list(tags), "tags_match": "any_strict"} if tags else {})

    def set_missions(self, reflect: str, retain: str) -> None:
        """Create the bank if needed, and say what it is for."""
        missions = {"reflect_mission": reflect, "retain_mission": retain}
        body = {name: text for name, text in missions.items() if text}
        self._http.request("PUT", self._path, body)

    def delete(self) -> None:
        """Delete the bank with everything in it."""
        self._http.request("DELETE", self._path)

    def delete_operations(self, wanted: Callable[[str], bool]) -> None:
        """Stop and delete the operations of documents: they contain the text, and could still store it."""
        offset = 0
        while True:
            query = {"limit": _PAGE, "offset": offset}
            found = _entries(self._get_or_empty("operations", query), "operations")
            deleted = 0
            for entry in found:
                if not wanted(_text(entry, "document_id")):
                    continue
                path = f"operations/{_text(entry, 'id')}"
                if entry.get("status") in ("pending", "processing"):
                    self._delete_if_there(path)
                deleted += self._delete_if_there(f"{path}/delete")
            if len(found) < _PAGE:
                return
            offset += _PAGE - deleted

    def delete_document(self, document_id: str) -> bool:
        """Delete a document with its facts; False if the bank has no such document."""
        return self._delete_if_there(f"documents/{quote(document_id, safe='')}")

    def _pages(self, path: str, name: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The entries of a list that the server gives in pages; none if the bank does not exist."""
        offset = 0
        while True:
            found = _entries(self._get_or_empty(path, {**query, "limit": _PAGE, "offset": offset}), name)
            yield from found
            if len(found) < _PAGE:
                return
            offset += _PAGE

    def _get_or_empty(self, path: str, query: Mapping[str, Any]) -> Any:
        """The answer to a GET; an empty one if the bank does not exist."""
        return unless_refused(lambda: self._http.get(f"{self._path}/{path}", query=query), {})

    def _delete_if_there(self, path: str) -> bool:
        """Whether something was deleted; False if it is gone, or cannot be deleted in its state."""
        deleted = unless_refused(lambda: self._http.request("DELETE", f"{self._path}/{path}"), False, 404, 409)
        return deleted is not False


def _entries(answer: object, name: str) -> list[dict[str, Any]]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _recalled(entry: Mapping[str, Any]) -> RecalledItem | None:
    text = _text(entry, "text").strip()
    if not text:
        return None
    scores = entry.get("scores")
    score = scores.get("final") if isinstance(scores, dict) else None
    time = _text(entry, "occurred_start") or _text(entry, "mentioned_at") or None
    return RecalledItem(
        text, time, score if isinstance(score, int | float) else None, _text(entry, "id"), _text(entry, "type")
    )


def split_list(value: Any) -> tuple[str, ...]:
    """The parts of a setting that is a list, or text with commas."""
    parts = value if isinstance(value, list | tuple) else str(value or "").split(",")
    return tuple(text for part in parts if (text := str(part).strip()))


def recall_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What to recall, as the server expects it; raises PermanentProviderError for a type that it does not have."""
    types, tags = split_list(settings["recall_types"]), split_list(settings["recall_tags"])
    if unknown := set(types) - set(_TYPES):
        raise PermanentProviderError(
            f"hindsight: recall_types has {min(unknown)!r}, but may contain only {', '.join(_TYPES)}. "
            "'memoranda provider setup hindsight' sets it."
        )
    return {
        "budget": settings["recall_budget"],
        "max_tokens": settings["recall_max_tokens"],
        "prefer_observations": True,
        **({"types": list(types)} if types else {}),
        **({"tags": list(tags), "tags_match": settings["recall_tags_match"]} if tags else {}),
    }


def bank_name(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The bank of a user: different users and profiles never get the same one. Raises PermanentProviderError.

    A template that leaves `{user}` out is extended by it for every user but the owner of the home.
    """
    template = str(settings["bank_id_template"])
    if not template:
        prefix = f"{settings['bank_id']}-"
        return _checked(prefix + scope.peer(max_chars=_MAX_BANK_CHARS - len(prefix.encode())))
    values = {
        "profile": scope.profile,
        "workspace": scope.facts.get("agent_workspace", ""),
        "platform": scope.platform,
        "user": scope.user_id,
    }
    _check_template(template, values)
    # A dash separates the parts, so it must not occur in them; `_owner` is no encoded name.
    encoded = {part: encode_name(value, keep="") for part, value in values.items()}
    encoded["user"] = encoded["user"] or "_owner"
    name = re.sub(r"\{(\w+)\}", lambda match: encoded[match[1]], template)
    if scope.user_id and "{user}" not in template:
        name += f"__{encode_name(scope.user_id, keep='')}"
    return _checked(name)


def _check_template(template: str, values: Mapping[str, str]) -> None:
    names = re.findall(r"\{(\w*)\}", template)
    if unknown := [name for name in names if name not in values]:
        known = ", ".join(f"{{{name}}}" for name in values)
        raise PermanentProviderError(f"hindsight: bank_id_template has {{{unknown[0]}}}, but may contain only {known}.")
    between = re.split(r"\{\w+\}", template)[1:-1]
    if any("-" not in text for text in between):
        raise PermanentProviderError(
            "hindsight: bank_id_template needs a dash between two placeholders, or users could share a bank."
        )


def _checked(name: str) -> str:
    if "/" in name or len(name.encode()) > _MAX_BANK_CHARS:
        raise PermanentProviderError(
            f"hindsight: {name[:60]!r} cannot be the name of a bank: at most {_MAX_BANK_CHARS} bytes and no slash."
        )
    return name
