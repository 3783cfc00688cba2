"""Finds characters that a reader does not see or that change the order of the visible ones.

Joiners, variation selectors and direction marks are part of ordinary writing in many scripts and in emoji, so each
is judged by its neighbours. A soft hyphen is not reported: text copied from web pages is full of them, and folding
removes them before anything is matched, so they hide nothing.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from memoranda.safety.finding import Finding, Severity

_MAX_PER_KIND = 16

# Scripts whose letters change shape by joiners: Arabic, Syriac, N'Ko, Indic, South-East Asian, Tibetan, Mongolian.
_JOINING = (
    "\u0600-\u0603\u0606-\u061b\u061d-\u06ff\u0700-\u07ff\u0840-\u08ff\u0900-\u0fff\u1000-\u109f"
    "\u1780-\u17b3\u17b6-\u17ff\u1800-\u180a"
    "\u1820-\u18aa\u1900-\u1cff\ua800-\ua8ff\ua930-\uaadf\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U00011fff"
)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u3040-\u30ff\u3400-\u9fff"
_RIGHT_TO_LEFT = "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff"
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PICTURE = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_TAGS = "\U000e0000-\U000e007f"
_SUBDIVISION_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"

_AFTER_JOINER = f"[{_JOINING}\\s.,:;!?()\u060c\u061b\u061f\u0964]|\\Z"


class _Kind(NamedTuple):
    """Characters of one kind, and the pattern of those that are where they do not belong.

    Each pattern begins with the characters themselves and looks back over them, because `re` skips fast to a
    leading character set; and it is only tried when one of `members` occurs in the text at all.
    """

    id: str
    members: str
    pattern: str


_KINDS = (
    _Kind("control_character", "\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x9f\ud800-\udfff", ""),
    # A form feed and the carriage return of a Windows line end are ordinary in text files.
    _Kind("control_character", "\r", "\r(?!\n)"),
    _Kind(
        "invisible_character",
        "\u034f\u115f\u1160\u17b4\u17b5\u180e\u2060-\u2065\u206a-\u206f\u3164\uffa0\ufff9-\ufffb",
        "",
    ),
    _Kind(
        "invisible_character",
        "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff",
        "",
    ),
    _Kind("invisible_character", _TAGS, ""),
    _Kind("invisible_character", "\u200b", f"\u200b(?:(?<![{_UNSPACED}]\u200b)|(?![{_UNSPACED}]))"),
    _Kind("invisible_character", "\u200c", f"\u200c(?:(?<![{_JOINING}]\u200c)|(?!{_AFTER_JOINER}))"),
    _Kind(
        "invisible_character",
        "\u200d",
        f"\u200d(?!(?<=[{_JOINING}]\u200d)(?:{_AFTER_JOINER})|(?<=[{_PICTURE}\ufe0f]\u200d)[{_PICTURE}])",
    ),
    _Kind(
        "invisible_character",
        "\ufe0e\ufe0f",
        f"[\ufe0e\ufe0f](?!(?<=[{_PICTURE}].)|(?<=[#*0-9].)\u20e3)",
    ),
    _Kind(
        "invisible_character", "\ufe00-\ufe0d", f"[\ufe00-\ufe0d](?<![{_HAN}\u2200-\u22ff\u1000-\u109f\ua840-\ua877].)"
    ),
    _Kind("invisible_character", "\u180b-\u180d\u180f", "[\u180b-\u180d\u180f](?<![\u1820-\u18aa].)"),
    _Kind("invisible_character", "\U000e0100-\U000e01ef", f"[\U000e0100-\U000e01ef](?<![{_HAN}].)"),
    _Kind("invisible_character", "\ufeff", "\ufeff(?<!\\A\ufeff)"),
    _Kind("direction_override", "\u202a-\u202e\u2066-\u2069", ""),
    _Kind(
        "direction_override",
        "\u200e\u200f\u061c",
        (
            f"[\u200e\u200f\u061c](?<![{_RIGHT_TO_LEFT}].)(?<![{_RIGHT_TO_LEFT}]..)(?!["
            f"{_RIGHT_TO_LEFT}])(?!.[{_RIGHT_TO_LEFT}])"
        ),
    ),
)
_ORDINARY = bytes((*b"\t\n\f", *range(0x20, 0x7F)))
SEVERITIES = {
    "control_character": Severity.MEDIUM,
    "invisible_character": Severity.HIGH,
    "direction_override": Severity.HIGH,
}
_MESSAGES = {
    "control_character": "A control character, such as NUL or a terminal escape, has no place in a note.",
    "invisible_character": "The text has an invisible character where no script or emoji needs one.",
    "direction_override": "A direction-changing character makes the text read differently from how it is stored.",
}


def scan_characters(text: str) -> Iterator[Finding]:
    """Find control, invisible and direction-changing characters."""
    # Nearly all characters are ordinary; deleting their bytes is much faster than searching for the others.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _ORDINARY)
    present = "".join(set(rest.decode("utf-8", "surrogatepass")))
    if not _compiled(f"[{''.join(kind.members for kind in _KINDS)}]").search(present):
        return
    for kind in _KINDS:
        if _compiled(f"[{kind.members}]").search(present):
            for start, end in _find_runs(text, kind):
                yield Finding(kind.id, SEVERITIES[kind.id], (start, end), _MESSAGES[kind.id])


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def _find_runs(text: str, kind: _Kind) -> Iterator[tuple[int, int]]:
    """Unbroken runs of misplaced characters; searching for a plain character set is the fastest search of `re`."""
    misplaced = kind.pattern or f"[{kind.members}]"
    if kind.members == _TAGS:
        found = _compiled(f"{_SUBDIVISION_FLAG}|([{_TAGS}]+)").finditer(text)
        yield from islice((match.span() for match in found if match[1] is not None), _MAX_PER_KIND)
        return
    first, run, position = _compiled(misplaced), _compiled(f"(?:{misplaced})+"), 0
    for _ in range(_MAX_PER_KIND):
        start = first.search(text, position)
        if not start:
            return
        whole = run.match(text, start.start()) or start
        yield whole.span()
        position = whole.end()
