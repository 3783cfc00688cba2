"""Recognises prompts that ask to continue, or what was done last: their words match nothing that was said then.

Each known word has meanings: "yesterday" is `earlier`, "hicimos" is `us`, `past` and `do`. A prompt asks if its words
have together all meanings of one intent, and if few of its words are unknown: "carry on with the refactoring from
yesterday" may name the work, "go on with the second paragraph" is about what is on the screen. In a script without
spaces, the words are the longest runs of characters that are known. A hook reads every prompt, so this module loads
nothing but `re`, and reads `continue_words.txt` only for a short prompt without code.
"""

from memoranda.support.lazy_pattern import compile_later

_MAX_CHARS = 160
_MAX_UNKNOWN = 5
_MAX_PHRASE = 5
# The meanings that a prompt must have, by the number of its words that may be unknown, such as the name of the work.
# Where that may as well be a verb, as in "where did we park yesterday", none may be.
_INTENTS = {
    0: "where us, where stop, where past do, what past do latest, what past do today, what past do earlier, catchup,"
    "what us past earlier, what us doing, what past doing, recap earlier, recap us today, left earlier,"
    "open us earlier, open us what",
    1: "go stop us, go spot stop, spot us stop, go left, where us stop, where stop do earlier, what us past next,"
    "what session latest, what state us, state earlier, recap session latest, recap us earlier, recap left earlier,"
    "left what us, left us earlier, left session, back where, back what us, back go, catchup us",
    2: "go where us, go where stop, go what us past, where us were with, what us past do earlier, catchup earlier,"
    "back left, what us past do then",
    3: "go earlier command, finish earlier command",
}
# These are about earlier work only if the prompt says nothing else.
_INTENTS_ALONE = "what next, what left, what open, what state"
_WORDS = f"{__file__.removesuffix('prompts.py')}words.txt"
_QUOTED = compile_later(r"[`\"“„«「『《][^`\"“”»」』》]*[`\"“”»」』》]")
_CONTENT_OR_CODE = compile_later(r"[:：=<>{}\[\]()\\/_#$@`\"]|--\w")
_CLAUSE_END = compile_later(r"[.!?;,…—](?!\w)|[。！？；，、\n]")
# Verbs whose second part stands behind the object: "pick this up", "setz die Arbeit fort".
_SEPARATED = compile_later(
    r"\b(pick|catch|bring|wrap|fill|nimm|nehmen|setze?n?|fahre?n?|knüpfe?n?)((?: [^\W\d]+){1,5}?) (up|in|fort|auf|an)\b"
)
_SIGN = compile_later(r"[a-z0-9_]+|[ァ-ヺー]+|[^\W_]")
_WORD = compile_later(r"[^\W_]+(?:[._]\w+)*")
_PARTICLE = compile_later(r"[a-zà-я]{1,2}$|[ぁ-ゖ]")
_MEANINGS: dict[str, str] = {}


def asks_what_was_done(prompt: str) -> bool:
    """Whether a prompt asks what was done, or to continue where the last conversation ended."""
    return _kind(prompt) == "asking"


def asks_to_continue(prompt: str) -> bool:
    """The same, or a bare "go on", which is about earlier work where a conversation begins with it."""
    return bool(_kind(prompt))


def _kind(prompt: str) -> str:
    """ "asking", "bare" for a mere "go on", or "" for every other prompt."""
    text = _QUOTED.sub(" 0 ", prompt.lower().replace("’", "'")) if len(prompt) <= _MAX_CHARS else "="
    if _CONTENT_OR_CODE.search(text):
        return ""
    if not _MEANINGS:
        _read_vocabulary()
    found, unknown = _read(text)
    if unknown > _MAX_UNKNOWN:
        return ""
    parts = [(found, unknown), *map(_read, _CLAUSE_END.split(text))]
    if any(_asks(*part) for part in parts) or (not unknown and _has_intent(found, _INTENTS_ALONE)):
        return "asking"
    # "Lunch is over, go on" is a mere "go on"; "go on, tell me more about closures" is not.
    meanings, unknown_at_end = next(filter(any, reversed(parts)), (found, unknown))
    return "bare" if "go" in meanings and not unknown_at_end and unknown <= 1 else ""


def _asks(found: set[str], unknown: int) -> bool:
    return any(unknown <= allowed and _has_intent(found, intents) for allowed, intents in _INTENTS.items())


def _has_intent(found: set[str], intents: str) -> bool:
    return any(found.issuperset(intent.split()) for intent in intents.split(","))


def _read_vocabulary() -> None:
    with open(_WORDS, encoding="utf-8") as file:
        rows = file.read().replace("\n ", " ").split("\n")
    for row in rows:
        meanings, _, words = row.partition(": ")
        for word in words.split():
            _MEANINGS[word] = _MEANINGS.get(word, "") + f"{meanings} "


def _read(text: str) -> tuple[set[str], int]:
    """The meanings of the words, and how many words have none. A text whose first word has none means nothing."""
    joiner = "" if any("\u3040" <= sign <= "\ud7a3" for sign in text) else "_"
    words = _WORD.findall(_SEPARATED.sub(r"\1_\3\2", text)) if joiner else _SIGN.findall(text)
    found: set[str] = set()
    place, unknown, is_about_other = 0, 0.0, False
    while place < len(words):
        size, meanings = _longest_phrase(words[place : place + _MAX_PHRASE], joiner)
        if "other" in meanings:
            unknown += _MAX_UNKNOWN
        elif not meanings and not _PARTICLE.match(words[place]):
            is_about_other = is_about_other or (not place and bool(joiner))
            # Two signs of a script without spaces are about one word.
            unknown += 1 if joiner or len(words[place]) > 1 else 0.5
        elif not unknown and meanings & {"go", "finish"}:
            found.add("command")
        # A time such as "in March" or "3 days ago" may as well be that of something else.
        unknown += "then" in meanings
        found |= meanings
        place += size
    if found & {"together", "you", "please", "do", "with"}:
        found.add("command")
    if found >= {"latest", "span"}:
        found.add("earlier")
    return set() if is_about_other else found, int(unknown + 0.5)


def _longest_phrase(words: list[str], joiner: str) -> tuple[int, set[str]]:
    """How many of the words are one phrase, and its meanings; of one word also those of its stems."""
    for size in range(len(words), 1, -1):
        if meanings := _MEANINGS.get(joiner.join(words[:size])):
            return size, set(meanings.split())
    stems = (f"{words[0][:length]}*" for length in range(len(words[0]), 2, -1))
    return 1, set("".join(_MEANINGS.get(word, "") for word in (words[0], *stems)).split())
