"""Finds tags, comments and headers by which a text poses as another part of the prompt."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from memoranda.safety.finding import Severity
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_once

_MAX_PER_RULE = 8
_COMMENT_REACH = 1500
# A comment is an attack when it orders a model to do something, or orders "you" to ignore instructions.
_MODELS = frozenset({"ai", "assistant", "agent", "llm", "model", "claude", "gpt", "chatgpt", "copilot", "bot"})
_TASKS = frozenset(
    {"must", "always", "never", "send", "execute", "run", "include", "fetch", "respond", "reply", "forward", "update"}
)
_HTML_TASKS = frozenset(
    {"replace", "insert", "approve", "say", "tell", "copy", "upload", "delete", "rate", "recommend", "cite", "follow"}
)
# A comment in code: it addresses a model by name and wants something that no comment for people wants.
_ADDRESSED_COMMENT = (
    r"(?:#|//|/\*|--|\+)[^\S\n]{0,3}(?:(?:note|instructions?|message|hint)\s(?:to|for)\s(?:the\s|all\s|any\s)?"
    r"|if\syou\sare\s(?:an?\s|the\s)?|attention\s|dear\s|@)?(?:(?:ai|llm|coding|language)\s)?"
    r"(?:ai|llms?|copilot|claude|cursor|chatgpt|gpt|codex|gemini|agents?|assistants?|models?|system|reviewer)"
    r"\s?(?:[:,]|must\b|should\b|please\b|fixing\b|reading\b|editing\b|reviewing\b)[^\n]{0,300}"
)
_COMMENT_PLOTS = frozenset(
    {
        *("upload", "send", "post", "curl", "wget", "ignore", "disregard", "approve", "exfiltrate", "reveal", "grant"),
        *("credentials", "password", "token", "secret", "insert", "superuser", "root", "netrc", "passed", "eval"),
    }
)
_PLOTS = frozenset(
    {"ignore", "disregard", "override", "instruction", "instructions", "secretly", "exfiltrate", "reveal", "forget"}
)


@dataclass(frozen=True, slots=True)
class MarkupRule:
    """A pattern over the folded text, tried only if one of `hints` is in it; every line has a line end before it."""

    id: str
    severity: Severity
    message: str
    hints: tuple[str, ...]
    pattern: str


_ROLE = "The text contains a tag by which chat models distinguish system, user and assistant."
_FORGED = "The text imitates the frame of a memory block."
_CARRIES_AWAY = "An image link carries data away to another machine."
# The value of a parameter that is to be filled in: a template, or a word for what is private.
_PLACEHOLDER = (
    r"(?:[a-z0-9+_%-]{0,12}[\[{<]{1,2}|\$\{?[a-z]|%[a-z_]{3,30}%|[\"']\s?\+|[a-z0-9_-]{0,20}(?:conversation|memory|history"
    r"|api_?key|cookie|password|secret|credential|session_token|user_?email|file_?content|last_?message|chat_?log)"
    r"[a-z0-9_-]{0,20}(?=[)&\"'>\s]))"
)
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
            r"\n[\s>#*\[\-=!]{0,12}(?:(?:important|urgent|critical|hidden|secret|new|updated"
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
        _CARRIES_AWAY,
        ("](http",),
        r"!\[[^\]\n]{0,60}\]\(https?://[^)\s\[{<]{1,120}(?<=[=/])[\[{<][a-z_ ]{2,40}[\]}>]",
    ),
    MarkupRule(
        "exfiltration_link",
        Severity.HIGH,
        _CARRIES_AWAY,
        ("](http", "<img"),
        rf"(?:\]\(|<img\s[^<>!]{{0,60}}src\s?=\s?[\"']?)https?://[^)\s!<]{{1,120}}[?&][a-z_]{{1,20}}={_PLACEHOLDER}",
    ),
    MarkupRule(
        "tool_call",
        Severity.HIGH,
        "The text contains a tool call in the form in which models write them.",
        ("<tool", "<function", "<invoke", '"arguments"', '"parameters"', "functions."),
        (
            r"</?\s?(?:tool_(?:call|use)s?|function_calls?|invoke)(?:\sname\s?=[^<>]{1,60})?\s?>"
            r"|\{\s{0,4}\"(?:tool|name|function)\"\s?:\s?\"[\w.-]{0,30}(?:send|mail|post|http|shell|exec|run|memory|write"
            r"|delete|transfer|upload|sql)[\w.-]{0,30}\"\s?,\s{0,4}\"(?:arguments|parameters|args|input)\"\s?:"
            r"|functions\.\w{0,20}(?:send|mail|post|http|shell|exec|sql|write|delete)\w{0,20}\(\{"
        ),
    ),
)


_COMMENT_SIGNS = ("#", "//", "/*", "--")
_ADDRESSEES = (
    "system",
    "reviewer",
    "agent",
    "assistant",
    "llm",
    "model",
    "copilot",
    "claude",
    "gpt",
    "ai",
    "cursor",
    "codex",
    "gemini",
)
_HINTS = ("<!--", *_COMMENT_SIGNS, *dict.fromkeys(hint for rule in MARKUP_RULES for hint in rule.hints))


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
    lines = f"\n{plain}"
    for rule in MARKUP_RULES:
        if contains_any(rule.hints, plain):
            for match in islice(compile_once(rule.pattern).finditer(lines), _MAX_PER_RULE):
                # The match without the line end before it, in the text without the one that was added.
                start = match.start() if lines[match.start()] == "\n" else match.start() - 1
                yield MarkupMatch(rule.id, rule.severity, rule.message, start, match.end() - 1)
    if "<!--" in plain:
        yield from islice(_orders_in_comments(plain), _MAX_PER_RULE)
    if contains_any(_COMMENT_SIGNS, plain) and contains_any(_ADDRESSEES, plain):
        yield from islice(_orders_in_code(plain), _MAX_PER_RULE)


def _orders_in_comments(plain: str) -> Iterator[MarkupMatch]:
    start = plain.find("<!--")
    while start >= 0:
        end = plain.find("-->", start, start + _COMMENT_REACH)
        end = end + 3 if end >= 0 else min(start + _COMMENT_REACH, len(plain))
        words = set(compile_once(r"[a-z]+").findall(plain, start, end))
        if (words & _MODELS and words & (_TASKS | _HTML_TASKS | _PLOTS)) or (
            {"you", "your"} & words and words & _PLOTS
        ):
            message = "A comment that people do not see gives orders to a model."
            yield MarkupMatch("html_comment_injection", Severity.HIGH, message, start, end)
        start = plain.find("<!--", end)


def _orders_in_code(plain: str) -> Iterator[MarkupMatch]:
    for match in compile_once(_ADDRESSED_COMMENT).finditer(plain):
        if _COMMENT_PLOTS.intersection(compile_once(r"[a-z]+").findall(match[0])):
            message = "A comment in code gives orders to a model."
            yield MarkupMatch("comment_injection", Severity.HIGH, message, *match.span())
