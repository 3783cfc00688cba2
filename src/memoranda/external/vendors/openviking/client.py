"""The calls of OpenViking's HTTP API that the provider makes, without their envelope.

Every answer is `{"status": "ok", "result": …}` or `{"status": "error", "error": {"code", "message"}}`. Writing a file
is an upsert, and deleting one that does not exist succeeds, so both may be repeated.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.http_answers import unless_refused

JsonObject = dict[str, Any]
Level = Literal["abstract", "overview", "read"]

NOT_FOUND = 404
CONFLICT = 409
# Of `POST /sessions/{id}/messages/batch`.
MAX_BATCH = 100
# As the server checks names of users; a name becomes part of addresses.
_USER = re.compile(r"[A-Za-z0-9_.@-]+")


class OpenVikingClient:
    """One user at one server. `peer` limits what the server shows to one of the user's peers; empty for none."""

    def __init__(
        self,
        endpoint: str,
        *,
        api_key: str = "",
        account: str = "",
        user: str = "",
        peer: str = "",
        timeout: float = 30.0,
        allow_http: bool = False,
    ) -> None:
        # A server in the mode `api_key` takes account and user from the key, and ignores the headers.
        identity = {"X-OpenViking-Account": account, "X-OpenViking-User": user, "X-OpenViking-Actor-Peer": peer}
        key = {"X-API-Key": api_key, "Authorization": f"Bearer {api_key}"} if api_key else {}
        headers = {name: value for name, value in identity.items() if value} | key
        self._http = RemoteClient("openviking", endpoint, headers=headers, timeout=timeout, allow_http=allow_http)

    def close(self) -> None:
        self._http.close()

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
    return sorted(hits, key=lambda hit: -score_of(hit))


def score_of(hit: Mapping[str, Any]) -> float:
    score = hit.get("score")
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) else 0.0
