"""Exports as the services write them, made up for these tests."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT_PARENT = "00000000-0000-4000-8000-000000000000"


def node(name: str, parent: str | None, message: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": [], "message": message and {"id": name, **message}}


def words(role: str, text: str, at: float | None = 1_700_000_000.0, **more: Any) -> dict[str, Any]:
    """A plain message of ChatGPT."""
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **more,
    }


def chatgpt(host_id: str, *nodes: dict[str, Any], current: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a conversation of ChatGPT; `current` is the last node by default."""
    mapping = {each["id"]: each for each in nodes}
    for each in nodes:
        if each["parent"] in mapping:
            mapping[each["parent"]]["children"].append(each["id"])
    return {
        "title": "A talk",
        "create_time": 1_700_000_000.5,
        "update_time": 1_700_000_500.0,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current or nodes[-1]["id"],
        "plugin_ids": None,
        "conversation_id": host_id,
        "default_model_slug": "gpt-4o",
        "is_archived": False,
        "id": host_id,
        **more,
    }


def edited() -> dict[str, Any]:
    """Return a conversation with a question that was edited once; the second version is the visible one."""
    return chatgpt(
        "conv-1",
        node("root", None),
        node("sys", "root", words("system", "", None, metadata={"is_visually_hidden_from_conversation": True})),
        node("u1", "sys", words("user", "How do locks work?")),
        node("a1", "u1", words("assistant", "They keep others out.", metadata={"model_slug": "gpt-4"})),
        node("u2", "a1", words("user", "And in Rust?")),
        node("a2", "u2", words("assistant", "With a guard.")),
        node("u3", "a1", words("user", "And in Python?")),
        node("a3", "u3", words("assistant", "With a context manager.")),
    )


def with_tools() -> dict[str, Any]:
    """A conversation with reasoning, a tool, a picture and custom instructions."""
    instructions = {
        "content_type": "user_editable_context",
        "user_profile": "I am Ada.",
        "user_instructions": "Be brief.",
    }
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 10, "height": 20}
    return chatgpt(
        "conv-2",
        node("root", None),
        node("ci", "root", words("user", "", content=instructions)),
        node("u1", "ci", words("user", "", content={
            "content_type": "multimodal_text", "parts": [picture, "What is it?"]})),
        node("t1", "u1", words("assistant", "", content={
            "content_type": "thoughts", "thoughts": [{"summary": "Looking", "content": "It may be a cat."}]})),
        node("c1", "t1", words("assistant", "", recipient="python", content={
            "content_type": "code", "language": "unknown", "text": "print(1)"})),
        node("o1", "c1", words("tool", "", author={"role": "tool", "name": "python"}, content={
            "content_type": "execution_output", "text": "1"})),
        node("o2", "o1", words("tool", "", author={"role": "tool", "name": "python"}, content={
            "content_type": "tether_quote", "url": "https://example.org", "title": "Cats", "text": "Cats purr."})),
        node("r1", "o2", words("assistant", "", content={
            "content_type": "reasoning_recap", "content": "Thought for 5s"})),
        node("n1", "r1", words("assistant", "", content={"content_type": "brand_new", "payload": {"x": 1}})),
        node("a1", "n1", words("assistant", "A cat.", metadata={
            "model_slug": "gpt-5", "finish_details": {"type": "stop"}, "attachments": [{"name": "cat.png"}]})),
        title=None,
        gizmo_id="g-p-123",
    )  # fmt: skip


def spoken(name: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    """A plain message of Claude."""
    return {
        "uuid": name,
        "text": text,
        "content": [{"start_timestamp": None, "stop_timestamp": None, "type": "text", "text": text, "citations": []}],
        "sender": sender,
        "created_at": "2025-06-01T10:00:00.000000Z",
        "updated_at": "2025-06-01T10:00:00.000000Z",
        "attachments": [],
        "files": [],
        **more,
    }


def claude(host_id: str, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation of Claude."""
    return {
        "uuid": host_id,
        "name": "A chat",
        "summary": "",
        "created_at": "2025-06-01T09:59:59.000000Z",
        "updated_at": "2025-06-01T10:10:00.000000Z",
        "account": {"uuid": "acct"},
        "chat_messages": list(messages),
        **more,
    }


def write_json(file: Path, value: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), "utf-8")
    return file


def write_zip(file: Path, members: Mapping[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value))
    return file
