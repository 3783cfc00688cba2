"""Words that say little about what is looked for: small words, and words that only frame a question.

Small words are left out unless there is nothing else. Framing words ("remind me", "how many days", "in our previous
conversation") say how an answer is wanted, not what it is about, so they count for less. Both are kept as tokens.
"""

import re
from enum import Enum

from memoranda.index.stop_words import STOP_WORDS, tokens_of

_FRAMING = """
kind type sort number amount total often item summary summarize summarise comprehensive aspect detail different
various several specific specifically particular order list overall across throughout remind remember recall say ask
talk discuss conversation chat previous previously earlier past wonder wondering look looking going please bring walk
since ago pass recent recently current currently ever already day week month today first last second third one think
thought help know want happen happened back
"""
# Endless runs of Chinese and Japanese hold a question when one of these is in them.
_ASKS = re.compile(
    r"什么|甚麼|什麼|哪|谁|誰|怎|为何|為何|多少|几[个年月日次]|是否|吗|嗎|何|いつ|どこ|どの|どう|なぜ|だれ|いくつ|ですか|ますか|か。|무엇|어디|언제|누구|왜"
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|we|our|us)\b|我|私|僕|俺", re.IGNORECASE)
# What the other side said: "you recommended", "did you say", "your suggestion". Not "can you recommend".
_SECOND_PERSON = re.compile(
    r"\b(?:did|had|have) you\b"
    r"|\byou(?:['’]ve|['’]d| had| have)? (?:\w+ed|said|told|gave|wrote|made|put|found|sent)\b"
    r"|\byour (?:\w+ )?(?:suggestion|recommendation|advice|answer|reply|list|tip)s?\b",
    re.IGNORECASE,
)


FRAMING = tokens_of(_FRAMING) - STOP_WORDS


class Perspective(Enum):
    """Whose words a question asks for."""

    ANYBODY = "anybody"
    USER = "user"
    ASSISTANT = "assistant"


def find_perspective(text: str) -> Perspective:
    """Whose words answer this: "what did you recommend" the assistant's, "how many books have I read" the user's."""
    if _SECOND_PERSON.search(text):
        return Perspective.ASSISTANT
    return Perspective.USER if _FIRST_PERSON.search(text) else Perspective.ANYBODY


def is_question(text: str) -> bool:
    """Whether a text without spaces between its words reads like a question."""
    return _ASKS.search(text) is not None
