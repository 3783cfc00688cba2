"""RetainDB as a vendor: turns become typed memories, searched by words and meaning; files can be stored beside them.

The tools have the names and the arguments that the design and Hermes's plugin give them. `RetainDBFiles` keeps
everything of a user below a folder of their own. RetainDB lists and opens the files of a whole organization, so the
path of a file says whose it is, and is checked before the file is read, ingested or deleted.
"""

import mimetypes
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.external.loading.hermes.home import HermesHome
from memoranda.external.remote import RemoteClient, unless_refused
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.retaindb.client import (
    FIELDS,
    RetainDBClient,
    RetainedMemory,
    missing_key,
    project_of,
    utc_time,
)
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem, clean_text
from memoranda.external.vendors.vendor import (
    Delegation,
    Delivery,
    MemoryWrite,
    ToolArgumentError,
    Turn,
    Vendor,
    integer,
    text,
    tool,
)

FILE = "file"
"""The kind of an uploaded file in the record of what was sent."""
_MAX_UPLOAD_BYTES = 20_000_000
_MAX_TEXT_CHARS = 32_000
_INGEST_SECONDS = 60.0
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/x-yaml", "application/javascript")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_QUERY = text("What to look for.")
_FILE_ID = text("The id of a file, as retaindb_list_files shows it.")
_MEMORY_TYPES = ("factual", "preference", "goal", "instruction", "event", "opinion")
_SCOPES = ("USER", "PROJECT", "ORG")
_MAX_FILES = 200


class RetainDBFiles:
    """The files of one user. Raises a subclass of ProviderError, or ToolArgumentError for what a model got wrong."""

    def __init__(self, http: RemoteClient, home: Path, folder: str, user_id: str, agent_id: str) -> None:
        self._http = http
        self._home = home
        self._folder = f"/memoranda/{folder}"
        self._user_id = user_id
        self._agent_id = agent_id

    def upload(self, local_path: str, remote_path: str, scope: str) -> dict[str, Any]:
        """Send a file of this machine, unless it may contain credentials or belongs to the home."""
        path = Path(local_path).expanduser()
        try:
            HermesHome("retaindb", self._home).raise_if_read_blocked(path)
            if not path.is_file():
                raise ToolArgumentError(f"{local_path} is not a file.")
            if path.stat().st_size > _MAX_UPLOAD_BYTES:
                raise ToolArgumentError(f"{local_path} is larger than {_MAX_UPLOAD_BYTES:,} bytes.")
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            raise ToolArgumentError(str(error)) from error
        target = self._own_path(remote_path or path.name)
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        boundary = uuid.uuid4().hex
        body = _multipart(boundary, {"path": target, "scope": scope}, path.name, kind, content)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        # The same path again replaces the file, so this may be repeated.
        answer = self._http.request("POST", "/v1/files", body, headers=headers, retry_safe=True)
        return _shown(_file_of(answer))

    def list(self, prefix: str, limit: int) -> list[dict[str, Any]]:
        answer = self._http.get("/v1/files", query={"limit": limit, "prefix": self._own_path(prefix)})
        files = answer.get("files") if isinstance(answer, Mapping) else None
        if not isinstance(files, list):
            raise TemporaryProviderError("RetainDB answered without a list of files.")
        return [_shown(file) for file in files if isinstance(file, Mapping) and self._is_own(file)]

    def read(self, file_id: str) -> dict[str, Any]:
        """The text of a file, at most 32,000 characters."""
        file = self._get(file_id)
        kind = str(file.get("mime_type") or "")
        if not kind.startswith(_TEXT_TYPES):
            raise ToolArgumentError(f"The file is of the type {kind or 'unknown'}; only text can be read.")
        text = self._download(file_id, file).decode("utf-8", "replace")
        return {**_shown(file), "content": text[:_MAX_TEXT_CHARS], "truncated": len(text) > _MAX_TEXT_CHARS}

    def ingest(self, file_id: str, project: str) -> Mapping[str, Any]:
        """Let RetainDB extract memories from a file."""
        self._get(file_id)
        body = {"project": project, "user_id": self._user_id, "agent_id": self._agent_id}
        answer = self._http.post(f"/v1/files/{quote(file_id, safe='')}/ingest", body, timeout=_INGEST_SECONDS)
        return answer if isinstance(answer, Mapping) else {}

    def delete(self, file_id: str) -> None:
        """Delete a file, not only its entry."""
        self._get(file_id)
        self._http.request("DELETE", f"/v1/files/{quote(file_id, safe='')}", query={"hard": "true"})

    def delete_if_there(self, file_id: str) -> None:
        """Delete a file of the user, unless it is gone."""
        try:
            self.delete(file_id)
        except ToolArgumentError:
            return

    def _own_path(self, path: str) -> str:
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        return "/".join((self._folder, *parts))

    def _is_own(self, file: Mapping[str, Any]) -> bool:
        return f"{file.get('path')}/".startswith(f"{self._folder}/")

    def _get(self, file_id: str) -> Mapping[str, Any]:
        path = f"/v1/files/{quote(file_id, safe='')}"
        file: Mapping[str, Any] = unless_refused(lambda: _file_of(self._http.get(path)), {})
        if not self._is_own(file):
            raise ToolArgumentError(
                f"The user has no file {file_id[:60]!r} (or this RetainDB has no files); retaindb_list_files shows ids."
            )
        return file

    def _download(self, file_id: str, file: Mapping[str, Any]) -> bytes:
        """The content: of the service itself, or of the storage to which it points, without our key."""
        url = urlsplit(str(file.get("download_url") or ""))
        if not url.hostname:
            path = f"/v1/files/{quote(file_id, safe='')}/content"
            return bytes(self._http.get(path, headers={"Accept": "*/*"}))
        if url.scheme != "https" or url.hostname in _LOOPBACK:
            raise PermanentProviderError("RetainDB points to a storage that is not reached with https://.")
        storage = RemoteClient("retaindb", f"https://{url.netloc}")
        try:
            return bytes(storage.get(url.path, query=dict(parse_qsl(url.query)), headers={"Accept": "*/*"}))
        finally:
            storage.close()


