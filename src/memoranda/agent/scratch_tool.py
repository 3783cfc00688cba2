"""The `scratch` tool: notes that a delegate writes for itself while it works, and that are never stored."""

from collections.abc import Mapping
from typing import Any

from memoranda.support.tool import JsonObject, Tool, tool_refusal

DESCRIPTION = (
    "Notes of your own for this task: write what you find out, read it back later. They end with the task; what the "
    "one who gave you the task should know belongs in your answer."
)
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["write", "read"], "description": "write adds a note, read shows all."},
        "note": {"type": "string", "description": "What to write."},
    },
    "required": ["action"],
}
_MAX_CHARS = 20_000


class ScratchTool:
    """The notes of one delegate."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def tool(self) -> Tool:
        return Tool("scratch", DESCRIPTION, PARAMETERS, self.call)

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        if arguments.get("action") != "write":
            return {"success": True, "notes": list(self.notes)}
        note = arguments.get("note")
        if not isinstance(note, str) or not note.strip():
            return tool_refusal("invalid", "Say in 'note' what to write.")
        if sum(map(len, self.notes)) + len(note) > _MAX_CHARS:
            return tool_refusal("full", f"The notes may have {_MAX_CHARS} characters in all.")
        self.notes.append(note)
        return {"success": True, "notes": len(self.notes)}
