"""A light English stemmer: the forms of one word become one token, and unrelated words stay apart.

The stem is a key, not a word: "city" and "cities" are "citi", "migrate" and "migration" are "migrat". The steps
run in a fixed order (plural, -ly, -ness, -ing and -ed, -ion, -ment, last letter), so that a word and its
derivations get the same stem. Words of other languages hardly change.
"""

from memoranda.support.lazy_pattern import compile_later

_VOWELS = "aeiouy"
_VOWEL_GROUP = compile_later(r"[aeiouy]+")
_DOUBLED = compile_later(r"([bdglmnprt])\1$")
_SHORT = compile_later(r"(?:^|[^aeiouy])[aeiouy][^aeiouywx]$")
_SHORT_E = compile_later(r"(?:^|[^aeiouy])[aeiouy][^aeiouywx]e$")

# Forms that no rule covers, and words that a rule would break. The values are stems.
_IRREGULAR = {
    form: stem
    for stem, forms in {
        "appli": "application applications applicable",
        "becom": "became",
        "begin": "began begun",
        "break": "broke broken",
        "bring": "brought",
        "build": "built",
        "bus": "buses busses",
        "business": "business businesses",
        "buy": "bought",
        "catch": "caught",
        "child": "children",
        "choos": "chose chosen",
        "do": "does did doing",
        "drive": "drove driven",
        "eat": "ate eaten",
        "embed": "embed embeds",
        "evening": "evening evenings",
        "famili": "family families",
        "foot": "feet",
        "get": "got gotten",
        "give": "gave given",
        "go": "goes going went gone",
        "grow": "grew grown",
        "hav": "have has had having",
        "hold": "held",
        "id": "ids",
        "index": "indices",
        "keep": "kept",
        "know": "knew known",
        "lose": "lost",
        "make": "made",
        "man": "men",
        "matrix": "matrices",
        "meet": "met",
        "mouse": "mice",
        "news": "news",
        "pay": "paid payment payments",
        "question": "question questions questioned questioning",
        "revis": "revision revisions",
        "ride": "rode ridden",
        "run": "ran",
        "say": "said",
        "sell": "sold",
        "send": "sent",
        "series": "series",
        "speak": "spoke spoken",
        "spend": "spent",
        "take": "took taken",
        "teach": "taught",
        "tell": "told",
        "think": "thought thoughts",
        "tooth": "teeth",
        "vertex": "vertices",
        "wife": "wives",
        "wear": "wore worn",
        "win": "won",
        "woman": "women",
        "write": "wrote written",
    }.items()
    for form in forms.split()
}


_FORMS: dict[str, list[str]] = {}
for _form, _stem in _IRREGULAR.items():
    _FORMS.setdefault(_stem, []).append(_form)


# The last letters of the endings below; most words end with another letter and need no further check.
_ENDS_OF_ENDINGS = frozenset("sygdnet")


def roots(token: str) -> set[str]:
    """Prefixes for a stem; every word with this stem begins with one of them."""
    if len(token) >= 5 and token.endswith("id"):
        root = token[:-2]
    else:
        root = token[:-1] if len(token) >= 3 and token[-1] in "ie" else token
    return {root, *_FORMS.get(token, ())}


def stem(word: str) -> str:
    """The stem of a lower-case ASCII word."""
    if len(word) < 3 or not word.isalpha():
        return word
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if len(word) == 3 or word[-1] not in _ENDS_OF_ENDINGS:
        return _last_letter(word)
    if word[-1] == "s":
        word = _without_plural(word)
        if word in _IRREGULAR:
            return _IRREGULAR[word]
    # The last letter tells which endings are possible.
    if word[-1] in "ys":
        word = _without_ly_or_ness(word)
    verbal = False
    if word[-1] in "gd":
        word, verbal = _without_ing_or_ed(word)
    if word[-1] == "n" and word.endswith("ion"):
        word, verbal = _without_ion(word)
    if verbal or (word[-1] == "e" and word.endswith("ate")):
        word = _without_at(word)
    if word[-1] == "t" and word.endswith("ment") and len(word) >= 8 and word[-5] not in "aiou":
        word = word[:-4]
    return _last_letter(word)


def _without_plural(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-1]


def _without_ly_or_ness(word: str) -> str:
    if word.endswith("ly") and len(word) >= 6 and word[-3] not in "aofpbu":
        return word[:-2]
    if word.endswith("ness") and len(word) >= 8:
        return word[:-4]
    return word


def _without_ing_or_ed(word: str) -> tuple[str, bool]:
    """The word without a verb's ending, and whether an "at" before that ending may be removed, too."""
    if word.endswith("ing"):
        base = word[:-3]
    elif word.endswith("eed"):
        # "agreed" is a form, "need", "indeed" and "proceed" are not.
        return (word[:-1], False) if len(word) >= 6 and word.endswith("reed") else (word, False)
    elif word.endswith("ed"):
        base = word[:-2]
    else:
        return word, False
    groups = len(_VOWEL_GROUP.findall(base))
    if groups == 0 or (len(base) < 3 and (base[-1] in _VOWELS or len(base) < 2)):
        return word, False
    if len(base) >= 4 and _DOUBLED.search(base) and (base[-1] != "l" or groups > 1):
        return base[:-1], False
    if groups == 1 and _SHORT.search(base):
        return base + "e", False
    return base, True


def _without_ion(word: str) -> tuple[str, bool]:
    if word.endswith("ification"):
        return word[:-6], False
    if word.endswith("ision") and len(word) >= 8:
        return word[:-5] + "id", False
    if len(word) >= 8 and word[-4] in "ts":
        return word[:-3], True
    return word, False


def _without_at(word: str) -> str:
    """Removes the rest of -ation from "documentat" and "organizat"; "migrat" is too short for that."""
    base = word.removesuffix("e")
    return base[:-2] if base.endswith("at") and len(base) >= 7 else word


def _last_letter(word: str) -> str:
    """Normalise the end: a silent e, y and i, and double l."""
    last = word[-1]
    if last == "e":
        if len(word) < 4 or word.endswith("ee"):
            return word
        one_group = len(_VOWEL_GROUP.findall(word[:-1])) == 1
        return word if one_group and _SHORT_E.search(word) else word[:-1]
    if last == "y" and word[-2] not in _VOWELS:
        return word[:-1] + "i"
    if last == "l" and word[-2] == "l" and len(_VOWEL_GROUP.findall(word)) > 1:
        return word[:-1]
    return word