def _file_of(answer: Any) -> Mapping[str, Any]:
    file = answer.get("file") if isinstance(answer, Mapping) else None
    if not isinstance(file, Mapping):
        raise TemporaryProviderError("RetainDB answered without a file.")
    return file


def _shown(file: Mapping[str, Any]) -> dict[str, Any]:
    """What a model sees of a file."""
    return {name: file.get(name) for name in ("id", "path", "name", "mime_type", "size", "scope")}


def _multipart(boundary: str, fields: Mapping[str, str], name: str, kind: str, content: bytes) -> bytes:
    """A form with one file."""
    safe = name.replace("\\", "_").replace('"', "_").replace("\r", "_").replace("\n", "_")
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
        for field, value in fields.items()
    ]
    disposition = f'form-data; name="file"; filename="{safe}"'
    head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: {kind}\r\n\r\n".encode()
    return b"".join([*parts, head, content, f"\r\n--{boundary}--\r\n".encode()])


def _found(memories: list[RetainedMemory]) -> dict[str, Any]:
    if not memories:
        return {"result": "RetainDB has nothing about this."}
    shown = [
        {"id": memory.id, "content": memory.text, "type": memory.kind, "time": memory.time, "score": memory.score}
        for memory in memories
    ]
    return {"results": shown, "count": len(shown)}


def _ingested(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if isinstance(value, str | int | bool)}


_ABOUT = "# RetainDB\nRetainDB stores what was said in past conversations."
_RECALL = "Memories that fit a message are added to it."
_TOOLS = "retaindb_search searches all of them; retaindb_remember stores what should stay."
_REMAINS = "RetainDB marks deleted memories as expired; its operator decides when they are erased."


