"""The tools of OpenViking for a model, under the names and arguments of the design documents."""

from collections.abc import Callable

from memoranda.errors import PermanentProviderError
from memoranda.external.vendors.openviking.client import (
    CATEGORIES,
    NOT_FOUND,
    SHARED_RESOURCES,
    Level,
    OpenVikingClient,
    OpenVikingUris,
    recalled_items,
)
from memoranda.external.vendors.vendor import ToolArgumentError, VendorTool
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
_URI = {"type": "string", "description": "A viking:// address, as viking_search and viking_browse return it."}


class OpenVikingTools:
    """The tools of one user. `uris` is a function, because the server is asked for the user's name at first."""

    def __init__(
        self, client: OpenVikingClient, uris: Callable[[], OpenVikingUris], record: Callable[[str, str, str], None]
    ) -> None:
        self._client = client
        self._uris = uris
        self._record = record

    def tools(self) -> list[VendorTool]:
        return [*self._reading(), *self._writing()]

    def _reading(self) -> list[VendorTool]:
        return [
            VendorTool(
                "viking_search",
                "Search memories and resources in OpenViking by meaning. Returns addresses with a short text each; "
                "viking_read gives the whole of one.",
                {
                    "query": {"type": "string", "description": "What to look for."},
                    "mode": {
                        "type": "string",
                        "enum": ["auto", "fast", "deep"],
                        "default": "auto",
                        "description": "deep lets the server's model plan the search, which is slower.",
                    },
                    "scope": {"type": "string", "description": "Only search below this viking:// directory."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                },
                self.search,
                ("query",),
            ),
            VendorTool(
                "viking_read",
                "Read files or directories of OpenViking: an abstract, an overview, or all of it.",
                {
                    "uri": _URI,
                    "uris": {"type": "array", "items": {"type": "string"}, "description": "Up to three addresses."},
                    "level": {"type": "string", "enum": list(_LEVELS), "default": "full"},
                },
                self.read,
            ),
            VendorTool(
                "viking_browse",
                "List what is in OpenViking: a directory (list), everything below it (tree), or one entry (stat).",
                {
                    "action": {"type": "string", "enum": ["tree", "list", "stat"]},
                    "path": {"type": "string", "description": "A viking:// address; your own memories if left out."},
                },
                self.browse,
                ("action",),
            ),
        ]

    def _writing(self) -> list[VendorTool]:
        return [
            VendorTool(
                "viking_remember",
                "Store one memory in OpenViking. It can be found within seconds.",
                {
                    "content": {"type": "string", "description": "The memory, as a statement that stands alone."},
                    "category": {"type": "string", "enum": list(CATEGORIES), "default": "preference"},
                },
                self.remember,
                ("content",),
                writes=True,
            ),
            VendorTool(
                "viking_forget",
                "Delete one memory of OpenViking for good.",
                {"uri": _URI},
                self.forget,
                ("uri",),
                writes=True,
            ),
            VendorTool(
                "viking_add_resource",
                "Have the OpenViking server fetch a document or a repository from the web and index it.",
                {
                    "url": {"type": "string", "description": "An http:// or https:// address that the server fetches."},
                    "reason": {"type": "string", "description": "Why it is worth keeping."},
                    "to": {"type": "string", "description": "The viking:// address for it; not together with parent."},
                    "parent": {"type": "string", "description": "The viking:// directory for it."},
                    "instruction": {"type": "string", "description": "What to pay attention to when it is read."},
                    "wait": {"type": "boolean", "default": False, "description": "Return when it can be found."},
                    "timeout": {"type": "number", "minimum": 1, "maximum": _MAX_WAIT, "default": 60},
                },
                self.add_resource,
                ("url",),
                writes=True,
            ),
        ]

    def search(self, args: JsonObject, session_id: str) -> JsonObject:
        uris = self._uris()
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

    def read(self, args: JsonObject, session_id: str) -> JsonObject:
        wanted = ([args["uri"]] if args.get("uri") else []) + list(args.get("uris") or ())
        if not 0 < len(wanted) <= _MAX_URIS:
            raise ToolArgumentError(f"viking_read needs uri, or one to {_MAX_URIS} uris.")
        uris, level = self._uris(), args["level"]
        limit = _READ_CHARS[level] if len(wanted) == 1 else min(_READ_CHARS[level], _BATCH_CHARS)
        found = [self._read_one(uris.resolve(uri), level, limit) for uri in wanted]
        return found[0] if len(found) == 1 else {"results": found}

    def browse(self, args: JsonObject, session_id: str) -> JsonObject:
        uris = self._uris()
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

    def remember(self, args: JsonObject, session_id: str) -> JsonObject:
        content = args["content"].strip()
        uri = self._client.write(self._uris().memory(args["category"], content), content)
        self._record("memory", uri, session_id)
        return {"status": "stored", "uri": uri}

    def forget(self, args: JsonObject, session_id: str) -> JsonObject:
        uri = self._uris().resolve_memory_file(args["uri"])
        # Deleting a file that does not exist succeeds at the server, so a wrong address would go unnoticed.
        self._stat(uri)
        self._client.delete(uri)
        return {"status": "deleted", "uri": uri}

    def add_resource(self, args: JsonObject, session_id: str) -> JsonObject:
        url = args["url"].strip()
        if not url.startswith(("http://", "https://")):
            raise ToolArgumentError("url must begin with http:// or https://; files of this machine are not uploaded.")
        if args.get("to") and args.get("parent"):
            raise ToolArgumentError("Give to or parent, not both.")
        uris = self._uris()
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
        try:
            return self._client.stat(uri)
        except PermanentProviderError as error:
            if error.status == NOT_FOUND:
                raise ToolArgumentError(f"There is nothing at {uri}.") from error
            raise

    def _read_one(self, uri: str, level: str, max_chars: int) -> JsonObject:
        try:
            text = self._client.read(uri, _LEVELS[level])
        except PermanentProviderError as error:
            if error.status == NOT_FOUND:
                raise ToolArgumentError(f"There is nothing at {uri}.") from error
            if error.status != _BAD_REQUEST:
                raise
            # Only directories have an overview, and only files can be read in full.
            text = self._client.read(uri, "read" if level != "full" else "overview")
        return {"uri": uri, "level": level, "content": shorten_end(text, max_chars), "truncated": len(text) > max_chars}
