"""OpenViking as a vendor: every turn is a file of the user's memory tree, found by meaning within seconds.

A turn's address depends on its key only, and writing is an upsert, so a repeated delivery replaces itself. At the end
of a session its messages are committed as well, so that the server extracts memories from them with its own model.

The session at the server has one name per session of this home. It counts what it has received, so a repeated delivery
adds nothing, and a session that was resumed adds only its new messages.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.message_text import plain_text
from memoranda.external.provider import Message
from memoranda.external.remote import unless_refused
from memoranda.external.vendors.openviking.client import (
    CATEGORIES,
    CONFLICT,
    FIELDS,
    MAX_BATCH,
    NOT_FOUND,
    SHARED_RESOURCES,
    Level,
    OpenVikingClient,
    OpenVikingUris,
    format_delegation,
    format_turn,
    identity_headers,
    recalled_items,
)
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope, encode_name
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import (
    Delegation,
    MemoryWrite,
    SessionEnd,
    ToolArgumentError,
    Turn,
    Vendor,
    integer,
    text,
    tool,
)
from memoranda.support.json_object import parse_object
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

_MAX_ENTRIES = 50
_MAX_URIS = 3
_READ_CHARS = {"abstract": 1_200, "overview": 4_000, "full": 8_000}
_BATCH_CHARS = 2_500
_ABSTRACT_CHARS = 600
_LEVELS: dict[str, Level] = {"abstract": "abstract", "overview": "overview", "full": "read"}
_BAD_REQUEST = 400
_MAX_WAIT = 300
_URI = text("A viking:// address, as viking_search and viking_browse return it.")


_MAX_TEXT_CHARS = 20_000
_MAX_OUTPUT_CHARS = 4_000
# Memories that OpenViking extracts about a peer must not become memories of the user to whom the peers belong.
_PEER_POLICY = {"self": {"enabled": False}, "peer": {"enabled": True}}

_ABOUT = (
    "# OpenViking\n"
    "OpenViking stores every turn of your conversations, and memories and documents in a tree of viking:// addresses."
)
_RECALL = "What fits the user's message is recalled before you answer."
_TOOLS = (
    "viking_search searches all of it, viking_read reads an address, viking_browse lists one, and viking_remember "
    "stores a memory."
)
# Files of other users and directories do not count against the limit.
_EXTRA_HITS = 3


class OpenVikingVendor(Vendor):
    """One user of a home at an OpenViking server."""

    name = "openviking"
    label = "OpenViking"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    def open(self) -> None:
        self._peer = _peer_of(self.scope, self.settings)
        self._uris: OpenVikingUris | None = None
        self._uris_lock = threading.Lock()
        settings = self.settings
        headers = identity_headers(settings, self._peer)
        self._client = OpenVikingClient(self.connect(settings["endpoint"], settings["api_key"] or "", headers))

    def uris(self, timeout: float | None = None) -> OpenVikingUris:
        """The addresses of this user. The server is asked once who its user is, because a key decides that."""
        with self._uris_lock:
            if self._uris is None:
                self._uris = OpenVikingUris(self._client.user(timeout), self._peer)
            return self._uris

    def test_connection(self) -> str:
        try:
            health = self._client.health()
        except TemporaryProviderError as error:
            advice = "Start 'openviking-server', or set another endpoint: 'memoranda provider setup openviking'."
            raise TemporaryProviderError(f"{error} {advice}", error.retry_after) from error
        if not health.get("version"):
            raise PermanentProviderError(f"What answers at {self.settings['endpoint']} is not an OpenViking server.")
        uris = self.uris()
        self._client.find({"query": "connection test", "limit": 1, "target_uri": uris.memories, "level": 2})
        mode = str(health.get("auth_mode") or "unknown")
        warning = " Everyone who reaches this server can read everything in it." if mode == "dev" else ""
        return f"OpenViking {health['version']} (mode {mode}) answers; memories are in {uris.memories}.{warning}"

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        uris = OpenVikingUris(str(settings.get("user") or "default"), _peer_of(scope, settings))
        return {"memories_at_vendor": uris.memories}

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        deadline = time.monotonic() + timeout
        uris = self.uris(timeout)
        targets = [uris.memories]
        if self.settings["recall_resources"]:
            targets += [uris.resources, SHARED_RESOURCES]
        body = {"query": query, "limit": limit * _EXTRA_HITS, "level": 2, "target_uri": targets}
        hits = self._client.find(body, max(deadline - time.monotonic(), 0.001))
        return recalled_items(hits, uris, self.settings["score_threshold"])[:limit]

    def store_turn(self, turn: Turn) -> str:
        uri = self.uris().turn(turn.session_id, turn.key)
        return self._client.write(uri, format_turn(turn.user, turn.assistant, turn.time))

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        uris, stored = self.uris(), None
        if write.action != "remove" and write.content.strip():
            stored = self._client.write(uris.curated(write.target, write.content), write.content.strip())
        if write.action != "add" and write.old_text.strip():
            old = uris.curated(write.target, write.old_text)
            if old != stored:
                self._client.delete(old)
        return stored

    def store_delegation(self, delegation: Delegation) -> str:
        uri = self.uris().turn(delegation.session_id, delegation.key)
        return self._client.write(uri, format_delegation(delegation.task, delegation.result, delegation.time))

    def end_session(self, end: SessionEnd) -> None:
        if not self.settings["commit_sessions"] or not end.messages:
            return
        name = self._session_name(end.session_id)
        # Before it is sent: an attempt whose answer is lost must be found by `forget`.
        self.sent.add("session", end.session_id, name, end.session_id)
        _archive_session(self._client, name, end.messages, self._peer)

    @tool(
        "viking_search",
        "Search memories and resources in OpenViking by meaning. Returns addresses with a short text each; "
        "viking_read gives the whole of one.",
        ("query",),
        query=text("What to look for."),
        mode=text(
            "deep lets the server's model plan the search, which is slower.",
            enum=["auto", "fast", "deep"],
            default="auto",
        ),
        scope=text("Only search below this viking:// directory."),
        limit=integer(1, 50, 10),
    )
    def _search_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        uris = self.uris()
        targets = [uris.memories, uris.resources, SHARED_RESOURCES]
        if scope := args.get("scope"):
            targets = [uris.resolve(scope)]
        body = {"query": args["query"], "limit": args["limit"], "level": 2, "target_uri": targets}
        hits = self._client.search(body) if args["mode"] == "deep" else self._client.find(body)
        results = [
            {
                "uri": item.id,
                "type": item.kind,
                "score": round(item.score or 0.0, 3),
                "abstract": shorten_end(item.text, _ABSTRACT_CHARS),
                **({"time": item.time} if item.time else {}),
            }
            for item in recalled_items(hits, uris)
        ]
        return {"results": results, "total": len(results)}

    @tool(
        "viking_read",
        "Read files or directories of OpenViking: an abstract, an overview, or all of it.",
        uri=_URI,
        uris={"type": "array", "items": {"type": "string"}, "description": "Up to three addresses."},
        level={"type": "string", "enum": list(_LEVELS), "default": "full"},
    )
    def _read_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        wanted = ([args["uri"]] if args.get("uri") else []) + list(args.get("uris") or ())
        if not 0 < len(wanted) <= _MAX_URIS:
            raise ToolArgumentError(f"viking_read needs uri, or one to {_MAX_URIS} uris.")
        uris, level = self.uris(), args["level"]
        limit = _READ_CHARS[level] if len(wanted) == 1 else min(_READ_CHARS[level], _BATCH_CHARS)
        found = [self._read_one(uris.resolve(uri), level, limit) for uri in wanted]
        return found[0] if len(found) == 1 else {"results": found}

    @tool(
        "viking_browse",
        "List what is in OpenViking: a directory (list), everything below it (tree), or one entry (stat).",
        ("action",),
        action={"type": "string", "enum": ["tree", "list", "stat"]},
        path=text("A viking:// address; your own memories if left out."),
    )
    def _browse_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        uris = self.uris()
        uri = uris.resolve(args.get("path") or uris.memories)
        if args["action"] == "stat":
            return {"uri": uri, "entry": self._stat(uri)}
        entries = self._client.list_directory(uri, "tree" if args["action"] == "tree" else "ls", _MAX_ENTRIES)
        shown = [
            {
                "uri": entry["uri"],
                "directory": entry.get("isDir") is True,
                "abstract": shorten_end(str(entry.get("abstract") or ""), _ABSTRACT_CHARS),
            }
            for entry in entries[:_MAX_ENTRIES]
            if uris.contains(str(entry.get("uri") or ""))
        ]
        return {"uri": uri, "entries": shown}

    @tool(
        "viking_remember",
        "Store one memory in OpenViking. It can be found within seconds.",
        ("content",),
        writes=True,
        content=text("The memory, as a statement that stands alone."),
        category={"type": "string", "enum": list(CATEGORIES), "default": "preference"},
    )
    def _remember_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        content = args["content"].strip()
        uri = self._client.write(self.uris().memory(args["category"], content), content)
        self._record("memory", uri, session_id)
        return {"status": "stored", "uri": uri}

    @tool("viking_forget", "Delete one memory of OpenViking for good.", ("uri",), writes=True, uri=_URI)
    def _forget_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        uri = self.uris().resolve_memory_file(args["uri"])
        # Deleting a file that does not exist succeeds at the server, so a wrong address would go unnoticed.
        self._stat(uri)
        self._client.delete(uri)
        return {"status": "deleted", "uri": uri}

    @tool(
        "viking_add_resource",
        "Have the OpenViking server fetch a document or a repository from the web and index it.",
        ("url",),
        writes=True,
        url=text("An http:// or https:// address that the server fetches."),
        reason=text("Why it is worth keeping."),
        to=text("The viking:// address for it; not together with parent."),
        parent=text("The viking:// directory for it."),
        instruction=text("What to pay attention to when it is read."),
        wait={"type": "boolean", "default": False, "description": "Return when it can be found."},
        timeout={"type": "number", "minimum": 1, "maximum": _MAX_WAIT, "default": 60},
    )
    def _add_resource_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        url = args["url"].strip()
        if not url.startswith(("http://", "https://")):
            raise ToolArgumentError("url must begin with http:// or https://; files of this machine are not uploaded.")
        if args.get("to") and args.get("parent"):
            raise ToolArgumentError("Give to or parent, not both.")
        uris = self.uris()
        target: JsonObject = (
            {"to": uris.resolve(args["to"])}
            if args.get("to")
            else {"parent": uris.resolve(args.get("parent") or uris.resources), "create_parent": True}
        )
        body = {"path": url, "wait": args["wait"], **target}
        body |= {name: args[name] for name in ("reason", "instruction") if args.get(name)}
        added = self._client.add_resource(body, timeout=args["timeout"])
        uri = str(added.get("root_uri") or "")
        if uri:
            self._record("resource", uri, session_id)
        return {"status": "indexed" if args["wait"] else "queued", "uri": uri, "errors": added.get("errors") or []}

    def _stat(self, uri: str) -> JsonObject:
        found: JsonObject | None = unless_refused(lambda: self._client.stat(uri), None)
        if found is None:
            raise ToolArgumentError(f"There is nothing at {uri}.")
        return found

    def _read_one(self, uri: str, level: str, max_chars: int) -> JsonObject:
        try:
            content = self._client.read(uri, _LEVELS[level])
        except PermanentProviderError as error:
            if error.status == NOT_FOUND:
                raise ToolArgumentError(f"There is nothing at {uri}.") from error
            if error.status != _BAD_REQUEST:
                raise
            # Only directories have an overview, and only files can be read in full.
            content = self._client.read(uri, "read" if level != "full" else "overview")
        shown = shorten_end(content, max_chars)
        return {"uri": uri, "level": level, "content": shown, "truncated": len(content) > max_chars}

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        uris, deleted, remaining = self.uris(), [], []
        items = self.sent.of_sessions(session_ids)
        for session_id in {item.session_id for item in items if item.kind in ("turn", "delegation")}:
            self._client.delete(uris.turns(session_id), recursive=True)
        for item in items:
            if item.kind == "session":
                kept = _delete_archive(self._client, item.remote_id, uris)
                remaining += [f"{uri}: a conversation changed it, and it has other sources" for uri in kept]
            elif item.kind in ("memory_write", "memory", "resource") and item.remote_id:
                self._client.delete(item.remote_id, recursive=item.kind == "resource")
            deleted.append(item)
        return deleted, remaining

    def _record(self, kind: str, uri: str, session_id: str) -> None:
        """Record what a tool has stored, for `forget`."""
        self.sent.add(kind, uri, uri, session_id)

    def _session_name(self, session_id: str) -> str:
        """The session at the server. All peers of a user share its sessions, so the name has the peer in it.

        An encoded id has no full stop, so no peer's session has the name of another's.
        """
        return f"memoranda-{f'{self._peer}.' if self._peer else ''}{encode_name(session_id)}"


def _peer_of(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The peer that has this user's memories; empty for the owner of the default profile, who needs none."""
    agent = str(settings.get("agent") or "").strip()
    if "__" in agent or not all(char.isascii() and (char.isalnum() or char in "_.@-") for char in agent):
        raise ProviderError("agent must consist of letters, digits and _ . @ -, without two underscores in a row.")
    if scope.user_id or scope.profile != "default":
        return scope.peer()
    return agent


