"""Standing instructions and preferences of the user: "always …", "from now on …", "I prefer …".

Such a message concerns later work, and shares few words with the prompt that it concerns: "always format dates as
month-day-year" and "when is the submission due?". So it ranks higher for a prompt that asks for advice or work now; not
for a question about the past, which asks for what was said. The index marks the messages that have one of the marker
words, so that a search need not look for each of them; the text tells whether one really instructs.
"""

import re
from functools import cache

from memoranda.search.index.message_text import filter_token
from memoranda.search.index.postings import Word
from memoranda.search.index.tokenizer import is_single_character, tokenize
from memoranda.support.lazy_pattern import compile_later

# A word of each form that `recall.standing_instructions` recognises, in several languages.
_MARKERS = (
    *("always", "never", "prefer", "preference", "rather", "whenever", "forward", "default", "future", "every", "ask"),
    *("hate", "dislike", "immer", "niemals", "bevorzuge", "künftig", "zukünftig", "lieber", "jetzt", "sofort"),
    *("toujours", "jamais", "préfère", "désormais", "dorénavant", "siempre", "nunca", "prefiero", "adelante"),
    *(
        "sempre",
        "prefiro",
        "diante",
        "preferisco",
        "poi",
        "以后",
        "以後",
        "总是",
        "始终",
        "从现",
        "從現",
        "每次",
        "偏好",
    ),
    *("喜欢", "喜歡", "今後", "必ず", "常に", "毎回", "好き"),
)
MARKED = filter_token("marked", 1)
"""The token of the user's messages with any of these words."""


_BEGINNING = r"(?:^|[.!?;:,\n。！；，]\s*|\b(?:and|but|also|so|please) )"
_INSTRUCTS = compile_later(
    rf"{_BEGINNING}(?:please |also |just )*(?:always|never)\b"
    r"|\b(?:from now on|from here on|going forward|by default,? (?:use|please|always))\b"
    r"|\bin (?:the )?future\b,? (?:please|always|use|never|do|don['’]t)\b"
    r"|\b(?:whenever|every time) (?:I|you|we)\b|\bwhen I ask\b"
    r"|\b(?:should|make sure to|be sure to|remember to|want you to|like you to) (?:always|never)\b"
    r"|\bI(?:['’]d| would)?(?: \w+ly| much| also| always)? prefer\b|\bmy preference\b"
    r"|\bI(?:['’]d| would) rather\b|\bI (?:really )?(?:hate|dislike)\b"
    rf"|{_BEGINNING}(?:bitte )?(?:immer|niemals|nie)\b|\bbitte (?:immer|nie)"
    r"|\b(?:ab (?:jetzt|sofort)|künftig|zukünftig|ich bevorzuge|(?:will|möchte|mag) (?:lieber|immer))\b"
    rf"|{_BEGINNING}(?:toujours|jamais|siempre|nunca|sempre)\b"
    r"|\b(?:désormais|dorénavant|je préfère|prefiero|de ahora en adelante|prefiro|de agora em diante)\b"
    r"|\b(?:preferisco|d['’]ora in (?:poi|avanti))\b"
    r"|从现在(?:起|开始)|從現在(?:起|開始)|以[后後](?:请|請|都|不要)|请(?:总是|始终)|每次都|我更?(?:喜欢|喜歡|偏好)"
    r"|(?:今後は|必ず|常に|毎回).{0,40}(?:ください|して|ように)|(?:方|ほう)が好き",
    re.IGNORECASE,
)
_LOOKS_BACK = compile_later(
    r"\b(?:did|had|was|were|have|has)\s+(?!to\b)\w"
    r"|\b(?:remember|recall|remind|last (?:time|week|month|year)|earlier|previous(?:ly)?|ago|yesterday|used to|so far"
    r"|back then|already|over time|throughout|how (?:many|often|long|much)|summar\w+)\b"
    r"|\b(?:our|past|earlier|these) (?:\w+ )?(?:conversation|discussion|chat|session|message)s?\b"
    # Not all that ends in "-ed" is past: "I need".
    r"|\b(?:I|we|you)(?:['’]ve| have)? (?!(?:n|f|s|sp|proc|succ|exc)eed\b|embed\b)"
    r"(?:brought|made|said|told|chose|gave|wrote|\w+ed)\b",
    re.IGNORECASE,
)
_ASKS_FOR_HELP = compile_later(r"\b(?:i|my|me|we|our|us|you|your|please)\b|我|你|请|請|私|ください", re.IGNORECASE)
# A prompt that begins with a verb, and does not ask.
_ORDERS = compile_later(
    r"\W*(?!(?:what|who|whose|when|where|which|why|how|is|are|do|does|can|could|would|will|should|the|a|an)\b)"
    r"[a-z]+\b[^?]*$",
    re.IGNORECASE,
)


def is_standing(text: str) -> bool:
    """Whether a message says how the user always wants something, as far as its words tell."""
    return _INSTRUCTS.search(text) is not None


@cache
def marker_tokens() -> frozenset[str]:
    """The tokens of these words. A search that indexes nothing need not compile what tokenizes their scripts."""
    return frozenset(token for word in _MARKERS for token in tokenize(word)[:1] if not is_single_character(token))


def concerns_work(prompt: str) -> bool:
    """Whether a prompt asks for advice or work now, so that standing instructions may concern it."""
    return not _LOOKS_BACK.search(prompt) and bool(_ASKS_FOR_HELP.search(prompt) or _ORDERS.match(prompt))


MARKERS = Word(MARKED)
"""Messages of the user with a marker word."""
