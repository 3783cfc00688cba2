"""The tools of RetainDB, under the names and with the arguments that the design and Hermes's plugin give them."""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.external.vendors.retaindb.client import RetainDBClient, RetainedMemory
from memoranda.external.vendors.retaindb.files import RetainDBFiles
from memoranda.external.vendors.vendor_tool import VendorTool

_QUERY = {"query": {"type": "string", "description": "What to look for."}}
_FILE_ID = {"file_id": {"type": "string", "description": "The id of a file, as retaindb_list_files shows it."}}
MEMORY_TYPES = ("factual", "preference", "goal", "instruction", "event", "opinion")
_SCOPES = ("USER", "PROJECT", "ORG")
_MAX_FILES = 200

Remember = Callable[[str, str, float, str], str | None]
RecordFile = Callable[[str, str], None]


class RetainDBTools:
    """The tools of one user.

    `remember` stores a text of a type, with an importance, for a session; `record_file` notes the id of an upload.
    """

    def __init__(
        self, client: RetainDBClient, files: RetainDBFiles, project: str, remember: Remember, record_file: RecordFile
    ) -> None:
        self._client = client
        self._files = files
        self._project = project
        self._remember = remember
        self._record_file = record_file

    def tools(self) -> tuple[VendorTool, ...]:
        return (*self._memory_tools(), *self._file_tools())

    def _memory_tools(self) -> tuple[VendorTool, ...]:
        top_k = {"type": "integer", "description": "Maximum number of results.", "minimum": 1, "maximum": 20}
        kind = {"type": "string", "description": "What it is.", "enum": list(MEMORY_TYPES), "default": "factual"}
        importance = {"type": "number", "description": "From 0 to 1.", "minimum": 0, "maximum": 1, "default": 0.7}
        memory_id = {"type": "string", "description": "The id of a memory, as retaindb_search shows it."}
        content = {"type": "string", "description": "One thing that stays true."}
        return (
            VendorTool("retaindb_profile", "Show what RetainDB knows about the user.", {}, self._profile),
            VendorTool(
                "retaindb_search",
                "Search RetainDB's memories of past conversations.",
                {**_QUERY, "top_k": {**top_k, "default": 8}},
                self._search,
                required=("query",),
            ),
            VendorTool(
                "retaindb_context",
                "Get what RetainDB has about a task, from memories and files.",
                _QUERY,
                lambda args, session_id: _found(self._client.context(args["query"])),
                required=("query",),
            ),
            VendorTool(
                "retaindb_remember",
                "Store a memory in RetainDB.",
                {"content": content, "memory_type": kind, "importance": importance},
                self._store,
                required=("content",),
                writes=True,
            ),
            VendorTool(
                "retaindb_forget",
                "Delete a memory in RetainDB.",
                {"memory_id": memory_id},
                self._forget,
                required=("memory_id",),
                writes=True,
            ),
        )

    def _file_tools(self) -> tuple[VendorTool, ...]:
        upload: dict[str, dict[str, Any]] = {
            "local_path": {"type": "string", "description": "A file on this machine."},
            "remote_path": {"type": "string", "description": "Its path in RetainDB; else its name."},
            "scope": {"type": "string", "description": "Who may see it.", "enum": list(_SCOPES), "default": "USER"},
            "ingest": {"type": "boolean", "description": "Also extract memories from it.", "default": False},
        }
        listing: dict[str, dict[str, Any]] = {
            "prefix": {"type": "string", "description": "Only paths that begin with this.", "default": ""},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_FILES, "default": 50},
        }
        return (
            VendorTool(
                "retaindb_upload_file",
                "Store a file in RetainDB; not one with credentials.",
                upload,
                self._upload,
                required=("local_path",),
                writes=True,
            ),
            VendorTool("retaindb_list_files", "List the user's files in RetainDB.", listing, self._list_files),
            VendorTool(
                "retaindb_read_file",
                "Read a text file in RetainDB.",
                _FILE_ID,
                lambda args, session_id: self._files.read(args["file_id"]),
                required=("file_id",),
            ),
            VendorTool(
                "retaindb_ingest_file",
                "Extract memories from a file in RetainDB.",
                _FILE_ID,
                lambda args, session_id: _ingested(self._files.ingest(args["file_id"], self._project)),
                required=("file_id",),
                writes=True,
            ),
            VendorTool(
                "retaindb_delete_file",
                "Delete a file in RetainDB.",
                _FILE_ID,
                self._delete_file,
                required=("file_id",),
                writes=True,
            ),
        )

    def _profile(self, args: dict[str, Any], session_id: str) -> Any:
        return _found(self._client.profile())

    def _search(self, args: dict[str, Any], session_id: str) -> Any:
        return _found(self._client.search(args["query"], args["top_k"]))

    def _store(self, args: dict[str, Any], session_id: str) -> Any:
        memory_id = self._remember(args["content"], args["memory_type"], args["importance"], session_id)
        if memory_id is None:
            return {"error": "RetainDB considers this text to be noise, and has not stored it. Write a whole sentence."}
        return {"result": "Stored in RetainDB.", "memory_id": memory_id}

    def _forget(self, args: dict[str, Any], session_id: str) -> Any:
        # An id alone is no permission to delete what belongs to another user.
        if not self._client.owns(args["memory_id"]) or not self._client.delete(args["memory_id"]):
            return {"error": "The user has no memory with this id; retaindb_search shows ids."}
        return {"result": "Deleted from RetainDB."}

    def _upload(self, args: dict[str, Any], session_id: str) -> Any:
        file = self._files.upload(args["local_path"], args.get("remote_path", ""), args["scope"])
        self._record_file(str(file["id"]), session_id)
        if args["ingest"]:
            file["ingested"] = _ingested(self._files.ingest(str(file["id"]), self._project))
        return {"file": file}

    def _list_files(self, args: dict[str, Any], session_id: str) -> Any:
        files = self._files.list(args["prefix"], args["limit"])
        return {"files": files, "count": len(files)}

    def _delete_file(self, args: dict[str, Any], session_id: str) -> Any:
        self._files.delete(args["file_id"])
        return {"result": "Deleted from RetainDB."}


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