class OpenVikingProvider(VendorProvider):
    vendor_class = OpenVikingVendor


def _archive_session(client: OpenVikingClient, session_id: str, messages: Sequence[Message], peer: str) -> None:
    """Add the messages that the server does not have yet, and commit the session. Raises ProviderError."""
    specs = list(_message_specs(messages, peer))
    if not specs:
        return
    received = client.count_messages(session_id)
    if received is None:
        received = _create(client, session_id, peer)
    for first in range(received, len(specs), MAX_BATCH):
        client.add_messages(session_id, specs[first : first + MAX_BATCH])
    client.commit(session_id)


def _delete_archive(client: OpenVikingClient, session_id: str, uris: OpenVikingUris) -> list[str]:
    """Delete a session and the memories that were extracted from it; returns the memories that stay.

    A memory that the session only changed belongs to other sessions as well, so it stays.
    """
    kept: list[str] = []
    archives = f"viking://user/{uris.user}/sessions/{session_id}/history"
    for diff in _read_diffs(client, archives):
        kept += [uri for uri in _changed(diff, "updates") if uris.contains(uri)]
        for uri in _changed(diff, "adds"):
            if uris.contains(uri):
                client.delete(uri)
    client.delete_session(session_id)
    return kept


def _message_specs(messages: Sequence[Message], peer: str) -> Iterator[JsonObject]:
    """Messages in OpenViking's form: text, and tool calls with their results. Our own tools are left out."""
    outputs = {
        message.get("tool_call_id"): plain_text(message.get("content"))
        for message in messages
        if message.get("role") == "tool"
    }
    for message in messages:
        role = message.get("role")
        if role not in ("user", "assistant"):
            continue
        words = shorten_end(plain_text(message.get("content")).strip(), _MAX_TEXT_CHARS)
        parts: list[JsonObject] = [{"type": "text", "text": words}] if words else []
        if role == "assistant":
            parts += _tool_parts(message.get("tool_calls"), outputs)
        if parts:
            yield {"role": role, "parts": parts} | ({"peer_id": peer} if peer and role == "user" else {})


