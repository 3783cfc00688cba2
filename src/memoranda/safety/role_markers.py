r"""Escapes the marks by which chat formats separate the system, the user, the assistant and tools.

The scanner withholds those that only an attack contains. The others are written about all the time; a backslash keeps
them legible, and no program or model reads them as live any more: `<\tool_result>`, `System\:`.
"""

import re

from memoranda.safety.substrings import contains_any

_NAMES = (
    r"system|developer|assistant|user|human|tool_?results?|tool_?use|tool_?calls?|tool_?response|function_?calls?"
    r"|function_?results?|invoke|instructions?"
)
_TAG = re.compile(
    rf"(?<!\w)([<＜﹤])(?=\s?/?\s?(?:[a-z]{{1,10}}:)?(?:{_NAMES})(?:[\s_-][^<>\n]{{0,100}})?/?>|\|\s?/?[a-z_]{{2,20}}\s?\|>)|(\[)(?=/?inst\])",
    re.IGNORECASE,
)
_BRACKETS = ("<", "[", "＜", "﹤")
_LINE_HEAD = re.compile(
    r"^([ \t>#*]{0,8}(?:system|developer|human|assistant)[ \t*]{0,3}):", re.IGNORECASE | re.MULTILINE
)


def escape_role_markers(text: str) -> str:
    """A text in which no tag and no beginning of a line passes for a message of another role."""
    if contains_any(_BRACKETS, text):
        text = _TAG.sub(lambda match: f"{match[0]}\\", text)
    return _LINE_HEAD.sub(r"\1\\:", text) if ": " in text or ":\n" in text or text.endswith(":") else text
