"""`Tool`: a name, a JSON schema and a function from arguments to a JSON result, which a model can call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


class InvalidArgumentsError(ValueError):
    """The arguments that a model sent cannot be used; the message says why, for the model."""


def tool_refusal(reason: str, error: str) -> JsonObject:
    """Return the result of a tool that refused a call: the reason as a word, and a sentence for the model."""
    return {"success": False, "reason": reason, "error": error}


@dataclass(frozen=True, slots=True)
class StoredText:
    """The kind of stored text that the answers of a tool quote, and the command that shows it to a person as it is.

    `note` says what kind of data it is; without one it is past data.
    """

    source: str
    command: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model sees it.

    `call` never raises: whatever the arguments are, the result is a JSON object with a `success` key.
    `memoranda.safety.fence` filters the answers of Memoranda's own tools; `screened` says that this is done, by
    it or by the tool itself, and `quotes` is the stored text that an answer is labelled with.
    """

    name: str
    description: str
    parameters: JsonObject
    # The function may name its arguments more exactly, as a dict[str, object] or a TypedDict.
    call: Callable[[Any], JsonObject]
    quotes: StoredText | None = None
    screened: bool = False

    def openai_schema(self) -> JsonObject:
        """Return the tool in the function-calling form that OpenAI-compatible APIs accept."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    def anthropic_schema(self) -> JsonObject:
        """Return the tool in the form that Anthropic's messages API accepts."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}
