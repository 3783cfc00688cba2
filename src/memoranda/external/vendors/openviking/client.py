"""The calls of OpenViking's HTTP API that the provider makes, its settings, and the addresses of a user.

Every answer is `{"status": "ok", "result": …}` or `{"status": "error", "error": {"code", "message"}}`. Writing a file
is an upsert, and deleting one that does not exist succeeds, so both may be repeated.

A user has these addresses, and nothing outside them is read or deleted:

    viking://user/<user>/memories                  the owner of the default profile
    viking://user/<user>/peers/<peer>/memories     everyone else; the peer is their name (see `scope`)

A server without authentication shows every user everything, so the limits are checked here as well.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.remote import RemoteClient, unless_refused
from memoranda.external.vendors.scope import encode_name
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import ALLOW_HTTP, MODE, RECALL_LIMIT, TIMEOUT, ToolArgumentError, digest
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

Level = Literal["abstract", "overview", "read"]

NOT_FOUND = 404
CONFLICT = 409
# Of `POST /sessions/{id}/messages/batch`.
MAX_BATCH = 100
# As the server checks names of users; a name becomes part of addresses.
_USER = re.compile(r"[A-Za-z0-9_.@-]+")

# The server maps a cosine of 0, which means unrelated, to 0.5.
_MIN_SCORE = 0.6
FIELDS = (
    ConfigField("endpoint", "Address of the server", default="http://127.0.0.1:1933", env_var="OPENVIKING_ENDPOINT"),
    ConfigField(
        "api_key",
        "Key of an OpenViking user; a server in the mode dev needs none",
        secret=True,
        env_var="OPENVIKING_API_KEY",
    ),
    ConfigField("account", "Account at the server", default="default", env_var="OPENVIKING_ACCOUNT"),
    ConfigField(
        "user",
        "User at the server; with a user's key, the key decides",
        default="default",
        env_var="OPENVIKING_USER",
    ),
    ConfigField(
        "agent",
        "Peer of the server's user that has the memories of this home; 'hermes' continues those of Hermes",
        default="",
        env_var="OPENVIKING_AGENT",
    ),
    ConfigField(
        "commit_sessions", "Have the server's model extract memories from a session that has ended", default=True
    ),
    ConfigField(
        "score_threshold",
        "Hits with a lower score are not recalled; unrelated ones have about 0.5",
        default=_MIN_SCORE,
        env_var="OPENVIKING_RECALL_SCORE_THRESHOLD",
        minimum=0,
        maximum=1,
    ),
    ConfigField(
        "recall_resources",
        "Recall documents before a turn, not only memories",
        default=False,
        env_var="OPENVIKING_RECALL_RESOURCES",
    ),
    ALLOW_HTTP,
    MODE,
    replace(RECALL_LIMIT, env_var="OPENVIKING_RECALL_LIMIT"),
    TIMEOUT,
)

_SCHEME = "viking://"
SHARED_RESOURCES = "viking://resources"
TURNS = "turns"
CATEGORIES = {
    "preference": "preferences",
    "entity": "entities",
    "event": "events",
    "case": "cases",
    "pattern": "patterns",
}
_CURATED_CATEGORIES = {"user": "preference", "memory": "pattern"}
_UNSAFE = re.compile(r"(?:^|/)\.{1,2}(?:/|$)|[?#\\\x00-\x1f]|//")
# Summaries of a directory, which the server writes.
_SUMMARY = re.compile(r"/\.(?:abstract|overview)\.md$")

_TIME_LINE = re.compile(r"\A(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\n\n")


def identity_headers(settings: Mapping[str, Any], peer: str) -> dict[str, str]:
    """Who asks. `peer` limits what the server shows to one of the user's peers; empty for none."""
    identity = {
        "X-API-Key": settings["api_key"],
        # A server in the mode `api_key` takes account and user from the key, and ignores these.
        "X-OpenViking-Account": settings["account"],
        "X-OpenViking-User": settings["user"],
        "X-OpenViking-Actor-Peer": peer,
    }
    return {name: value for name, value in identity.items() if value}


