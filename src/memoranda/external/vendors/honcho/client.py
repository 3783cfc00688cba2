"""The calls of Honcho's HTTP interface (v3), with its limits, and the settings and names for it.

A workspace holds peers and sessions; a message in a session belongs to a peer; a conclusion is what one peer (the
observer) believes about another (the observed). Ids are letters, digits, `_` and `-`. The server answers a question
about an unknown session with an empty page instead of an error, and creates a session with its first message.

Settings have the names that Honcho's configuration files use. The names of workspace, peers and sessions:

    workspace     memoranda
    user          default                      the owner of the default profile, or the setting peerName
                  default__alice               its user alice
    assistant     memoranda__for__default      one for each user; for the owner, the setting aiPeer
    session       default__alice__session__20261116-083000

Each user has an assistant of their own, because Honcho's model may read every session in which the peer that asks takes
part: one assistant for all users would carry what one said into the answers for another. Encoded names never contain
`__`, so no two of these names can be the same.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.remote import RemoteClient, as_object, as_objects
from memoranda.external.settings import MODES
from memoranda.external.vendors.scope import VendorScope, decode_name, encode_name
from memoranda.external.vendors.vendor import ALLOW_HTTP, RECALL_LIMIT, TIMEOUT
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end

MAX_MESSAGE_CHARS = 25_000
MAX_MESSAGES_PER_CALL = 100
_MAX_CHAT_QUERY_CHARS = 10_000
_MAX_SEARCH_QUERY_CHARS = 4_000
# The server limits a conclusion to 8,192 tokens; some scripts have more than one token per character.
MAX_CONCLUSION_CHARS = 5_000
REASONING_LEVELS = ("minimal", "low", "medium", "high", "max")

_PAGE_SIZE = 100
# Largest cosine distance of a conclusion. A guess, not measured with a real embedding model; larger shows more noise.
_MAX_DISTANCE = 0.85
# A server keeps the name of a deleted session for five minutes in its cache, and refuses messages for it until then.
_DELETED_SESSION_SECONDS = 60.0

Row = dict[str, Any]
_row = partial(as_object, vendor="Honcho")
_rows = partial(as_objects, vendor="Honcho")

CLOUD = "https://api.honcho.dev"

FIELDS = (
    ConfigField(
        "baseUrl", "Address of the server; your own one, or Honcho's cloud", default=CLOUD, env_var="HONCHO_BASE_URL"
    ),
    ConfigField(
        "api_key",
        "API key; a server of your own without authentication needs none",
        secret=True,
        url="https://app.honcho.dev",
        env_var="HONCHO_API_KEY",
    ),
    ConfigField("workspace", "Workspace: letters, digits, - and _", default="memoranda"),
    ConfigField("peerName", "Peer of this home's owner; empty: the name of the profile", default=""),
    ConfigField("aiPeer", "Peer of the assistant of this home's owner; empty: one made from the user's", default=""),
    ConfigField(
        "sessionStrategy",
        "One session at Honcho for each session here (per-session), or one for all (global)",
        default="per-session",
        choices=("per-session", "global"),
    ),
    ConfigField(
        "observationMode",
        "directional: user and assistant each observe the other; unified: only the user is modelled",
        default="directional",
        choices=("directional", "unified"),
    ),
    ConfigField(
        "recallMode",
        "Recall before each turn (context), tools for the model (tools), or both (hybrid)",
        default="hybrid",
        choices=MODES,
    ),
    ConfigField("contextTokens", "Limit of recalled text in tokens; 0: only the common limit", default=0, minimum=0),
    ConfigField("contextCadence", "Turns from one request for context to the next", default=1, minimum=1),
    ConfigField(
        "injectionFrequency",
        "Show context every turn, or only in the first turn of a session",
        default="every-turn",
        choices=("every-turn", "first-turn"),
    ),
    ConfigField(
        "dialecticCadence",
        "Turns from one question to Honcho's model to the next; 0: never. Each costs tokens at the server",
        default=1,
        minimum=0,
    ),
    ConfigField("dialecticDepth", "Calls of the model per question", default=1, minimum=1, maximum=3),
    ConfigField("dialecticReasoningLevel", "How much it reasons", default="low", choices=REASONING_LEVELS),
    ConfigField("reasoningHeuristic", "Reason more about long messages", default=True),
    ConfigField("reasoningLevelCap", "The most that long messages may cost", default="high", choices=REASONING_LEVELS),
    ConfigField("dialecticMaxChars", "Limit of an answer in recalled text", default=600, minimum=50, maximum=4_000),
    ConfigField(
        "messageMaxChars",
        "Longer messages are sent in parts",
        default=MAX_MESSAGE_CHARS,
        minimum=500,
        maximum=MAX_MESSAGE_CHARS,
    ),
    ConfigField("saveMessages", "Send completed turns to Honcho", default=True),
    ALLOW_HTTP,
    RECALL_LIMIT,
    TIMEOUT,
)

_PLAIN_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_SESSION = "__session__"
_ALL_SESSIONS = "__sessions"
_ASSISTANT = "memoranda"
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class HonchoNames:
    """The names for one user of a home. `observer` is the peer whose view of the user is read."""

    workspace: str
    user: str
    assistant: str
    observer: str
    shares_session: bool
    shared_peers: tuple[str, ...]
    """The peers that the settings name, so that other programs may use them too."""

    @classmethod
    def resolve(cls, scope: VendorScope, settings: Mapping[str, Any]) -> "HonchoNames":
        """The names for a scope; raises PermanentProviderError for settings that Honcho does not accept."""
        workspace, peer_name, ai_peer = (_checked(settings, key) for key in ("workspace", "peerName", "aiPeer"))
        named_user, named_assistant = ("", "") if scope.user_id else (peer_name, ai_peer)
        user = named_user or scope.peer(max_chars=_MAX_CHARS)
        assistant = named_assistant or f"{ai_peer or _ASSISTANT}__for__{user}"
        if assistant == user:
            raise PermanentProviderError(f"honcho: peerName and aiPeer must differ; both are {user!r}.")
        return cls(
            workspace or _ASSISTANT,
            user,
            assistant,
            observer=assistant if settings["observationMode"] == "directional" else user,
            shares_session=settings["sessionStrategy"] == "global",
            shared_peers=tuple(filter(None, (named_user, named_assistant))),
        )

    @property
    def both(self) -> tuple[str, str]:
        return self.user, self.assistant

    def session(self, session_id: str) -> str:
        """The session at Honcho in which a conversation is kept."""
        if self.shares_session:
            return self.user + _ALL_SESSIONS
        encoded = encode_name(session_id or "none")
        if len(encoded) > _MAX_CHARS:
            # `_h` is no escape, so this is the name of no other session.
            encoded = "_h" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self.user + _SESSION + encoded

    def local_session(self, session: str) -> str:
        """The id of the conversation that is kept in a session; the name of the session if it is no single one."""
        own, found, encoded = session.rpartition(_SESSION)
        if not found or own != self.user or encoded.startswith("_h"):
            return session
        return decode_name(encoded)

    def session_peers(self) -> dict[str, dict[str, bool]]:
        """Who takes part in a session, and whom Honcho models: only the user, or both from both views."""
        both = self.observer == self.assistant
        return {
            self.user: {"observe_me": True, "observe_others": both},
            self.assistant: {"observe_me": both, "observe_others": both},
        }

    def views(self) -> list[tuple[str, str]]:
        """Each observer with whom it observes, in the sessions of this user."""
        return [(observer, observed) for observer in self.both for observed in self.both]


def _checked(settings: Mapping[str, Any], key: str) -> str:
    name = str(settings[key])
    if name and (len(name) > _MAX_CHARS or not _PLAIN_NAME.fullmatch(name)):
        raise PermanentProviderError(
            f"honcho: {key} must be letters, digits, - and single underscores, not {name[:60]!r}."
            " 'memoranda provider setup honcho' sets it."
        )
    return name


class HonchoClient:
    """Calls one workspace. Raises ProviderError."""

    def __init__(self, http: RemoteClient, workspace: str) -> None:
        self._http = http
        self._workspace = workspace
        self._base = f"v3/workspaces/{workspace}"

    def create_workspace(self) -> Row:
        """Get or create the workspace; the cheapest call that checks address and key."""
        return _row(self._http.post("v3/workspaces", {"id": self._workspace}, retry_safe=True))

    def create_peer(self, peer: str) -> None:
        """Get or create a peer. Without metadata: the call would replace that of a peer that exists."""
        self._http.post(f"{self._base}/peers", {"id": peer}, retry_safe=True)

    def create_session(self, session: str, peers: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        """Get or create a session, and set which peers take part and what they observe."""
        body = {"id": session, "peers": dict(peers), "metadata": dict(metadata)}
        self._session_call(lambda: self._http.post(f"{self._base}/sessions", body, retry_safe=True))

    def add_messages(self, session: str, messages: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Store messages in one transaction of the server. Not idempotent: look with `find_messages` before."""
        path = f"{self._base}/sessions/{session}/messages"
        return _rows(self._session_call(lambda: self._http.post(path, {"messages": list(messages)})))

    def find_messages(self, session: str, metadata: Mapping[str, Any]) -> Iterator[Row]:
        """The messages of a session whose metadata contains the given values, oldest first."""
        return self._pages(f"sessions/{session}/messages/list", {"metadata": dict(metadata)})

    def search_messages(
        self,
        query: str,
        authors: Sequence[str],
        limit: int,
        *,
        except_session: str = "",
        timeout: float | None = None,
    ) -> list[Row]:
        """Messages of these authors that are nearest to a query, however far that is.

        Honcho's own filter by membership (`peer_perspective`) hides messages that were written before the peer joined,
        and a peer joins again whenever its session is opened: turns that waited for the server would never be found.
        """
        filters: Row = {"peer_id": {"in": list(authors)}}
        if except_session:
            filters["session_id"] = {"ne": except_session}
        body = {"query": _query(query), "limit": limit, "filters": filters}
        return _rows(self._read("POST", "search", body, timeout=timeout))

    def query_conclusions(
        self, query: str, observer: str, observed: str, limit: int, *, timeout: float | None = None
    ) -> list[Row]:
        """The conclusions of one peer about another that are nearest to a query, without unrelated ones."""
        filters = {"observer_id": observer, "observed_id": observed}
        body = {"query": _query(query), "top_k": limit, "distance": _MAX_DISTANCE, "filters": filters}
        return _rows(_or_default([], lambda: self._read("POST", "conclusions/query", body, timeout=timeout)))

    def list_conclusions(self, observer: str, observed: str, conclusion_id: str = "") -> Iterator[Row]:
        """The conclusions of one peer about another, newest first; only the one with this id if it is given."""
        filters = {"observer_id": observer, "observed_id": observed} | ({"id": conclusion_id} if conclusion_id else {})
        return self._pages("conclusions/list", filters)

    def add_conclusion(self, content: str, observer: str, observed: str) -> Row:
        """Store a conclusion; both peers must exist."""
        row = {"content": content, "observer_id": observer, "observed_id": observed}
        rows = _rows(self._http.post(f"{self._base}/conclusions", {"conclusions": [row]}))
        return rows[0] if rows else {}

    def delete_conclusion(self, conclusion_id: str) -> bool:
        """Delete a conclusion; False when there is none with this id."""
        return self._delete(f"conclusions/{conclusion_id}")

    def get_session_context(
        self, session: str, observer: str, observed: str, *, tokens: int = 1_000, timeout: float | None = None
    ) -> Row:
        """The summary of a session, its latest messages, and the representation and card of a peer.

        `tokens` limits summary and messages.
        """
        options = {
            "summary": "true",
            "limit_to_session": "false",
            "tokens": tokens,
            "peer_target": observed,
            "peer_perspective": observer,
        }
        path = f"sessions/{session}/context"
        return _row(_or_default({}, lambda: self._read("GET", path, query=options, timeout=timeout)))

    def get_card(self, observer: str, observed: str) -> list[str]:
        path = f"peers/{observer}/card"
        answer = _row(_or_default({}, lambda: self._read("GET", path, query={"target": observed})))
        return [str(line) for line in answer.get("peer_card") or ()]

    def set_card(self, observer: str, observed: str, card: Sequence[str]) -> list[str]:
        """Replace the card; an empty one clears it."""
        path = f"{self._base}/peers/{observer}/card"
        answer = _row(self._http.request("PUT", path, {"peer_card": list(card)}, query={"target": observed}))
        return [str(line) for line in answer.get("peer_card") or ()]

    def chat(self, query: str, observer: str, observed: str, level: str, timeout: float) -> str:
        """Ask the server's model what the observer knows about the observed. Takes seconds, and costs tokens there."""
        body: Row = {"query": shorten_end(query, _MAX_CHAT_QUERY_CHARS), "stream": False, "reasoning_level": level}
        if observed != observer:
            body["target"] = observed
        path = f"{self._base}/peers/{observer}/chat"
        answer = _row(_or_default({}, lambda: self._http.post(path, body, timeout=timeout)))
        return str(answer.get("content") or "").strip()

    def list_sessions(self, peer: str, metadata: Mapping[str, Any]) -> Iterator[Row]:
        """The sessions in which a peer takes part and whose metadata contains the given values."""
        return self._pages(f"peers/{peer}/sessions", {"metadata": dict(metadata)})

    def delete_session(self, session: str) -> bool:
        """Delete a session with its messages and what was derived from them; False when there is none.

        The server does it in the background: its deriver must run.
        """
        return self._delete(f"sessions/{session}")

    def queue_status(self) -> Row:
        """How much of what was stored still waits for the deriver."""
        return _row(self._read("GET", "queue/status"))

    def _read(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        return self._http.request(method, f"{self._base}/{path}", body, retry_safe=True, **options)

    def _pages(self, path: str, filters: Mapping[str, Any]) -> Iterator[Row]:
        page = 1
        while True:
            query = {"page": page, "size": _PAGE_SIZE}
            answer = _row(self._read("POST", path, {"filters": dict(filters)}, query=query))
            yield from _rows(answer.get("items"))
            if page >= int(answer.get("pages") or 0):
                return
            page += 1

    def _delete(self, path: str) -> bool:
        return _or_default(False, lambda: self._http.request("DELETE", f"{self._base}/{path}") or True) is not False

    def _session_call(self, call: Callable[[], Any]) -> Any:
        """Make a call that needs a session; one that was deleted a moment ago is only refused for some minutes."""
        try:
            return call()
        except PermanentProviderError as error:
            if not _is_missing(error):
                raise
            raise TemporaryProviderError(
                "Honcho deleted this session a moment ago, and its name is not free yet.", _DELETED_SESSION_SECONDS
            ) from error


def _or_default(default: Any, call: Callable[[], Any]) -> Any:
    """The result of a call; the default when the workspace has no such peer, session or conclusion."""
    try:
        return call()
    except PermanentProviderError as error:
        if not _is_missing(error):
            raise
        return default


def _is_missing(error: PermanentProviderError) -> bool:
    """Whether something in the workspace is missing, and not the whole address."""
    return error.status == 404 and "workspace" in str(error).rpartition("detail")[2]


def _query(text: str) -> str:
    return shorten_end(text.replace("\x00", " "), _MAX_SEARCH_QUERY_CHARS)
