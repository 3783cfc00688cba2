"""How well a fact must match a prompt to be recalled, by what kind of prompt it is.

Facts are mostly about the user and what the user works on. A question about these needs little to be answered, so a
related word is enough; any other question ("how do I …?" included) needs more, and a prompt that asks nothing needs
most of its words.
"""

import re

_QUESTION = re.compile(r"[?？]|吗|呢\s*$|か[。\s]*$")
_INSTRUCTIONS = re.compile(r"\bhow (?:do|can|should|would|could) (?:I|we)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:I|my|me|mine|we|our|ours|us|(?:the )?user(?:'s)?)\b|[我私僕俺]", re.IGNORECASE)

_QUESTION_ABOUT_THE_USER = 0.12
_QUESTION_COVERAGE = 0.3
_OTHER_COVERAGE = 0.5


def min_coverage(prompt: str) -> float:
    """The smallest weighted share of a prompt's words that a fact must match."""
    if not _QUESTION.search(prompt):
        return _OTHER_COVERAGE
    return _QUESTION_ABOUT_THE_USER if _FIRST_PERSON.search(_INSTRUCTIONS.sub("", prompt)) else _QUESTION_COVERAGE