def _tool_parts(calls: Any, outputs: Mapping[Any, str]) -> Iterator[JsonObject]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        name = str(function.get("name") or "")
        if not name or name.startswith("viking_"):
            continue
        yield {
            "type": "tool",
            "tool_id": str(call.get("id") or ""),
            "tool_name": name,
            "tool_input": _arguments(function.get("arguments")),
            "tool_output": shorten_end(outputs.get(call.get("id"), ""), _MAX_OUTPUT_CHARS),
            "tool_status": "completed",
        }


def _arguments(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else parse_object(value) or {}


def _create(client: OpenVikingClient, session_id: str, peer: str) -> int:
    """Create a session, and return how many messages it has: it may have been created by an attempt before."""
    try:
        client.create_session(session_id, _PEER_POLICY if peer else None)
    except PermanentProviderError as error:
        if error.status != CONFLICT:
            raise
        raise TemporaryProviderError(f"The session {session_id} was created meanwhile.") from error
    return 0


def _read_diffs(client: OpenVikingClient, archives: str) -> list[JsonObject]:
    """What each commit of a session has changed."""
    directories = unless_refused(lambda: client.list_directory(archives, limit=1_000), [])
    files = [f"{directory.get('uri')}/memory_diff.json" for directory in directories]
    # A commit whose extraction failed has none.
    return [_arguments(unless_refused(partial(client.read, file), "{}")) for file in files]


def _changed(diff: JsonObject, kind: str) -> list[str]:
    operations = diff.get("operations")
    changes = operations.get(kind) if isinstance(operations, dict) else None
    return [str(change.get("uri") or "") for change in changes or () if isinstance(change, dict)]
