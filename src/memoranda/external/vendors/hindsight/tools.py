"""The tools of Hindsight, under the names and with the arguments that models and users know."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from memoranda.external.vendors.hindsight import guidance
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.vendor_tool import JsonObject, VendorTool

_TEXT: JsonObject = {"type": "string"}
_NOTHING_FOUND = "No memories match."

Retain = Callable[[str, str, tuple[str, ...], str, str], None]


def hindsight_tools(
    retain: Retain, recall: Callable[[str], list[RecalledItem]], reflect: Callable[[str], str]
) -> Sequence[VendorTool]:
    """The three tools. `retain` gets content, context, tags, a key and the session."""

    def run_retain(args: JsonObject, session_id: str) -> Any:
        key = uuid.uuid4().hex
        retain(args["content"], args.get("context", ""), tuple(args.get("tags", ())), key, session_id)
        return {"result": "Accepted. Hindsight extracts the facts in the background; they can be recalled in a moment."}

    def run_recall(args: JsonObject, session_id: str) -> Any:
        items = recall(args["query"])
        lines = (f"{number}. {_line(item)}" for number, item in enumerate(items, 1))
        return {"result": "\n".join(lines) or _NOTHING_FOUND}

    def run_reflect(args: JsonObject, session_id: str) -> Any:
        return {"result": reflect(args["query"]).strip() or _NOTHING_FOUND}

    retained = {
        "content": {**_TEXT, "description": guidance.CONTENT},
        "context": {**_TEXT, "description": guidance.CONTEXT},
        "tags": {"type": "array", "items": _TEXT, "description": guidance.TAGS},
    }
    recalled = {"query": {**_TEXT, "description": guidance.RECALL_QUERY}}
    reflected = {"query": {**_TEXT, "description": guidance.REFLECT_QUERY}}
    return (
        VendorTool("hindsight_retain", guidance.RETAIN_TOOL, retained, run_retain, ("content",), writes=True),
        VendorTool("hindsight_recall", guidance.RECALL_TOOL, recalled, run_recall, ("query",)),
        VendorTool("hindsight_reflect", guidance.REFLECT_TOOL, reflected, run_reflect, ("query",)),
    )


def _line(item: RecalledItem) -> str:
    day = item.time[:10] if isinstance(item.time, str) else ""
    labels = ", ".join(filter(None, (item.kind, day)))
    return f"{' '.join(item.text.split())} ({labels})" if labels else " ".join(item.text.split())
