"""Reads an entry as a claim: who or what it is about, the classes of its verbs, and its other words in order.

Two wordings of a fact differ in their verbs and in words that say nothing of their own. So verbs that only join, such
as "uses" and "lives in", count by their class, and common wordings are replaced by one before words are compared.
"""

import re
from dataclasses import field
from functools import lru_cache

from memoranda.search.index.stemmer import stem
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.curator.clauses import Word, clauses_of, is_filler, is_known, words_of
from memoranda.upkeep.curator.word_roots import is_kind, is_light, root_of

_I = re.IGNORECASE

# Verbs by what they say of their subject.
_VERBS = {
    "like": "like likes prefer prefers preferred favor favors enjoy enjoys love loves"
    " mag bevorzugt liebt préfère aime prefiere gusta gustan",
    "use": "use uses used using utilize utilizes target targets nutzt nutzen verwendet verwenden benutzt benutzen"
    " utilise utilisent usa usan utiliza employ",
    "live": "based live lives reside resides city wohnt lebt wohnort habite vit domicile vive ciudad",
    "work": "work works working employed employs profession occupation arbeitet travaille trabaja",
    "run": "run runs ran running execute executes listen listens serve serves läuft laufen lauscht"
    " écoute tourne lance lancent exécute exécuter corre escucha",
    "place": "store stored stores kept located locate found hosted deployed placed lie lies hold holds retention"
    " reachable steht stehen liegt liegen trouve hébergé hébergée está están guarda guardan",
    "go": "go goes sent send sends gehen geht schicken deliver delivered",
    "own": "own owns owned owner maintain maintains maintained maintainer leads led lead leader handle handles handled",
    "call": "called named name naming names heißt appelle llama nom nombre",
    "take": "take takes last lasts dauert dure dura cost costs kostet",
    "end": "end ends expire expires due endet vence termina",
    "start": "start starts begin begins beginnt commence empieza",
    "write": "written write implemented implementation geschrieben écrit escrito",
    "require": "required require requires needs need needed",
    "report": "report reports reporting",
    "drive": "drive drives car",
    "born": "born birthday",
    "meet": "meet meets happen happens held lieu",
}  # fmt: skip
_CLASS_OF = {word: name for name, words in _VERBS.items() for word in words.split()}
_CJK_WORDS = {
    "like": "喜欢|偏好|喜爱",
    "use": "使用|采用",
    "user": "^用户|^我(?!们)|^ユーザー|^私",
    "project": "^项目|^我们",
}
# A server runs where it is, a repository lives where it is, and a project runs on what it uses.
_ALIKE = (
    frozenset(("run", "place")),
    frozenset(("live", "place")),
    frozenset(("run", "use")),
    frozenset(("go", "write")),
    frozenset(("take", "require")),
)
# The class of every verb that says that something is not as it was.
CHANGED = "changed"
_SUBJECTS = {
    "user": "user i my he she nutzer benutzer utilisateur utilisatrice usuario usuaria",
    "project": "project we our repo repository app application projekt projet proyecto",
}
_SUBJECT_OF = {stem(word): name for name, words in _SUBJECTS.items() for word in words.split()}
_IGNORED_WORDS = """
please remember note always usually currently now really says said told prefer jetzt ahora already still also just
time times environment done date want wants should got
directory folder roughly approximately
"""
_IGNORED = frozenset(map(stem, _IGNORED_WORDS.split()))
_IN_PROJECT = re.compile(r"\s+(?:in|of|for) (?:this|the|our) (?:repo|repository|project|codebase)\b", _I)
_OF_USER = re.compile(r"\s+of (?:the )?user\b(?!['’])", _I)
_PREFACE = re.compile(
    r"^\W*(?:correction|update|fyi|heads up|note|please remember|remember)[:,]\s+|\b[ld]['’](?=\w)", _I
)
# Wordings that another one says as well, before words are compared.
_REWORDED = [
    (re.compile(wording, _I), plain)
    for wording, plain in (
        (r"`(\w+)`", r"\1"),
        (r"^one thing\b", ""),
        (r"\btime zone\b", "timezone"),
        (r"\b(?:dislikes?|hates?)\b", "does not like"),
        (r"\bavoid\b", "do not use"),
        (r"\btakes? place\b|\ba lieu\b", "happens"),
        (r"\bkicks? off\b", "starts"),
        (r"\b(?:is|are) (?:(?:built|made|done|run) (?:with|using)|built on)\b", "uses"),
        (r"\b(?:is|are) (?:forbidden|prohibited|not allowed)\b", "never"),
        (r"\b(?:do not|don['’]t|never) (\w+) (.+?) without asking(?: first)?", r"ask before \1 \2"),
        (r"(?:^|\bmy |['’]s )(?:home|residence) is\b", " lives"),
        (r"简洁|简明", "简短"),
        (r"回复|答复", "回答"),
        (r"居住地[是はの]*|居住在?|家住|住在|住址", "在"),
        (r"环境的?", ""),
        (r"(?:已经?)?搬到", "在"),
        (r"(?:现在|已经?)?改用", "使用"),
        (r"\bin charge of\b|\bresponsible for\b", "owns"),
    )
]
# Wordings of negations, bounds and questions that are compared only where two entries may say the same.
_NORMAL_FORMS = [
    (re.compile(wording, _I), plain)
    for wording, plain in (
        (r"\b(?:rather than|instead of|as opposed to)\b", "not"),
        (r"\bbe changed\b", "be edited"),
        (r"\b(?:prior to|ahead of)\b", "before"),
        (r"\b(?:past|later than)\b(?= \d)", "after"),
        (r"\bfirst\b(?= before|[.,;]|$)", ""),
        (r"\b(?:less|fewer) than\b", "under"),
        (r"\b(?:more|longer|greater) than\b", "over"),
        (r"\b(?:no|not) (?:later|after) than\b", "by"),
        (r"\b(?:must|may|should|shall|can)(?: not|n['’]t)|cannot\b", "never"),
        (r"\b(?:is|are) (?:where|when|what|who|how)\b", "is"),
        (r"\b(?:each|every|per) day\b", "daily"),
        (r"\b(?:each|every) (week|month|year|hour|night)(?:['’]s)?\b", r"\1ly"),
        (r"(?<=\w)/(?=(?:s|sec|second|min|minute|h|hour|day|week|month|year)\b)", " per "),
        (r"\b(?:better|more) than\b(?! \d)", "not"),
        (r"(\bpreferred|\bprefers? \S.{0,30}?) (?:over|to)\b", r"\1 not"),
    )
]
CHANGE = re.compile(
    r"\b(?:moved|switched|migrated|changed|to change|renamed|replaced|raised|lowered|increased|reduced|extended"
    r"|shortened|upgraded|downgraded|bumped|relocated|transferred|lifted|handed(?! in)|succeeded|took over|rose"
    r"|went (?:up|down)|in favou?r of|(?<!are )(?<!is )pushed|swapped|postponed|rescheduled|dropped|retired|instead"
    r"|erhöht|gesenkt|gezogen|umgezogen|gewechselt|umgestiegen|déménagé|passée?s?|changé|remplacé|mudó|cambió|pasó"
    r"|ahora)\b|改用|换成|搬到|改成|変更|移行|切り替え",
    _I,
)
SAYS_NOW = re.compile(
    r"\b(?:now|nowadays|since|as of|jetzt|nun|inzwischen|seit|ahora|desde|maintenant|désormais|depuis)\b|现在|如今", _I
)
_PRESENT = re.compile(r"[a-z]{2,}[^s\W]s")
# A verb stands behind its subject, a noun behind a determiner or a preposition.
_BEFORE_VERB = re.compile(
    r"(?:^|\s)(?!(?:the|an?|of|in|on|at|to|for|with|and|or|by|from|no|not|all|any|each|every|its|our|my|his|her"
    r"|their)\s|\w+[a-rt-z]s\s)[\w'’-]*\w\s+$",
    _I,
)
_BEFORE_PARTICIPLE = re.compile(r"\b(?:is|are|be|being|gets?)\s+$", _I)
_BEFORE_KIND = re.compile(r"(?:^|[\s-])(?!(?:the|an?|for|of|to|in|on|at|and|or|any|\w*ing) )[\w`’'./-]+ $", _I)
_BEHIND_PARTICIPLE = re.compile(r" (?:by|with|in|on|at|as|for|to|from|through|via|under|into)\b")
_BEHIND_NOUN = re.compile(r"-|$|[ ,.]*(?:and|or|und|et|y)\b|[,.]")
_BEFORE_INFINITIVE = re.compile(
    r"(?:n['’]t|\b(?:not|never|must|should|can|will|may|we|you|they|always|please))\s+$", _I
)
_MIN_FORM = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry as its words in order, who or what it is about, and the classes of its verbs."""

    text: str
    words: tuple[Word, ...]
    subject: str
    verbs: frozenset[str]
    keys: tuple[str, ...] = field(default=())

    @property
    def values(self) -> frozenset[str]:
        return frozenset(self.keys)


@lru_cache(maxsize=2048)
def normal_claim(text: str) -> Claim:
    for wording, plain in _NORMAL_FORMS:
        text = wording.sub(plain, text)
    return read_claim(text)


@lru_cache(maxsize=2048)
def read_claim(text: str) -> Claim:
    verbs = {CHANGED} if CHANGE.search(text) else set[str]()
    text = _PREFACE.sub("", text)
    for wording, plain in _REWORDED:
        text = wording.sub(plain, text)
    subject = "project" if _IN_PROJECT.search(text) else "user" if _OF_USER.search(text) else ""
    text = _OF_USER.sub("", _IN_PROJECT.sub("", text))
    for name, pattern in _CJK_WORDS.items():
        if re.search(pattern, text):
            verbs |= {name} & set(_VERBS)
            subject = subject or (name if name in _SUBJECTS else "")
            text = re.sub(pattern, " ", text)
    clauses = clauses_of(text)
    language_words = [word for clause in clauses for word in clause.words] or words_of(text)
    words: list[Word] = []
    at = 0
    for word in language_words:
        key = word.key
        at = max(at, text.find(word.text, at))
        is_person = _SUBJECT_OF.get(key) == "user" and not word.text.lower().endswith("users")
        if key in _SUBJECT_OF and (not words or is_person) and subject in ("", _SUBJECT_OF[key]):
            subject = _SUBJECT_OF[key]
        elif word.kind in ("word", "name") and (verb := _verb_class(word.text, text, at)):
            verbs.add(verb)
        elif key not in _IGNORED and not (CHANGE.fullmatch(word.text) or SAYS_NOW.fullmatch(word.text)):
            words.append(word._replace(at=at))
    return Claim(text, tuple(words), subject, frozenset(verbs), tuple(key_of(word) for word in words))


def _verb_class(word: str, text: str, at: int) -> str:
    """The class of a verb; French joins its negation to it: "n'utilise plus". Go is a language, and work a place."""
    is_place = word.lower() == "work" and not re.match(r"work (?:at|for|as|in|on|with|from)\b", text[at:], _I)
    is_part = (word == "call" and text[:at].endswith("-")) or (word == "last" and text[:at].endswith("the "))
    return "" if word == "Go" or is_place or is_part else _CLASS_OF.get(re.sub(r"^[nsjmt]['’]", "", word.lower()), "")


def key_of(word: Word) -> str:
    return f"{root_of(word.key)} {word.unit}".strip()


def is_weak(word: Word) -> bool:
    """Whether another wording may lack a word."""
    return (
        word.kind in ("word", "name")
        and word.key not in ("work", "call")
        and (is_light(word.key) or is_filler(word.key))
    )


def left_over(old: Claim, new: Claim, *, implies: bool = True) -> tuple[list[Word], list[Word]]:
    """The words of each claim that the other lacks, and that say something of their own.

    A verb that only one has is implied by the words around it, and so is the kind of a thing: "the main branch".
    """
    lacks = [
        (claim, [word for word in claim.words if not says(other, word)]) for claim, other in ((old, new), (new, old))
    ]
    implied = [[word for word in words if _is_implied(claim, word)] for claim, words in lacks]
    shared = [word for word in old.words if says(new, word) and not is_weak(word) and not is_kind(word.key)]
    is_told = len(shared) + len(old.verbs & new.verbs - {"use", "like"}) > 1
    may_lack = implies and is_told and sum(not is_weak(word) for words in implied for word in words) < 2
    one, two = (
        [word for word in words if (word in own and all(implied)) or not (is_weak(word) or (may_lack and word in own))]
        for (_, words), own in zip(lacks, implied, strict=True)
    )
    return one, two


def _is_implied(claim: Claim, word: Word) -> bool:
    """Whether a word is a verb, or says of what kind the thing beside it is."""
    if word.kind != "word" or len(word.key) == 1:
        return word.kind == "word"
    before, behind = claim.text[: word.at], claim.text[word.at + len(word.text) :]
    if is_kind(word.key):
        return bool(_BEFORE_KIND.search(before) and not _BEFORE_INFINITIVE.search(before))
    if word.text.endswith("ed"):
        return bool(_BEFORE_PARTICIPLE.search(before) and _BEHIND_PARTICIPLE.match(behind))
    is_present = _PRESENT.fullmatch(word.text) and is_known(word.key) and _BEFORE_VERB.search(before)
    is_form = word.text.startswith(word.key[:-1]) and not _BEHIND_NOUN.match(behind)
    return is_form and bool(is_present or _BEFORE_INFINITIVE.search(before))


def agree(one: Claim, other: Claim) -> bool:
    """Whether the verbs of two claims may mean the same."""
    verbs = one.verbs | other.verbs
    return not (one.verbs and other.verbs) or bool(one.verbs & other.verbs) or are_alike(verbs)


def are_alike(verbs: frozenset[str]) -> bool:
    return any(verbs <= each for each in _ALIKE)


def says(claim: Claim, word: Word) -> bool:
    """Whether a claim has a word, or a form of it."""
    if not word.key.isascii() and not word.key.islower():
        return all(char in claim.text for char in word.key)
    return any(_same_form(key_of(word), key) for key in claim.keys)


def _same_form(one: str, other: str) -> bool:
    """Whether two keys are forms of one word: "allergy" and "allergic"."""
    shorter = min(len(one), len(other))
    start = max(_MIN_FORM, shorter - 1)
    return one == other or (one.isalpha() and other.isalpha() and shorter >= start and one[:start] == other[:start])
