"""What tells the relation of two entries: the words they share, those that only one has, and what each says of change.

Words are aligned by their closeness in any order. What has no partner is a value, a part of another subject, or an
addition; where it stands says which. `relations.txt` was learned from these features, so a change here needs
`python -m benchmarks.curator.learn`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import combinations
from operator import and_
from typing import NamedTuple, get_args

from memoranda.memory.curated.operations import shared_ends
from memoranda.search.index.related_words import opposite_words, related_words
from memoranda.search.index.stemmer import stem
from memoranda.upkeep.curator.clauses import Kind, Word, is_among, is_filler, same_word, words_in
from memoranda.upkeep.curator.missing_facts import NEGATION, missing_facts
from memoranda.upkeep.curator.word_roots import is_kind, is_light, root_of

_I = re.IGNORECASE
_KINDS = get_args(Kind)
# From here on two words count as partners.
_IS_PARTNER = 0.35
_IS_SAME = 0.6
_NEW_VALUE = re.compile(
    r"\b(?:moved|switched|migrated|changed|to change|renamed|replac\w+|raised|lowered|increased|reduced|extended"
    r"|shortened|upgraded|downgraded|bumped|relocated|transferred|lifted|handed(?! in)|succeeded|took over|rose"
    r"|went (?:up|down)|in favou?r of|(?<!are )(?<!is )pushed|swapped|postponed|rescheduled|dropped|retired|instead"
    r"|erhöht|gesenkt|gezogen|umgezogen|gewechselt|umgestiegen|déménagé|passée?s?|changé|remplacé|mudó|cambió|pasó"
    r"|ahora)\b|改用|换成|搬到|改成|変更|移行|切り替え",
    _I,
)
_OTHER_STATE = re.compile(
    r"\b(?:got|gets|became|left|joined|again|up from|down to|gave up|given up|cut|granted|traded|enabled|disabled"
    r"|finished|ended|over|done|resigned|promoted|hired|repaired|arrived|delivered|sold|wieder|aufgehört|beendet"
    r"|gesunken|gestiegen|fertig|quittée?|abandonnée?|décalée?|arrêtée?|terminée?|subido|bajado|dejó|dejado"
    r"|terminado)\b|已|缩短|延长|提高|降低|变成|調整|变更|変わ|やめ|終わ|異動|辞め",
    _I,
)
_NOW = re.compile(
    r"\b(?:now|nowadays|since|as of|these days|from now on|jetzt|nun|inzwischen|seit|ahora|desde|maintenant|désormais"
    r"|depuis)\b|现在|如今",
    _I,
)
NO_LONGER = re.compile(
    r"\b(?:no longer|not? .{0,60}\b(?:any ?more|any longer)|\w+n['’]t .{0,60}\b(?:any ?more|any longer)|stopped"
    r"|gave up|quit|(?<!is )(?<!are )used to|arrêté de|(?:was|were|has been|have been|got) (?:\w+ and )?(?:removed"
    r"|retired|deleted|dropped|discontinued|decommissioned|cancell?ed|fixed|resolved|shut down)|is (?:deprecated|gone"
    r"|retired)|(?:cancell?ed|dropped) the|got rid of|without any|unsubscribed|nicht mehr|kein\w* .{0,40}mehr"
    r"|ne .{0,60}\bplus|n['’]\w+ plus|ya no)\b|不再",
    _I,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|lives?|lived|moved|works?|worked|switched|migrated|changed|left|joined|uses?|used"
    r"|runs?|listens?|prefers?|likes?|stays?|got|became|took|starts?|wants?|needs?|owns?|speaks?|plays?"
    r"|costs?)\b",
    _I,
)
_MAX_SUBJECT_WORDS = 4
_ONESELF = frozenset({"user", "project", "team", "repo", "repository", "company"})
_MOVED_THING = re.compile(r"\bmoved (?!(?:in|out|over|back|away|from|house|home)\b)(?P<thing>\w[\w ]*?) to\b", _I)
_BESIDE = re.compile(r"\b(?:also|as well|auch|aussi|también)\b", _I)
_JOINT = re.compile(r"[;,] |\b(?:and|und|et|y)\b", _I)
_ONLY_FOR = re.compile(r"\bno longer\b[^,;.]*? (?:for|during|when|with) (?P<part>\w[\w ]*)", _I)
_INSTEAD_OF = re.compile(
    r"\b(?:not|without|instead of|rather than|forget|replac\w+|from|in place of|statt|anstatt|anstelle von|ersetzt"
    r"|von|de|au lieu d[e']|en lugar de|en vez de)\s|代替|从|から",
    _I,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|nor|none|\w+n['’]t|cannot|nicht|kein\w*|ohne|nie|ne|pas|sans|jamais|sin|nunca)\b"
    r"|[不没勿无]|ない|ません",
    _I,
)
_CONDITION = re.compile(
    r"\b(?:if|when|unless|except|only|while|during|wenn|außer|nur|si|sauf|seulement|cuando|salvo|s[oó]lo)\b|如果|除|只",
    _I,
)
_LOWER_BOUND = re.compile(
    r"\b(?:from|after|since|at least|min(?:imum)?|over|more|ab|nach|mindestens|\w+-in)\b|至少", _I
)
_UPPER_BOUND = re.compile(
    r"\b(?:until|till|before|by|at most|max(?:imum)?|under|less|up to|bis|vor|höchstens|\w+-out)\b|最多", _I
)
_PAST = re.compile(r"\b(?:was|were|had|did|went|flew|ran|met|bought|sold|saw|took|made|war|hatte|était|fue)\b", _I)
_ALSO = re.compile(r"\b(?:too|also|as well|both|another|second|auch|aussi|también|zweite\w*)\b|也|も", _I)
_PASSIVE = re.compile(r"\b(?:by|von|par|por)\b|被|れ[るた]", _I)
_OWNER = re.compile(r"['’]s?\b", _I)
_LEADS = {
    "is": "is are = : ist sind est sont es son now called named heißt use uses takes has",
    "to": "to in on at by with via from until in auf bei mit nach à chez en con 在",
    "of": "for of when if für wenn von pour si para de",
    "and": "and , or ( und oder et ou y o",
}
_ARTICLE_WORDS = "the a an user ein eine un une una der die das le la el los"
_ARTICLES = frozenset(_ARTICLE_WORDS.split())
_ONE_OF_MANY = re.compile(r"\W*(?:an?|one|another|some|eine?|une?|una)\b", _I)
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_][\w.:/@-]*|[^\w\s]")
_JOINING_WORDS = """
to in on by with via from until before after for of auf von für bei mit nach an par pour de
"""
_JOINING = frozenset(_JOINING_WORDS.split())
_LEAD_OF = {word: name for name, words in _LEADS.items() for word in words.split()}
# Of the words between commas one thing has one: a project has one package manager.
_EXCLUSIVE_WORDS = """
npm pnpm yarn bun, pip poetry uv pipenv pdm conda, postgresql postgres mysql sqlite mariadb mongodb oracle,
vim neovim emacs vscode helix zed sublime, pytest unittest nose, jest vitest mocha jasmine,
express fastify koa hapi nestjs, flask django fastapi, jenkins circleci travis buildkite, black yapf autopep8,
eslint biome tslint, bash zsh fish, tab space, dark light, heroku fly render vercel netlify railway,
jira linear asana trello, slack teams discord mattermost, webpack vite rollup parcel, gitlab github bitbucket,
master main trunk, weekly daily monthly, red green blue, morning evening,
monday tuesday wednesday thursday friday saturday sunday, montag dienstag mittwoch donnerstag freitag samstag sonntag,
lundi mardi mercredi jeudi vendredi samedi dimanche, lunes martes miércoles jueves viernes sábado domingo
"""
_EXCLUSIVE_GROUP = {
    stem(word): group for group, line in enumerate(_EXCLUSIVE_WORDS.split(",")) for word in line.split()
}
# A person or a project has several of these at a time: "Hobby: chess".
_LISTED_WORDS = """
note todo tip bug reminder hobby allergy language skill task rule idea link friend child son daughter brother sister pet
dependency goal warning fact example issue project team server client test branch
"""
_LISTED = frozenset(map(stem, _LISTED_WORDS.split()))
_WEIGHT_OF_WORD, WEIGHT_OF_NAME = 2.0, 3.0
# Words that begin alike are forms of one: "allergy" and "allergic".
_SAME_BEGINNING = 4
# Small words that turn what the same words say, beside a negation: another one of the same line says another thing.
_OPPOSED_WORDS = r"""
at least|more than|above|mindestens|mehr als|au moins|plus de|al menos|más de
, at most|less than|fewer than|up to|below|höchstens|weniger als|au plus|moins de|como máximo|menos de;
before|until|till|vor|bis|avant|jusqu\w+|antes|hasta, after|since|nach|seit|après|depuis|después|desde;
must|muss|müssen|doit|doivent|debe, should|soll|sollte|devrait|debería, may|might|darf|dürfen|kann|peut|puede;
all|every|each|always|alle|jeder?|immer|tous|toujours|todos|siempre
, some|sometimes|usually|most|einige|manche|manchmal|meistens|quelques|parfois|algunos
"""
_OPPOSED = [
    [re.compile(rf"\b(?:{words.strip()})\b", _I) for words in line.split(",")] for line in _OPPOSED_WORDS.split(";")
]
_OPPOSED_ROLES = ({"to", "by"}, {"to", "from"})
_TURNING_FACTS = ("restriction ", "bound ", "exception ", "condition ")
# Wordings of the same are compared as one of them.
_NORMAL_FORMS = [
    (re.compile(wording, _I), plain)
    for wording, plain in (
        (r"\b(?:do not|don['’]t|never) (\w+) (.+?) without asking(?: first)?", r"ask before \1 \2"),
        (r"(?<=\w)/(?=(?:s|sec|second|min|minute|h|hour|day|week|month|year)\b)", " per "),
        (r"\b(?:each|every|per) day\b", "daily"),
        (r"\b(?:each|every|per) (week|month|year|hour|night)\b(?:['’]s)?", r"\1ly"),
        (r"\b(?:prior to|ahead of)\b", "before"),
        (r"\btime zone\b", "timezone"),
        (r"\btakes? place\b|\ba lieu\b", "happens"),
        (r"\bkicks? off\b", "starts"),
    )
]


class Alignment(NamedTuple):
    """The words of both entries, and for each place of the older one the place and closeness of its partner."""

    older_text: str
    newer_text: str
    older: tuple[Word, ...]
    newer: tuple[Word, ...]
    partners: Mapping[int, tuple[int, float]]

    @property
    def covered_older(self) -> float:
        """The share of the older entry that the newer one has."""
        return _covered(self.older, [self.older[place] for place in self.only_older])

    @property
    def covered_newer(self) -> float:
        return _covered(self.newer, [self.newer[place] for place in self.only_newer])

    @property
    def has_same_words(self) -> bool:
        """Whether nothing but small words differs."""
        only = [*(self.older[place] for place in self.only_older), *(self.newer[place] for place in self.only_newer)]
        return all(weight(word) < _WEIGHT_OF_WORD or NEGATION.fullmatch(word.text) for word in only)

    @property
    def only_older(self) -> list[int]:
        return [place for place in range(len(self.older)) if self.partners.get(place, (0, 0.0))[1] < _IS_SAME]

    @property
    def only_newer(self) -> list[int]:
        found = {place for place, closeness in self.partners.values() if closeness >= _IS_SAME}
        return [place for place in range(len(self.newer)) if place not in found]


@lru_cache(maxsize=2048)
def normal(text: str) -> str:
    for wording, plain in _NORMAL_FORMS:
        text = wording.sub(plain, text)
    return text


@lru_cache(maxsize=2048)
def read_words(text: str) -> tuple[Word, ...]:
    return tuple(words_in(text))


def weight(word: Word) -> float:
    """How much a word says of its own."""
    if word.kind == "word":
        return 0.5 if is_filler(word.key) or is_light(word.key) else _WEIGHT_OF_WORD
    return WEIGHT_OF_NAME


def align(older: str, newer: str) -> Alignment:
    """Each word is the partner of one other at most; the closest first, then those that stand in the same order."""
    old, new = read_words(older), read_words(newer)
    pairs = [
        (-closeness, abs(one / len(old) - two / len(new)), one, two)
        for one, first in enumerate(old)
        for two, second in enumerate(new)
        if (closeness := _closeness(first, second)) >= _IS_PARTNER
    ]
    partners: dict[int, tuple[int, float]] = {}
    taken: set[int] = set()
    for negative, _, one, two in sorted(pairs):
        if one not in partners and two not in taken:
            partners[one] = (two, -negative)
            taken.add(two)
    return Alignment(older, newer, old, new, partners)


def is_turned(aligned: Alignment) -> bool:
    """Whether one word turns what the same words say: "only Ana may", "must not", "at most", coffee instead of tea."""
    older, newer, old, new, partners = aligned
    matched = [(old[one], new[two]) for one, (two, _) in partners.items()]
    if any(one.kind == other.kind == "name" and not _are_forms(one, other) for one, other in matched):
        # Hamburg is as close to Berlin as a synonym.
        return True
    if not aligned.has_same_words:
        return False
    if any({_role(older, old[one]), _role(newer, new[two])} in _OPPOSED_ROLES for one, (two, _) in partners.items()):
        return True
    order = [partners[place][0] for place in sorted(partners)]
    if order != sorted(order):
        # Another order is another wording: "never deploy on Fridays", "on Fridays, deploy nothing".
        return False
    if weight_of_other_words(aligned):
        return True
    missing = [*missing_facts([older], newer), *missing_facts([newer], older)]
    if any(fact.startswith(_TURNING_FACTS) for fact in missing):
        return True
    return bool(NEGATION.search(older)) != bool(NEGATION.search(newer)) or any(
        _are_opposed([bool(small.search(older)) for small in line], [bool(small.search(newer)) for small in line])
        for line in _OPPOSED
    )


def is_about_another(aligned: Alignment) -> bool:
    """Whether the newer entry is about someone or something else, or about a part only: "Anna lives", "Bob moved".

    What stands before the verb says whose a statement is, unless the same is said in another order.
    """
    older, newer, old, new, partners = aligned
    same_old = {one for one, (two, _) in partners.items() if _are_forms(old[one], new[two])}
    same_new = {partners[one][0] for one in same_old}
    subject_old, subject_new = _subject(older, old), _subject(newer, new)
    if subject_old is not None and subject_new is not None and not subject_old & same_old:
        shares_words = any(weight(old[one]) >= _WEIGHT_OF_WORD for one in same_old)
        is_of_other = subject_new and not subject_old and not subject_new & same_new and NO_LONGER.search(newer)
        if is_of_other or ((subject_old or subject_new) and not shares_words):
            return True
    moved = _MOVED_THING.search(newer)
    if moved and not _says(new, same_new, moved.span("thing")):
        return True
    part = _ONLY_FOR.search(newer)
    if _BESIDE.search(newer) or (part and not _says(new, same_new, part.span("part"))):
        return True
    said = [[place for place, word in enumerate(old) if start <= word.at < end] for start, end in _parts(older)]
    return any(len(part) > 1 and not any(place in partners for place in part) for part in said)


def _parts(text: str) -> Iterable[tuple[int, int]]:
    """Where the statements of an entry stand that are joined by "and" or a comma."""
    ends = [0, *(place for joint in _JOINT.finditer(text) for place in joint.span()), len(text)]
    return zip(ends[::2], ends[1::2], strict=True)


def _subject(text: str, words: Sequence[Word]) -> set[int] | None:
    """The places of the words before the verb, without those that mean the user or the project; None without a verb."""
    verb = _VERB.search(text)
    if not verb or len(text[: verb.start()].split()) > _MAX_SUBJECT_WORDS:
        return None
    return {
        place
        for place, word in enumerate(words)
        if word.at < verb.start() and weight(word) >= _WEIGHT_OF_WORD and word.key not in _ONESELF
    }


def _says(words: Sequence[Word], same: Set[int], span: tuple[int, int]) -> bool:
    """Whether the words of a part of the text are in the other entry, too, or say nothing of their own."""
    inside = [place for place, word in enumerate(words) if span[0] <= word.at < span[1]]
    return all(place in same or weight(words[place]) < _WEIGHT_OF_WORD for place in inside)


def weight_of_other_words(aligned: Alignment) -> float:
    """The weight of the words that have another word in their place: coffee is as close to tea as a synonym."""
    pairs = [(aligned.older[one], aligned.newer[two]) for one, (two, _) in aligned.partners.items()]
    return sum(weight(one) for one, other in pairs if weight(one) >= _WEIGHT_OF_WORD and not _are_forms(one, other))


def _are_forms(one: Word, other: Word) -> bool:
    return root_of(one.key) == root_of(other.key) or one.key[:_SAME_BEGINNING] == other.key[:_SAME_BEGINNING]


def _are_opposed(one: Sequence[bool], other: Sequence[bool]) -> bool:
    return any(one) and any(other) and not any(map(and_, one, other))


def _closeness(one: Word, other: Word) -> float:
    kinds = {one.kind, other.kind}
    if kinds & {"number", "date"}:
        return 1.0 if one.key == other.key and (one.unit == other.unit or not (one.unit and other.unit)) else 0.0
    if "path" in kinds:
        return 1.0 if one.key == other.key else 0.7 if is_among(*_path_last(one, other)) else 0.0
    return _closeness_of_keys(one.key, other.key)


def _path_last(one: Word, other: Word) -> tuple[Word, list[Word], str]:
    return (other, [one], "") if one.kind == "path" else (one, [other], "")


@lru_cache(maxsize=20_000)
def _closeness_of_keys(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if other in opposite_words(one) or one in opposite_words(other) or _are_exclusive(one, other):
        return 0.0
    if same_word(one, other):
        return 0.9
    return max(related_words(one).get(other, 0.0), related_words(other).get(one, 0.0))


def _are_exclusive(one: str, other: str) -> bool:
    group = _EXCLUSIVE_GROUP.get(one)
    return group is not None and one != other and _EXCLUSIVE_GROUP.get(other) == group


def _covered(words: Sequence[Word], only: Sequence[Word]) -> float:
    return 1 - sum(map(weight, only)) / (sum(map(weight, words)) or 1.0)


def features(aligned: Alignment) -> dict[str, float]:
    """The features of a pair by their names, always the same names in the same order."""
    older, newer, old, new, partners = aligned
    only_old, only_new = ([old[place] for place in aligned.only_older], [new[place] for place in aligned.only_newer])
    shared = [old[one] for one, (_, closeness) in partners.items() if closeness >= _IS_SAME]
    found: dict[str, float] = {}
    found["shared"] = sum(weight(old[one]) * closeness for one, (_, closeness) in partners.items())
    found["shared most"] = max((weight(old[one]) * close for one, (_, close) in partners.items()), default=0.0)
    for side, words, text, only in (("old", old, older, only_old), ("new", new, newer, only_new)):
        found[f"{side} covered"] = _covered(words, only)
        found[f"{side} length"] = len(words)
        found[f"{side} only"] = sum(map(weight, only))
        found[f"{side} only most"] = max(map(weight, only), default=0.0)
        found |= {f"{side} only {kind}": sum(word.kind == kind for word in only) for kind in _KINDS}
        found[f"{side} only kinds"] = sum(is_kind(word.key) for word in only)
        rest = _without_cues(text, only)
        found[f"{side} rest"] = sum(map(weight, rest))
        found[f"{side} rest words"] = sum(word.kind == "word" and weight(word) > 1 for word in rest)
        found |= _places(side, words, text, only)
        for name, cue in _CUES.items():
            found[f"{side} {name}"] = len(cue.findall(text))
    found |= {f"shared {kind}": sum(word.kind == kind for word in shared) for kind in _KINDS}
    found |= {f"both {kind}": min(found[f"old only {kind}"], found[f"new only {kind}"]) for kind in _KINDS}
    for name in _CUES:
        found[f"more {name}"] = found[f"new {name}"] - found[f"old {name}"]
    found["listed"] = sum(word.key in _LISTED for word in shared)
    found |= _between(only_old, only_new)
    found["opposites"] = any(two.key in opposite_words(one.key) for one in old for two in new)
    found["same lead"] = len(_lead_words(older, only_old) & _lead_words(newer, only_new))
    order = [partners[place][0] for place in sorted(partners)]
    pairs = max(1, len(order) * (len(order) - 1) // 2)
    found["turned"] = sum(one > two for one, two in combinations(order, 2)) / pairs
    found |= _roles(aligned)
    found["first shared"] = partners.get(0, (0, 0.0))[1]
    found["first of both"] = float(partners.get(0, (-1, 0.0))[0] == 0)
    found["last shared"] = partners.get(len(old) - 1, (0, 0.0))[1]
    found |= _letters(older.lower(), newer.lower()) | _frame(older, newer)
    return {name: float(value) for name, value in found.items()}


def _without_cues(text: str, words: Iterable[Word]) -> list[Word]:
    """The words that do not say by themselves that something changed."""
    spans = [match.span() for cue in (_NEW_VALUE, _OTHER_STATE, _NOW, NO_LONGER) for match in cue.finditer(text)]
    return [word for word in words if not any(start <= word.at < end for start, end in spans)]


_CUES = {
    "change": _NEW_VALUE,
    "other state": _OTHER_STATE,
    "now": _NOW,
    "no longer": NO_LONGER,
    "instead of": _INSTEAD_OF,
    "negation": _NEGATION,
    "condition": _CONDITION,
    "lower bound": _LOWER_BOUND,
    "upper bound": _UPPER_BOUND,
    "past": _PAST,
    "also": _ALSO,
    "owner": _OWNER,
    "passive": _PASSIVE,
}


def _places(side: str, words: Sequence[Word], text: str, only: Sequence[Word]) -> dict[str, float]:
    """Where the words stand that only this entry has: first, last, apart, and behind which word."""
    places = [words.index(word) / max(1, len(words) - 1) for word in only]
    leads = [_LEAD_OF.get(_word_before(text, word), "") for word in only]
    found: dict[str, float] = {
        f"{side} only first": min(places, default=-1.0),
        f"{side} only last": max(places, default=-1.0),
        f"{side} only apart": max(places, default=0.0) - min(places, default=0.0) - len(places) / max(1, len(words)),
        f"{side} only at start": sum(not re.search(r"\w", text[: word.at]) for word in only),
        f"{side} only owner": sum(bool(_OWNER.match(text[word.at + len(word.text) :])) for word in only),
    }
    return found | {f"{side} only behind {name}": leads.count(name) for name in _LEADS}


def _word_before(text: str, word: Word) -> str:
    match = re.search(r"([\w']+|[:=,(])\s*(?:(?:the|a|an|der|die|das|le|la|el|now|our|my)\s+)?$", text[: word.at], _I)
    return match[1].lower() if match else ""


def _lead_words(text: str, words: Iterable[Word]) -> set[str]:
    return {before for word in words if (before := _word_before(text, word))}


def _between(only_old: Sequence[Word], only_new: Sequence[Word]) -> dict[str, float]:
    """How the words that only one has are related to those that only the other has."""
    pairs = [(one, two) for one in only_old for two in only_new]
    numbers = [(one, two) for one, two in pairs if one.kind == two.kind == "number"]
    return {
        "same unit": any(one.unit and one.unit == two.unit for one, two in numbers),
        "other unit": any(one.unit != two.unit for one, two in numbers),
        "no unit": any(not one.unit and not two.unit for one, two in numbers),
        "exclusive": any(_are_exclusive(one.key, two.key) for one, two in pairs),
        "related": max((related_words(one.key).get(two.key, 0.0) for one, two in pairs), default=0.0),
        "both capitals": any(one.text[:1].isupper() and two.text[:1].isupper() for one, two in pairs),
    }


def _roles(aligned: Alignment) -> dict[str, float]:
    """How many pairs of shared words change their roles: who does what to whom, what belongs to what."""
    older, newer, old, new, partners = aligned
    places = [(one, two) for one, (two, closeness) in partners.items() if closeness >= _IS_SAME]
    swapped = crossed = 0
    for (one, two), (next_one, next_two) in combinations(places, 2):
        before = _role(older, old[one]), _role(older, old[next_one])
        after = _role(newer, new[two]), _role(newer, new[next_two])
        swapped += before != after and before == after[::-1]
        is_crossed = (one < next_one) != (two < next_two)
        crossed += before == after and is_crossed and _may_be_name(old[one]) and _may_be_name(old[next_one])
    return {"swapped roles": swapped, "crossed names": crossed}


def _may_be_name(word: Word) -> bool:
    """Chinese and Japanese have no capitals."""
    return word.kind == "name" or word.text >= "\u3040"


def _role(text: str, word: Word) -> str:
    """The word that joins this one to the others; "of" also for "Ana's"."""
    is_owner = _OWNER.match(text[word.at + len(word.text) :]) or re.search(r"['’]s?$", word.text)
    before = _word_before(text, word)
    return "of" if is_owner else before if before in _JOINING else ""


def _letters(older: str, newer: str) -> dict[str, float]:
    """The share of runs of three letters that both have, which also sees scripts without spaces and spelling."""
    one, two = ({text[place : place + 3] for place in range(len(text) - 2)} for text in (older, newer))
    shared = len(one & two)
    return {
        "letters": shared / max(1, len(one | two)),
        "letters of old": shared / max(1, len(one)),
        "letters of new": shared / max(1, len(two)),
    }


def _frame(older: str, newer: str) -> dict[str, float]:
    """What both have between the tokens with which they begin and end alike: the values of "The port is …"."""
    old, new = (_TOKEN.findall(text.rstrip(" .!。")) for text in (older, newer))
    head, tail = shared_ends([token.lower() for token in old], [token.lower() for token in new])
    frame = [token.lower() for token in (*old[:head], *old[len(old) - tail :])]
    middles = [tokens[head : len(tokens) - tail] for tokens in (old, new)]
    values = [read_words(" ".join(tokens)) for tokens in middles]
    kinds = [{word.kind for word in value} for value in values]
    found = {
        "frame": len(frame) / max(1, len(old), len(new)),
        "frame head": head,
        "frame tail": tail,
        "frame words": sum(token not in _LEAD_OF and token not in _ARTICLES for token in frame),
        "frame same kind": len(kinds[0] & kinds[1]) - len(kinds[0] ^ kinds[1]),
        "frame same capitals": len({value[0].text[:1].isupper() for value in values if value}) == 1,
        "frame behind article": head > 0 and frame[head - 1] in _ARTICLES,
        "frame of many": bool(_ONE_OF_MANY.match(older)),
    }
    for side, tokens, value, of_kinds in zip(("old", "new"), middles, values, kinds, strict=True):
        found |= {f"frame {side}": len(tokens), f"frame {side} words": len(value)}
        found |= {f"frame {side} {kind}": kind in of_kinds for kind in _KINDS}
    return found | {f"frame behind {name}": head > 0 and _LEAD_OF.get(frame[head - 1]) == name for name in _LEADS}
