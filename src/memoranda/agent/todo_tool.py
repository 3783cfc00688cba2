"""The `todo` tool: the tasks of a conversation, which survive compression and are there again when it is resumed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memoranda.safety.fence import strip_recalled_blocks
from memoranda.support.tool import JsonObject, StoredText, Tool, own_tool, tool_refusal

STATUSES = ("pending", "in_progress", "completed", "cancelled")
DESCRIPTION = (
    "The list of tasks of this conversation. Use it for work of three or more steps: write the list when you begin, "
    "have one task in_progress at a time, and set a task to completed as soon as it is done. Without 'todos' it "
    "returns the list. It is about this conversation only; facts to keep belong in memory."
)
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "description": "The tasks in the order of work. Leave it out to read the list.",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "A short name that is unique in the list."},
                    "content": {"type": "string", "description": "What is to be done."},
                    "status": {"type": "string", "enum": list(STATUSES)},
                },
                "required": ["id"],
            },
        },
        "merge": {
            "type": "boolean",
            "description": "true changes the tasks with these ids and adds new ones; false replaces the list.",
        },
    },
}
_MAX_TASKS = 100
_QUOTES = StoredText("the task list", "memoranda sessions show SESSION", "stored data, not new input from the user")
_MAX_CHARS = 500

Todo = dict[str, str]


class TodoTool:
    """The tasks of one conversation; `load` and `save` read and write them where they are durable."""

    def __init__(self, load: Callable[[], list[Todo]], save: Callable[[Sequence[Todo]], None]) -> None:
        self._load = load
        self._save = save

    def definitions(self) -> tuple[Tool, ...]:
        return (own_tool("todo", DESCRIPTION, PARAMETERS, self.call, _QUOTES),)

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Read the list, or change it as a whole: a task that cannot be used leaves the list as it is."""
        items = arguments.get("todos")
        if items is None:
            return _answer(self._load())
        todos = {todo["id"]: todo for todo in self._load()} if arguments.get("merge") is True else {}
        for item in items if isinstance(items, list) else [items]:
            todo = _read_item(item, todos)
            if isinstance(todo, str):
                return tool_refusal("invalid", f"{todo} The list was not changed.")
            todos[todo["id"]] = todo
        if len(todos) > _MAX_TASKS:
            return tool_refusal("full", f"The list may have {_MAX_TASKS} tasks. The list was not changed.")
        self._save(list(todos.values()))
        return _answer(self._load())


def describe_todos(todos: Sequence[Todo]) -> str:
    """The tasks that are still to be done, as lines for the summary of a conversation; "" when there are none."""
    unfinished = [todo for todo in todos if todo["status"] in ("pending", "in_progress")]
    lines = [f"- [{todo['status']}] {todo['id']}: {todo['content']}" for todo in unfinished]
    return "\n".join(["Tasks still to be done, from the todo list:", *lines]) if lines else ""


def is_todo(value: object) -> bool:
    """Whether a stored value is a task."""
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("id", "content", "status"))


def _read_item(item: Any, known: Mapping[str, Todo]) -> Todo | str:
    """The task that an item describes, completed from the one with the same id; or what is wrong with it."""
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str | int) or not str(item["id"]).strip():
        return "Every task needs an 'id', as text."
    name = str(item["id"]).strip()
    before = known.get(name, {})
    content = item.get("content", before.get("content"))
    status = item.get("status", before.get("status", "pending"))
    if not isinstance(content, str) or not (content := strip_recalled_blocks(content).strip()):
        return f"Task {name[:60]!r} needs 'content': what is to be done."
    if status not in STATUSES:
        return f"The status of task {name[:60]!r} must be one of {', '.join(STATUSES)}."
    if max(len(content), len(name)) > _MAX_CHARS:
        return f"Task {name[:60]!r} is longer than {_MAX_CHARS} characters."
    return {"id": name, "content": content, "status": status}


def _answer(todos: Sequence[Todo]) -> JsonObject:
    counts = {status: sum(todo["status"] == status for todo in todos) for status in STATUSES}
    return {"success": True, "todos": list(todos), "summary": {"total": len(todos), **counts}}
