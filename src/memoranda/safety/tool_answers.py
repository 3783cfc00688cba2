"""The one place where answers of Memoranda's tools leave towards a model.

An answer may quote stored text: a past message, a title, the name of a file, a task. Its author may be a stranger, so
it passes the same filter as recalled text (`memoranda.safety.fence`) and is labelled as past data.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from memoranda.safety.fence import PAST_DATA, screen_stored
from memoranda.support.tool import JsonObject, StoredText, Tool

# The most characters by which the label and the note of what is withheld make an answer longer, as JSON.
LABEL_CHARS = 500
_STORED_AS_IT_IS = "what is stored has not changed"


def screen_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """The tools as a model may call them: each answer is filtered, unless the tool does that itself."""
    return tuple(tool if tool.screened else _screen_tool(tool) for tool in tools)


def screen_answer(answer: JsonObject, quotes: StoredText | None = None) -> JsonObject:
    """A tool's answer as a model may read it: the same shape, with a label and a note of what is withheld."""
    screened = screen_stored(answer, source=quotes.source if quotes else "")
    shown: JsonObject = dict(screened.value)
    if quotes and answer.get("success") is True:
        shown["recalled_from"] = f"{quotes.source}: {quotes.note or PAST_DATA}"
    how_to_see = f"'{quotes.command}' shows the text to a person" if quotes else _STORED_AS_IT_IS
    if withheld := screened.describe_withheld(how_to_see):
        shown["withheld"] = withheld
    return shown


def _screen_tool(tool: Tool) -> Tool:
    return replace(tool, call=partial(_call, tool.call, tool.quotes), screened=True)


def _call(call: Callable[[Any], JsonObject], quotes: StoredText | None, arguments: Any) -> JsonObject:
    return screen_answer(call(arguments), quotes)
