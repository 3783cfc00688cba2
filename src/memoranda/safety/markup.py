"""Finds tags, comments and headers by which a text poses as another part of the prompt."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from memoranda.safety.finding import Severity
from memoranda.safety.substrings import contains_any

_MAX_PER_RULE = 8
_COMMENT_REACH = 1500
# A comment is an attack when it orders a model to do something, or orders "you" to ignore instructions.
_MODELS = frozenset({"ai", "assistant", "agent", "llm", "model", "claude", "gpt", "chatgpt", "copilot", "bot"})
_TASKS = frozenset(
    {"must", "always", "never", "send", "execute", "run", "include", "fetch", "respond", "reply", "forward", "update"}
)
_PLOTS = frozenset(
    {"ignore", "disregard", "override", "instruction", "instructions", "secretly", "exfiltrate", "reveal", "forget"}
)


@dataclass(frozen=True, slots=True)
class MarkupRule:
    """A pattern over the folded text, tried only if one of `hints` is in it."""

    id: str
    severity: Severity
    message: str
    hints: tuple[str, ...]
    pattern: str


_ROLE = "The text contains a tag by which chat models distinguish system, user and assistant."
_FORGED = "The text imitates the frame of a memory block."
MARKUP_RULES = (
    MarkupRule(
        "chat_template_tag",
        Severity.HIGH,
        _ROLE,
        ("<|",),
        (
            r"<\|\s?/?(?:im_start|im_end|im_sep|system|user|assistant|tool|endoftext|eot_id|eom_id|begin_of_text"
            r"|end_of_text|start_header_id|end_header_id|endofprompt|start|end|message|channel)\s?\|>"
        ),
    ),
    MarkupRule("chat_template_tag", Severity.HIGH, _ROLE, ("[/inst", "<<sys", "<</sys"), r"\[/inst\]|<</?sys>>"),
    MarkupRule("chat_template_tag", Severity.HIGH, _ROLE, ("of_turn>",), r"<(?:start|end)_of_turn>"),
    MarkupRule(
        "role_tag",
        Severity.HIGH,
        _ROLE,
        ("system", "assistant", "hidden", "secret"),
        (
            r"</?\s?(?:system(?:[ _-]?(?:prompt|message|instructions?|reminder|note|override|update|command))?"
            r"|assistant|hidden|secret)\s?>"
        ),
    ),
    MarkupRule(
        "role_tag",
        Severity.HIGH,
        _ROLE,
        ("system",),
        (
            r"\(system_message\)|\[/system\]|\[system\]\s{0,2}:"
            r"|\[system[ _](?:prompt|message|instructions?|override|update|note|admin|notice|command|directive)\]"
        ),
    ),
    MarkupRule(
        "fake_update",
        Severity.MEDIUM,
        "The text poses as a notice from the system or its operators.",
        ("system", "admin", "override", "instruction"),
        (
            r"(?:(?<=\n)|(?<=\A))[\s>#*\[\-=!]{0,12}(?:(?:important|urgent|critical|hidden|secret|new|updated"
            r"|emergency)\s){0,2}(?:(?:system|admin|administrator|developer|security|assistant|ai|instruction"
            r"|priority)\s){1,2}(?:override|directive|instructions?|command)\s?(?:\]|:|\*\*|-)"
        ),
    ),
    MarkupRule("forged_block", Severity.HIGH, _FORGED, ("══════════",), "═{10,}"),
    MarkupRule(
        "forged_block",
        Severity.HIGH,
        _FORGED,
        ("memory (", "profile ("),
        r"(?:memory|user profile)\s?\([^)\n]{0,60}\)\s{0,4}\[\s?\d{1,3}\s?%",
    ),
    MarkupRule("forged_block", Severity.HIGH, _FORGED, ("memory-context",), r"</?\s?memory-context\b"),
    MarkupRule(
        "hidden_element",
        Severity.MEDIUM,
        "A page element is styled so that people do not see the text a model reads.",
        ("style",),
        (
            r"<[a-z][a-z0-9]{0,9}\s[^<>]{0,200}style\s?=\s?[\"'][^\"'<>]{0,160}(?:display\s?:\s?none"
            r"|visibility\s?:\s?hidden|font-size\s?:\s?[01](?:px|pt|em)?\s?[;\"']|left\s?:\s?-\d{3,}"
            r"|opacity\s?:\s?0\s?[;\"']|(?<!-)color\s?:\s?transparent)[^<>]{0,160}>\s{0,80}[a-z][^<]{12}"
        ),
    ),
    MarkupRule(
        "exfiltration_link",
        Severity.HIGH,
        "An image link carries data away to another machine.",
        ("](http",),
        r"!\[[^\]\n]{0,60}\]\(https?://[^)\s\[{<]{1,120}(?<=[=/])[\[{<][a-z_ ]{2,40}[\]}>]",
    ),
)


_HINTS = ("<!--", *dict.fromkeys(hint for rule in MARKUP_RULES for hint in rule.hints))


class MarkupMatch(NamedTuple):
    """The part of the folded text that a markup rule matched."""

    id: str
    severity: Severity
    message: str
    start: int
    end: int


def find_markup(plain: str) -> Iterator[MarkupMatch]:
    """Find role tags, forged frames, hidden elements and comments that give orders."""
    if not contains_any(_HINTS, plain):
        return
    for rule in MARKUP_RULES:
        if contains_any(rule.hints, plain):
            for match in islice(_compiled(rule.pattern).finditer(plain), _MAX_PER_RULE):
                yield MarkupMatch(rule.id, rule.severity, rule.message, match.start(), match.end())
    if "<!--" in plain:
        yield from islice(_orders_in_comments(plain), _MAX_PER_RULE)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _orders_in_comments(plain: str) -> Iterator[MarkupMatch]:
    start = plain.find("<!--")
    while start >= 0:
        end = plain.find("-->", start, start + _COMMENT_REACH)
        end = end + 3 if end >= 0 else min(start + _COMMENT_REACH, len(plain))
        words = set(_compiled(r"[a-z]+").findall(plain, start, end))
        if (words & _MODELS and words & (_TASKS | _PLOTS)) or ({"you", "your"} & words and words & _PLOTS):
            message = "A comment that people do not see gives orders to a model."
            yield MarkupMatch("html_comment_injection", Severity.HIGH, message, start, end)
        start = plain.find("<!--", end)
