"""Words that mark standing instructions and preferences of a user: "always", "from now on", "I prefer".

The index marks the messages that have one, so that a search need not look for each of the words.
"""

from memoranda.search.index.message_text import filter_token
from memoranda.search.index.tokenizer import is_single_character, tokenize

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
MARKER_TOKENS = frozenset(token for word in _MARKERS for token in tokenize(word)[:1] if not is_single_character(token))
MARKED = filter_token("marked", 1)
"""The token of the user's messages with any of these words."""
