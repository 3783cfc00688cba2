"""The tools of ByteRover for a model, under the names and arguments of the design documents."""

from collections.abc import Callable
from typing import Any

from memoranda.external.vendors.byterover.brv_program import BrvProgram, JsonObject, NoModelError
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.vendor_tool import VendorTool
from memoranda.support.shorten import shorten_end

_MAX_QUERY_CHARS = 5_000
_MAX_ANSWER_CHARS = 8_000
_MAX_CONTENT_CHARS = 25_000
_ITEM_CHARS = 1_200
_SEARCH_LIMIT = 5
_STATUS_FIELDS = ("cliVersion", "authStatus", "contextTreeStatus", "contextTreeDir", "abstractQueue")

Curate = Callable[[str, str, float], tuple[list[str], list[str]]]
Search = Callable[[str, int, float], list[RecalledItem]]


class ByteRoverTools:
    """The tools of one user's tree."""

    def __init__(self, brv: BrvProgram, timeout: float, search: Search, curate: Curate) -> None:
        self._brv = brv
        self._timeout = timeout
        self._search = search
        self._curate = curate

    def tools(self) -> list[VendorTool]:
        query: dict[str, Any] = {"type": "string", "description": "A question in plain words."}
        content: dict[str, Any] = {"type": "string", "description": "Knowledge worth keeping, with its context."}
        return [
            VendorTool(
                "brv_query",
                "Answer a question from ByteRover's knowledge tree.",
                {"query": query},
                self.query,
                ("query",),
            ),
            VendorTool(
                "brv_curate",
                "Add knowledge to ByteRover's tree: a fact, a decision, a pattern. Its model decides where it belongs.",
                {"content": content},
                self.curate,
                ("content",),
                writes=True,
            ),
            VendorTool("brv_status", "Show the state of ByteRover: version, sign-in, tree.", {}, self.status),
        ]

    def query(self, args: JsonObject, session_id: str) -> JsonObject:
        question = args["query"].strip()[:_MAX_QUERY_CHARS]
        try:
            data = self._brv.run(
                "query", "--timeout", str(int(self._timeout)), text=question, timeout=self._timeout + 2
            )
        except NoModelError as error:
            items = self._search(question, _SEARCH_LIMIT, self._timeout)
            results = [{"path": item.id, "text": shorten_end(item.text, _ITEM_CHARS)} for item in items]
            return {"results": results, "note": f"These are search results. {error}"}
        return {"result": shorten_end(str(data.get("content") or ""), _MAX_ANSWER_CHARS)}

    def curate(self, args: JsonObject, session_id: str) -> JsonObject:
        content = shorten_end(args["content"].strip(), _MAX_CONTENT_CHARS)
        created, updated = self._curate(content, session_id, self._timeout)
        if not created and not updated:
            return {"error": "ByteRover's model stored nothing of it. Say it more precisely, with its context."}
        return {"status": "stored", "created": created, "updated": updated}

    def status(self, args: JsonObject, session_id: str) -> JsonObject:
        data = self._brv.run("status", timeout=self._timeout)
        return {name: data[name] for name in _STATUS_FIELDS if name in data}
