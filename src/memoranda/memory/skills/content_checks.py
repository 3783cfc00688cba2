"""Prepares the new text of a skill file, and checks whether it may be written."""

import re
from collections.abc import Callable

from memoranda.memory.skills import refusals
from memoranda.memory.skills.skill_text import SKILL_FILE, parse_skill
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.safety.withheld_passages import ScreenedText
from memoranda.support.canonical_text import BYTE_ORDER_MARK, unify_newlines, unstorable_character

_PROSE = (".md", ".txt", ".rst")
_DOWNLOAD = re.compile(r"^(\s*(?:sudo\s+)?)(?=(?:curl|wget)\b)")


def line_reader(file: str) -> Callable[[str], str]:
    """How the scanner reads the lines of a file: a command in a script is an order to run it, as "run" is in prose."""
    return str if file.endswith(_PROSE) else lambda line: _DOWNLOAD.sub(r"\1run ", line)


def canonical_content(content: str) -> str:
    """The text with LF line ends, and exactly one of them at the end."""
    text = unify_newlines(content).lstrip(BYTE_ORDER_MARK).strip("\n")
    return f"{text}\n" if text.strip() else ""


def apply_patch(text: str, old_text: str, new_text: str, skill: str, file: str) -> str | SkillRefusal:
    """The text with one passage replaced; the rest stays as it is, line ends included."""
    if not old_text:
        return refusals.empty(skill, "old_text")
    if old_text not in text and "\r\n" in text:
        old_text, new_text = (unify_newlines(passage).replace("\n", "\r\n") for passage in (old_text, new_text))
    count = text.count(old_text)
    if count == 1 and text.find(old_text, text.find(old_text) + 1) >= 0:
        # count() misses overlapping occurrences, which are just as ambiguous.
        count = 2
    if not count:
        return refusals.no_match(skill, file)
    return text.replace(old_text, new_text) if count == 1 else refusals.ambiguous(skill, file, count)


def check_content(skill: str, file: str, planned: str, before: str, limit: int) -> SkillRefusal | None:
    """Refuse a text that may not become the content of a file, apart from what the scanner finds."""
    if not planned.strip():
        return refusals.empty(skill, "The content")
    if unstorable := unstorable_character(planned):
        return refusals.unstorable_text(skill, unstorable)
    if len(planned) > limit and len(planned) > len(before):
        return refusals.too_large(skill, file, len(planned), limit)
    if file != SKILL_FILE:
        return None
    parsed = parse_skill(planned)
    # A skill of another author may have problems already; a change must not add new ones.
    new = [problem for problem in parsed.problems if problem not in parse_skill(before).problems or not before]
    if new:
        return refusals.invalid_skill_text(skill, "; ".join(new))
    if not parsed.description:
        return refusals.invalid_skill_text(skill, "it has no description")
    if parsed.name != skill and (not before or parse_skill(before).name != parsed.name):
        return refusals.different_name(skill, parsed.name)
    return None


def scan_new_passages(
    skill: str, planned: str, before: str, screen_text: Callable[[str], ScreenedText], allow: frozenset[str]
) -> SkillRefusal | None:
    """Refuse a text whose new passages have scanner findings that are not allowed."""
    old = {passage.text for passage in screen_text(before).passages} if before else set()
    new = [passage for passage in screen_text(planned).passages if passage.text not in old]
    found = tuple(sorted({finding for passage in new for finding in passage.findings} - allow))
    return refusals.blocked(skill, found) if found else None
