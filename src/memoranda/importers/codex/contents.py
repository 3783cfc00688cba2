"""Contents as Codex writes them: parts of a message, outputs of tools, and what it says in the user's place."""

import json
from typing import Any

from memoranda.importers.chat_messages import field, objects, text_field, words

# How texts begin that the program puts where the user speaks.
_CONTEXT = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions for ", "<turn_aborted>", "<skill>",
    "<permissions instructions>", "<subagent_notification>", "<collaboration_mode>", "<skills_instructions>",
)  # fmt: skip


def plain(content: Any) -> str:
    """The words of a content, however it is written; a picture is named."""
    if isinstance(content, str):
        return content if content.strip() else ""
    texts = [shown_part(each) for each in content] if isinstance(content, list) else []
    return "\n\n".join(text for text in texts if text.strip())


def shown_part(part: Any) -> str:
    """The words of one part."""
    if not isinstance(part, dict):
        return words(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if "image" in str(part.get("type")):
        return "[image, not imported]"
    return "" if part.get("type") == "encrypted_content" else words(part)


def shown_output(output: Any) -> str:
    """What a tool gave back, as text."""
    if isinstance(output, str) and output.startswith('{"output":'):
        # Versions of 2025 wrapped what a command printed in JSON.
        output = _unwrapped(output)
    if isinstance(output, dict) and "content" in output:
        return shown_output(output["content"])
    return plain(output) if isinstance(output, list) else words(output)


def _unwrapped(output: str) -> Any:
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return output
    return {"content": value["output"]} if isinstance(field(value, "output"), str) else output


def is_context(payload: dict[str, Any], text: str) -> bool:
    """Whether a message in the user's place is the program's own: it says so itself, or begins like one."""
    parts = objects(field(payload, "internal_chat_message_metadata_passthrough", "content_item_metadata"))
    spoke = [text_field(part, "provenance", "type") for part in parts]
    if spoke and all(spoke):
        return all(who == "harness" for who in spoke)
    return text.lstrip().startswith(_CONTEXT)