class OpenVikingClient:
    """One user at one server, whom the key or `identity_headers` name."""

    def __init__(self, http: RemoteClient) -> None:
        self._http = http

    def health(self) -> JsonObject:
        """Version and authentication mode of the server; needs no key."""
        answer = self._http.get("/health")
        return answer if isinstance(answer, dict) else {}

    def user(self, timeout: float | None = None) -> str:
        """The user as whom the server treats this client."""
        name = self._call("GET", "/api/v1/system/status", timeout=timeout).get("user")
        if not isinstance(name, str) or not _USER.fullmatch(name):
            raise TemporaryProviderError("The OpenViking server does not say as which user it treats this home.")
        return name

    def find(self, body: Mapping[str, Any], timeout: float | None = None) -> list[JsonObject]:
        """The hits of a search by meaning, best first."""
        return _hits(self._call("POST", "/api/v1/search/find", body, retry_safe=True, timeout=timeout))

    def search(self, body: Mapping[str, Any], timeout: float | None = None) -> list[JsonObject]:
        """The hits of a search that the server's model may plan and expand; slower than `find`."""
        return _hits(self._call("POST", "/api/v1/search/search", body, retry_safe=True, timeout=timeout))

    def read(self, uri: str, level: Level = "read") -> str:
        return str(self._result("GET", f"/api/v1/content/{level}", query={"uri": uri}) or "")

    def list_directory(self, uri: str, view: Literal["ls", "tree"] = "ls", limit: int = 50) -> list[JsonObject]:
        found = self._result("GET", f"/api/v1/fs/{view}", query={"uri": uri, "node_limit": limit})
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    def stat(self, uri: str) -> JsonObject:
        return self._call("GET", "/api/v1/fs/stat", query={"uri": uri})

    def write(self, uri: str, content: str) -> str:
        """Create or replace a file, and return its uri; the server indexes it in the background."""
        body = {"uri": uri, "content": content, "mode": "create"}
        written = self._call("POST", "/api/v1/content/write", body)
        return str(written.get("uri") or uri)

    def delete(self, uri: str, *, recursive: bool = False) -> None:
        self._result("DELETE", "/api/v1/fs", query={"uri": uri, "recursive": str(recursive).lower()})

    def add_resource(self, body: Mapping[str, Any], timeout: float | None = None) -> JsonObject:
        return self._call("POST", "/api/v1/resources", body, timeout=timeout)

    def count_messages(self, session_id: str) -> int | None:
        """How many messages a session has received, archived ones included; None when there is no such session."""
        session = unless_refused(lambda: self._call("GET", f"/api/v1/sessions/{session_id}"), None)
        if session is None:
            return None
        count = session.get("total_message_count")
        return count if isinstance(count, int) else 0

    def create_session(self, session_id: str, memory_policy: Mapping[str, Any] | None = None) -> None:
        self._call("POST", "/api/v1/sessions", {"session_id": session_id, "memory_policy": memory_policy})

    def add_messages(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Add messages to the end of a session. Not repeatable: look at `count_messages` first."""
        self._call("POST", f"/api/v1/sessions/{session_id}/messages/batch", {"messages": list(messages)})

    def commit(self, session_id: str) -> None:
        """Have the server archive a session and extract memories from it, in the background."""
        path = f"/api/v1/sessions/{session_id}/commit"
        self._call("POST", path, {"keep_recent_count": 0}, retry_safe=True)

    def delete_session(self, session_id: str) -> None:
        unless_refused(lambda: self._result("DELETE", f"/api/v1/sessions/{session_id}"), None)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **options: Any) -> JsonObject:
        result = self._result(method, path, body, **options)
        if not isinstance(result, dict):
            raise TemporaryProviderError(f"OpenViking answered {path} without a result.")
        return result

    def _result(self, method: str, path: str, body: Mapping[str, Any] | None = None, **options: Any) -> Any:
        try:
            answer = self._http.request(method, path, body, **options)
        except PermanentProviderError as error:
            # Another request has locked the path.
            if error.status == CONFLICT and '"CONFLICT"' in str(error):
                raise TemporaryProviderError(str(error)) from error
            if "Upstream model" in str(error):
                raise TemporaryProviderError(f"The model that the OpenViking server uses fails: {error}") from error
            raise
        if not isinstance(answer, dict) or answer.get("status") != "ok":
            raise TemporaryProviderError(f"What answers {path} is not an OpenViking server, or not its API.")
        return answer.get("result")


def _hits(result: JsonObject) -> list[JsonObject]:
    groups = (result.get(name) for name in ("memories", "resources", "skills"))
    hits = [hit for group in groups if isinstance(group, list) for hit in group if isinstance(hit, dict)]
    return sorted(hits, key=lambda hit: -_score_of(hit))


def _score_of(hit: Mapping[str, Any]) -> float:
    score = hit.get("score")
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) else 0.0


@dataclass(frozen=True, slots=True)
class OpenVikingUris:
    """The addresses of a user; `peer` is empty for the owner of the default profile."""

    user: str
    peer: str = ""

    @property
    def base(self) -> str:
        return f"{_SCHEME}user/{self.user}/peers/{self.peer}" if self.peer else f"{_SCHEME}user/{self.user}"

    @property
    def memories(self) -> str:
        return f"{self.base}/memories"

    @property
    def resources(self) -> str:
        return f"{self.base}/resources"

    def turns(self, session_id: str) -> str:
        """The directory of a session's turns: readable, and different for different sessions."""
        return f"{self.memories}/{TURNS}/{encode_name(session_id)[:60]}-{digest(session_id, chars=8)}"

    def turn(self, session_id: str, key: str) -> str:
        """The file of a delivery. It depends on the session and the key only, so a repeated one replaces itself."""
        return f"{self.turns(session_id)}/{digest(key, chars=24)}.md"

    def memory(self, category: str, text: str) -> str:
        """The file of a memory, by its text: the same text is stored once, and its old text finds it."""
        return f"{self.memories}/{CATEGORIES[category]}/memoranda-{digest(text.strip(), chars=24)}.md"

    def curated(self, target: str, text: str) -> str:
        return self.memory(_CURATED_CATEGORIES.get(target, "pattern"), text)

    def contains(self, uri: str) -> bool:
        """Whether a file is this user's own, or a shared resource."""
        return any(_is_below(uri, root) for root in (self.memories, self.resources, SHARED_RESOURCES))

    def resolve(self, path: str, *, own: bool = False) -> str:
        """The address that a model means, without variables. Raises ToolArgumentError for one it must not use.

        `own` excludes shared resources. A path without a scheme begins at the user's own directory.
        """
        text = path.strip().rstrip("/")
        if not text.startswith(_SCHEME):
            text = f"{self.base}/{text.lstrip('/')}".rstrip("/")
        text = re.sub(r"^viking://~(?=/|$)", f"{_SCHEME}user/{self.user}", text)
        if text == self.base:
            text = self.memories
        allowed = self.contains(text) and not (own and _is_below(text, SHARED_RESOURCES))
        if _UNSAFE.search(text[len(_SCHEME) :]) or not allowed:
            shared = "" if own else f" and {SHARED_RESOURCES}"
            raise ToolArgumentError(f"{path!r} is outside {self.memories}, {self.resources}{shared}.")
        return text

    def resolve_memory_file(self, path: str) -> str:
        """The address of a memory that may be deleted: a file of the user's own that no summary is."""
        uri = self.resolve(path, own=True)
        if not _is_below(uri, self.memories) or not uri.endswith(".md") or _SUMMARY.search(uri):
            raise ToolArgumentError(f"{path!r} is not a memory: only .md files below {self.memories} can be deleted.")
        return uri


def _category_of(uri: str) -> str:
    """A word for what a file is: the directory below `memories`; `resource` for files elsewhere."""
    _, found, rest = uri.partition("/memories/")
    if not found:
        return "resource"
    directory, slash, _ = rest.partition("/")
    singular = {plural: word for word, plural in CATEGORIES.items()} | {TURNS: "turn"}
    return singular.get(directory, directory) if slash else "memory"


def _is_below(uri: str, root: str) -> bool:
    return uri == root or uri.startswith(f"{root}/")


def format_turn(user: str, assistant: str, time: float) -> str:
    """The content of a turn's file; the same for each attempt to deliver it."""
    return f"{_timestamp(time)}\n\nUser: {user.strip()}\n\nAssistant: {assistant.strip()}\n"


def format_delegation(task: str, result: str, time: float) -> str:
    return f"{_timestamp(time)}\n\nDelegated task: {task.strip()}\n\nResult: {result.strip()}\n"


def recalled_items(
    hits: Iterable[Mapping[str, Any]], uris: OpenVikingUris, min_score: float = 0.0
) -> list[RecalledItem]:
    """The hits that are files of this user with a sufficient score.

    Summaries of directories are no memories: without this, they take the first places of every search.
    """
    items: list[RecalledItem] = []
    for hit in hits:
        uri, text = str(hit.get("uri") or ""), str(hit.get("abstract") or "")
        if hit.get("level") not in (2, None) or not uris.contains(uri) or _score_of(hit) < min_score:
            continue
        said = _TIME_LINE.match(text)
        time = said[1] if said else None
        items.append(RecalledItem(text[said.end() :] if said else text, time, _score_of(hit), uri, _category_of(uri)))
    return items


def _timestamp(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
