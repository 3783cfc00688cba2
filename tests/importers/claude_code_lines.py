"""Lines of transcripts as several versions of Claude Code write them; the texts are made up."""

from typing import Any

SESSION = "0b7c1f52-6a43-4f0e-9a55-8f1f3d1f2a10"
Line = dict[str, Any]


def entry(uuid: str, kind: str, *, session: str = SESSION, at: str = "2026-03-01T10:00:00.000Z", **fields: Any) -> Line:
    """Return the fields that every line of a conversation has."""
    return {
        "parentUuid": None, "isSidechain": False, "type": kind, "uuid": uuid, "timestamp": at, "userType": "external",
        "entrypoint": "cli", "cwd": "/home/ann/shop", "sessionId": session, "version": "2.1.197", "gitBranch": "main",
        **fields,
    }  # fmt: skip


def user(uuid: str, content: Any, **fields: Any) -> Line:
    return entry(uuid, "user", **fields, message={"role": "user", "content": content})


def assistant(uuid: str, *blocks: Line, model: str = "claude-opus-4-6", **fields: Any) -> Line:
    message = {
        "id": "msg_01", "type": "message", "role": "assistant", "model": model, "content": list(blocks),
        "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in blocks) else None,
        "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 5},
    }  # fmt: skip
    return entry(uuid, "assistant", **fields, message=message, requestId="req_01")


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def call(name: str, tool: str, **arguments: Any) -> Line:
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}


def result(name: str, content: Any, **fields: Any) -> Line:
    return {"tool_use_id": name, "type": "tool_result", "content": content, **fields}


# Version 2.1: each block of an answer is a line of its own, and much bookkeeping stands between the messages.
PRESENT = [
    {"type": "mode", "mode": "normal", "sessionId": SESSION},
    {"type": "queue-operation", "operation": "enqueue", "content": "Why does it time out?", "sessionId": SESSION},
    user("u1", "Why does the checkout time out?", at="2026-03-01T10:00:01.000Z"),
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {"trackedFileBackups": {}}},
    entry("x1", "attachment", attachment={"type": "skill_listing", "content": "- none"}),
    assistant("a1", {"type": "thinking", "thinking": "The pool may be too small.", "signature": "c2ln"}),
    assistant("a2", text("I look at the pool.")),
    assistant("a3", call("toolu_1", "Bash", command="grep pool shop.toml"), call("toolu_2", "Read", file_path="db.py")),
    user("u2", [result("toolu_1", "pool = 5", is_error=False), result("toolu_2", [text("max = 5"), text("min = 1")])],
         toolUseResult={"stdout": "pool = 5"}, sourceToolAssistantUUID="a3"),
    entry("x2", "progress", data={"type": "hook_progress"}),
    entry("x3", "attachment", attachment={"type": "queued_command", "prompt": "and check the retries too"}),
    assistant("a4", text("Five connections are too few."), at="2026-03-01T10:01:00.000Z"),
    entry("x4", "system", subtype="turn_duration", durationMs=900),
    entry("x5", "system", subtype="informational", content="Context is low.", level="warning"),
    {"type": "ai-title", "aiTitle": "Checkout timeout", "sessionId": SESSION},
    {"type": "last-prompt", "lastPrompt": "Why does the checkout time out?", "leafUuid": "a4", "sessionId": SESSION},
]  # fmt: skip

# Version 1.0: blocks of an answer together, sub-agents between the other lines, a summary as the title.
EARLIER = [
    {"type": "summary", "summary": "Something of another day", "leafUuid": "elsewhere"},
    user("u1", "Rename the module.", version="1.0.113"),
    assistant("a1", text("I ask a sub-agent."), call("toolu_1", "Task", prompt="find all imports")),
    user("s1", "find all imports", isSidechain=True),
    assistant("s2", text("There are four imports."), isSidechain=True),
    user("u2", [result("toolu_1", "four imports")]),
    assistant("a2", text("Done.")),
    {"type": "summary", "summary": "Renaming a module", "leafUuid": "a2"},
]  # fmt: skip

COMPACTED = [
    user("u1", "Let us plan the move."),
    assistant("a1", text("First the tables.")),
    entry("b1", "system", subtype="compact_boundary", content="Conversation compacted", logicalParentUuid="a1",
          compactMetadata={"trigger": "auto", "preTokens": 155_000}),
    user("c1", "This session is being continued from a previous conversation.", isCompactSummary=True,
         isVisibleInTranscriptOnly=True),
    # Compaction may write earlier lines once more.
    assistant("a1", text("First the tables.")),
    user("u2", "Caveat: the messages below were made by a command.", isMeta=True),
    user("u3", "<command-name>/model</command-name>\n<command-args></command-args>"),
    user("u4", "<local-command-stdout>Set model to opus</local-command-stdout>"),
    assistant("a2", text("API Error: overloaded"), model="<synthetic>", isApiErrorMessage=True),
    {"type": "custom-title", "customTitle": "The move", "sessionId": SESSION},
    {"type": "ai-title", "aiTitle": "A worse title", "sessionId": SESSION},
]  # fmt: skip