class RetainDBVendor(Vendor):
    """RetainDB's cloud, a server of yours, or its local program."""

    name = "retaindb"
    label = "RetainDB"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        return missing_key(settings)

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {
            "user_at_vendor": scope.peer(),
            "project": project_of(scope, settings),
            "address": str(settings["base_url"]),
        }

    def open(self) -> None:
        settings, user_id = self.settings, self.scope.peer()
        key = settings["api_key"] or "local"
        self._project = project_of(self.scope, settings)
        http = self.connect(settings["base_url"], key, {"X-API-Key": key, "x-sdk-runtime": "memoranda"})
        self._client = RetainDBClient(http, self._project, user_id, settings["agent_id"])
        self._files = RetainDBFiles(http, self.scope.home, user_id, user_id, settings["agent_id"])

    def test_connection(self) -> str:
        return self._client.test()

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        found = self._client.search(query, limit, timeout)
        return [RecalledItem(memory.text, memory.time, memory.score, memory.id, memory.kind) for memory in found]

    def store_turn(self, turn: Turn) -> str:
        return self._ingest(turn, turn.user, turn.assistant)

    def store_memory_write(self, write: MemoryWrite) -> str:
        if write.action in ("replace", "remove") and write.old_text:
            self._delete_text(write.old_text)
        content = clean_text(write.content)
        if write.action == "remove" or not content:
            return ""
        kind = "preference" if write.target == "user" else "factual"
        return self._client.write(content, kind, write.session_id, write.uuid, write.time) or ""

    def store_delegation(self, delegation: Delegation) -> str:
        return self._ingest(delegation, f"Delegated task: {delegation.task}", delegation.result)

    @tool("retaindb_profile", "Show what RetainDB knows about the user.")
    def _profile_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return _found(self._client.profile())

    @tool(
        "retaindb_search",
        "Search RetainDB's memories of past conversations.",
        ("query",),
        query=_QUERY,
        top_k=integer(1, 20, 8, description="Maximum number of results."),
    )
    def _search_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return _found(self._client.search(args["query"], args["top_k"]))

    @tool("retaindb_context", "Get what RetainDB has about a task, from memories and files.", ("query",), query=_QUERY)
    def _context_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return _found(self._client.context(args["query"]))

    @tool(
        "retaindb_remember",
        "Store a memory in RetainDB.",
        ("content",),
        writes=True,
        content=text("One thing that stays true."),
        memory_type=text("What it is.", enum=list(_MEMORY_TYPES), default="factual"),
        importance={"type": "number", "description": "From 0 to 1.", "minimum": 0, "maximum": 1, "default": 0.7},
    )
    def _store_tool(self, args: dict[str, Any], session_id: str) -> Any:
        fact, key = clean_text(args["content"]), str(uuid.uuid4())
        memory_id = self._client.write(fact, args["memory_type"], session_id, key, time.time(), args["importance"])
        if memory_id is None:
            return {"error": "RetainDB considers this text to be noise, and has not stored it. Write a whole sentence."}
        self.sent.add("tool", key, memory_id, session_id)
        return {"result": "Stored in RetainDB.", "memory_id": memory_id}

    @tool(
        "retaindb_forget",
        "Delete a memory in RetainDB.",
        ("memory_id",),
        writes=True,
        memory_id=text("The id of a memory, as retaindb_search shows it."),
    )
    def _forget_tool(self, args: dict[str, Any], session_id: str) -> Any:
        # An id alone is no permission to delete what belongs to another user.
        if not self._client.owns(args["memory_id"]) or not self._client.delete(args["memory_id"]):
            return {"error": "The user has no memory with this id; retaindb_search shows ids."}
        return {"result": "Deleted from RetainDB."}

    @tool(
        "retaindb_upload_file",
        "Store a file in RetainDB; not one with credentials.",
        ("local_path",),
        writes=True,
        local_path=text("A file on this machine."),
        remote_path=text("Its path in RetainDB; else its name."),
        scope=text("Who may see it.", enum=list(_SCOPES), default="USER"),
        ingest={"type": "boolean", "description": "Also extract memories from it.", "default": False},
    )
    def _upload_tool(self, args: dict[str, Any], session_id: str) -> Any:
        file = self._files.upload(args["local_path"], args.get("remote_path", ""), args["scope"])
        self.sent.add(FILE, str(file["id"]), str(file["id"]), session_id)
        if args["ingest"]:
            file["ingested"] = _ingested(self._files.ingest(str(file["id"]), self._project))
        return {"file": file}

    @tool(
        "retaindb_list_files",
        "List the user's files in RetainDB.",
        prefix=text("Only paths that begin with this.", default=""),
        limit=integer(1, _MAX_FILES, 50),
    )
    def _list_files_tool(self, args: dict[str, Any], session_id: str) -> Any:
        files = self._files.list(args["prefix"], args["limit"])
        return {"files": files, "count": len(files)}

    @tool("retaindb_read_file", "Read a text file in RetainDB.", ("file_id",), file_id=_FILE_ID)
    def _read_file_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return self._files.read(args["file_id"])

    @tool(
        "retaindb_ingest_file", "Extract memories from a file in RetainDB.", ("file_id",), writes=True, file_id=_FILE_ID
    )
    def _ingest_file_tool(self, args: dict[str, Any], session_id: str) -> Any:
        return _ingested(self._files.ingest(args["file_id"], self._project))

    @tool("retaindb_delete_file", "Delete a file in RetainDB.", ("file_id",), writes=True, file_id=_FILE_ID)
    def _delete_file_tool(self, args: dict[str, Any], session_id: str) -> Any:
        self._files.delete(args["file_id"])
        return {"result": "Deleted from RetainDB."}

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        items = self.sent.of_sessions(session_ids)
        deleted: set[str] = set()
        for item in items:
            if item.kind == FILE:
                self._files.delete_if_there(item.remote_id)
                continue
            for memory_id in item.remote_id.split():
                self._client.delete(memory_id)
                deleted.add(memory_id)
        sessions = dict.fromkeys(item.session_id for item in items) if session_ids is None else session_ids
        listings: list[Callable[[], list[RetainedMemory]]] = [
            partial(self._client.session, session_id) for session_id in sessions if session_id
        ]
        if session_ids is None:
            listings.append(self._client.profile)
        waiting = set().union(*(self._delete_listed(listing, deleted) for listing in listings))
        remaining = [_REMAINS] if deleted else []
        if waiting:
            remaining.append(f"{len(waiting)} deliveries are still processed by RetainDB; repeat this in a minute.")
        return items, remaining

    def _delete_listed(self, listing: Callable[[], list[RetainedMemory]], deleted: set[str]) -> set[str]:
        """Delete what a listing shows, page by page, and note the ids; returns those of pending entries."""
        while True:
            own = [memory for memory in listing() if memory.user_id in ("", self.scope.peer())]
            new = {memory.id for memory in own if not memory.pending} - deleted
            if not new:
                return {memory.id for memory in own if memory.pending}
            for memory_id in sorted(new):
                self._client.delete(memory_id)
            deleted |= new

    def _ingest(self, delivery: Delivery, user: str, assistant: str) -> str:
        """Store a turn unless an earlier attempt did; returns the ids of its memories, separated by spaces."""
        messages = [
            (role, clean_text(text)) for role, text in (("user", user), ("assistant", assistant)) if clean_text(text)
        ]
        if not messages:
            return ""
        if delivery.may_be_stored:
            listed = self._client.session(delivery.session_id)
            if earlier := [memory for memory in listed if _is_attempt(memory, delivery, messages[0][1])]:
                for memory in earlier:
                    if memory.pending:
                        self._client.wait_for_job(memory.job_id)
                return " ".join(memory.id for memory in earlier if not memory.pending)
        return " ".join(self._client.ingest(messages, delivery.session_id, delivery.time))

    def _delete_text(self, text: str) -> None:
        """Delete the memories with exactly this text."""
        for memory in self._client.search(text, 20):
            if memory.text.strip() == clean_text(text) and not memory.pending:
                self._client.delete(memory.id)


class RetainDBProvider(VendorProvider):
    vendor_class = RetainDBVendor


def _is_attempt(memory: RetainedMemory, delivery: Delivery, text: str) -> bool:
    """Whether a memory comes from an earlier attempt of a delivery that begins with `text`."""
    return memory.said_at == utc_time(delivery.time) or (memory.pending and text in memory.text)
