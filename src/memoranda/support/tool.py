"""`Tool`: a name, a JSON schema and a function from arguments to a JSON result, which a model can call.

`OWN_TOOLS` has what the rest of Memoranda must know about each of its own tools. `own_tool` builds a tool from its row;
`facts_of` answers for a recorded call, of which only the name is known.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from memoranda.support.lazy_dataclass import dataclass

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


Words = Literal["report", "agent", "others"]
"""Whose words the answers of a tool contain.

`report`: only what the tool has done; `agent`: what the agent may have written itself, perhaps after it read text of
others; `others`: text of anyone.
"""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What Memoranda must know about a tool besides how to call it; the defaults are for an unknown tool."""

    title: str = ""
    """What other programs show to their user instead of the name."""
    read_only: bool = False
    """It changes nothing; a delegate gets no other tools of its session."""
    destructive: bool = True
    """It may change or remove what is there."""
    idempotent: bool = False
    """A repeated call changes nothing more."""
    open_world: bool = True
    """It may use other services than this home."""
    words: Words = "others"
    quotes_memory: bool = False
    """Its results are not indexed: they would compete with what they quote."""
    takes_query: bool = False
    """Its arguments are a query, which is not indexed either."""
    scope: Literal["read", "curate"] = "curate"
    """What a key of the HTTP service must allow to call it."""
    for_hosts: bool = False
    """Other programs get it, over MCP for example."""
    for_reviews: bool = False
    """A background review may call it."""


OWN_TOOLS: Mapping[str, ToolFacts] = MappingProxyType({
    "memory": ToolFacts(
        "Change what is remembered", open_world=False, words="report", quotes_memory=True, for_hosts=True,
        for_reviews=True,
    ),
    "remember": ToolFacts(
        "Remember a fact", destructive=False, idempotent=True, open_world=False, quotes_memory=True, for_hosts=True,
    ),
    "session_search": ToolFacts(
        "Search past conversations", read_only=True, destructive=False, idempotent=True, open_world=False,
        quotes_memory=True, takes_query=True, scope="read", for_hosts=True,
    ),
    "skills_list": ToolFacts(read_only=True, words="agent", scope="read", for_reviews=True),
    "skill_view": ToolFacts(read_only=True, words="agent", scope="read", for_reviews=True),
    "skill_manage": ToolFacts(words="report", for_reviews=True),
    "todo": ToolFacts(words="agent"),
    "scratch": ToolFacts(words="agent"),
    "delegate_task": ToolFacts(),
})  # fmt: skip
"""Memoranda's own tools by name; no tool of a provider may have one of these names."""


def facts_of(name: str) -> ToolFacts:
    """The facts about a tool by its name; the most cautious ones for a tool that is not ours."""
    return OWN_TOOLS.get(name, _UNKNOWN_TOOL)


_UNKNOWN_TOOL = ToolFacts()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model sees it.

    `call` never raises: whatever the arguments are, the result is a JSON object with a `success` key.
    `memoranda.safety.fence` filters the answers of Memoranda's own tools; `screened` says that this is done, by
    it or by the tool itself, and `quotes` is the stored text that an answer is labelled with. `facts` are the most
    cautious ones for a tool that is not Memoranda's own.
    """

    name: str
    description: str
    parameters: JsonObject
    # The function may name its arguments more exactly, as a dict[str, object] or a TypedDict.
    call: Callable[[Any], JsonObject]
    quotes: StoredText | None = None
    screened: bool = False
    facts: ToolFacts = _UNKNOWN_TOOL

    def openai_schema(self) -> JsonObject:
        """Return the tool in the function-calling form that OpenAI-compatible APIs accept."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    def anthropic_schema(self) -> JsonObject:
        """Return the tool in the form that Anthropic's messages API accepts."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}


def own_tool(
    name: str,
    description: str,
    parameters: JsonObject,
    call: Callable[[Any], JsonObject],
    quotes: StoredText | None = None,
    *,
    screened: bool = False,
) -> Tool:
    """One of Memoranda's own tools, with the facts of its row in `OWN_TOOLS`; raises KeyError when it has none."""
    return Tool(name, description, parameters, call, quotes, screened, OWN_TOOLS[name])
