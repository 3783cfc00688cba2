"""Says what one entry is to another: the same, contained in it, or superseded by it; most pairs are merely alike.

The rules prefer missing a pair to touching two entries that both hold. Two entries are compared by their words without
verbs that only join, such as "uses" and "lives in", which count by their class. An entry is superseded where one value
of the same subject and attribute differs, or where the newer one says so ("no longer", "moved to", "instead of"). An
ordinary word as a value ("is weekly", "is on Monday") is replaced only where the newer one says that something changed.
"""

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from memoranda.memory.curated.operations import shared_ends
from memoranda.search.index.related_words import opposite_words, related_words
from memoranda.search.index.stemmer import stem
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.curator.clauses import MONTH, Word, clauses_of, is_filler, words_of
from memoranda.upkeep.curator.missing_facts import missing_facts

Relation = Literal["same", "contained", "contains", "superseded"]
_I = re.IGNORECASE

# Verbs by what they say of their subject.
_VERBS = {
    "like": "like likes prefer prefers preferred favor favors enjoy enjoys love loves"
    " mag bevorzugt liebt préfère aime prefiere gusta",
    "use": "use uses used using utilize utilizes nutzt verwendet benutzt utilise utilisent usa usan utiliza employ",
    "live": "based live lives reside resides wohnt lebt habite vit vive reside",
    "work": "work works working employed employs arbeitet travaille trabaja",
    "run": "run runs ran running listen listens serve serves läuft laufen lauscht écoute tourne corre escucha",
    "place": "store stored stores kept located locate found hosted deployed placed lie lies"
    " steht stehen liegt liegen trouve está",
    "go": "go goes sent send sends gehen geht deliver delivered",
    "own": "owned maintained led managed handled",
    "call": "called named name heißt appelle llama",
    "take": "take takes last lasts dauert dure dura cost costs kostet",
    "end": "end ends expire expires due endet expire vence termina",
    "start": "start starts begin begins beginnt commence empieza",
    "write": "written write implemented geschrieben écrit escrito",
    "require": "required require requires needs need needed",
    "report": "report reports reporting",
    "meet": "meet meets happen happens held",
}  # fmt: skip
_CLASS_OF = {word: name for name, words in _VERBS.items() for word in words.split()}
_CJK_WORDS = {"like": "喜欢|偏好|喜爱", "use": "使用|采用", "user": "^用户|^我(?!们)", "project": "^项目|^我们"}
# A server runs where it is, a repository lives where it is, and a project runs on what it uses.
_ALIKE = (
    frozenset(("run", "place")),
    frozenset(("live", "place")),
    frozenset(("run", "use")),
    frozenset(("take", "require")),
)
_WILD = "changed"
_SUBJECTS = {
    "user": "user users i my he she nutzer benutzer utilisateur usuario",
    "project": "project we our repo repository app application projekt projet proyecto",
}
_SUBJECT_OF = {stem(word): name for name, words in _SUBJECTS.items() for word in words.split()}
_IGNORED_WORDS = """
please remember note always usually currently now really says said told prefer file jetzt ahora already still also just
time times environment done date want wants should got
directory folder roughly approximately
"""
_IGNORED = frozenset(map(stem, _IGNORED_WORDS.split()))
# Of each line one thing has one: a project has one package manager.
_EXCLUSIVE_WORDS = """
npm pnpm yarn bun
pip poetry uv pipenv pdm conda
postgresql postgres mysql sqlite mariadb mongodb oracle
vim neovim emacs vscode helix zed sublime
pytest unittest nose
jest vitest mocha jasmine
express fastify koa hapi nestjs
flask django fastapi
jenkins circleci travis buildkite
black yapf autopep8
eslint biome tslint
bash zsh fish
tab space
dark light
heroku fly render vercel netlify railway
jira linear asana trello
slack teams discord mattermost
webpack vite rollup parcel
gitlab github bitbucket
master main trunk
weekly daily monthly
red green blue
morning evening
"""
# Of each line a newer value replaces an older one where a change is said; related words has the English ones.
_SERIES_WORDS = """
monday tuesday wednesday thursday friday saturday sunday
montag dienstag mittwoch donnerstag freitag samstag sonntag
lundi mardi mercredi jeudi vendredi samedi dimanche
lunes martes miércoles jueves viernes sábado domingo
"""
_SERIES = [
    frozenset(word.key for each in line.split() for word in words_of(each, language="other"))
    for line in _SERIES_WORDS.strip().splitlines()
]
# A person or a project has several of these at a time: "Hobby: chess".
_LISTED_WORDS = """
note todo tip bug reminder hobby allergy language skill task rule idea link friend child pet dependency goal warning
fact example issue important
"""
_LISTED = frozenset(_LISTED_WORDS.split())
_KEYED = re.compile(r"\W*(?P<key>[^\W\d][^:.;,]{0,40}):\s+(?P<value>\S+(?:\s+\S+){0,2})")
_IN_PROJECT = re.compile(r"\s+(?:in|of|for) (?:this|the|our) (?:repo|repository|project|codebase)\b", _I)
_OF_USER = re.compile(r"\s+of (?:the )?user\b", _I)
_PREFACE = re.compile(
    r"^\W*(?:correction|update|fyi|heads up|note|please remember|remember)[:,]\s+|\b[ld]['’](?=\w)", _I
)
_EXCLUSIVE = [frozenset(map(stem, line.split())) for line in _EXCLUSIVE_WORDS.strip().splitlines()]
_DISLIKE = re.compile(r"\bdislikes?\b", _I)
_NO_LONGER = re.compile(
    r"\b(?:no longer|not? .{0,60}\b(?:any ?more|any longer)|\w+n['’]t .{0,60}\b(?:any ?more|any longer)|stopped"
    r"|gave up|quit|(?<!is )(?<!are )used to|arrêté de"
    r"|nicht mehr|kein\w* .{0,40}mehr|ne .{0,60}\bplus|n['’]\w+ plus|ya no)\b|不再",
    _I,
)
_OLD_VALUE = re.compile(
    r"\b(?:instead of|rather than|replac\w+|from|in place of|not|dropped|renamed|retired|statt"
    r"|anstatt|anstelle von|ersetzt|von|(?:mudó"
    r"|cambió|pasó|passée?s?) de|au lieu d[e']"
    r"|remplace|en lugar de|en vez de|reemplaza|but no longer)\s+(?P<old>[^,;.]+?)"
    r"(?=\s+(?:to|with|by|for|in favou?r|in|auf|zu|durch|für|par|pour|por|para|but|as|a|à)\b|[,;.]|$)"
    r"|不再使?用?(?P<old2>[^，。；]+)|代替(?P<old3>[^，。；]+)",
    _I,
)
_CHANGE = re.compile(
    r"\b(?:moved|switched|migrated|changed|to change|renamed|replaced|raised|lowered|increased|reduced|extended"
    r"|shortened|bumped|pushed|swapped|postponed|rescheduled|dropped|retired|instead"
    r"|erhöht|gesenkt|gezogen|umgezogen|gewechselt|umgestiegen"
    r"|déménagé|passée?s?"
    r"|changé|remplacé|mudó|cambió|pasó|ahora)\b|改用|换成|搬到|改成",
    _I,
)
_MOVE = re.compile(r"\b(?:moved|relocated|migrated|gezogen|umgezogen|déménagé|mudó)\b|搬到", _I)
_SAYS_NOW = re.compile(
    r"\b(?:now|nowadays|since|as of|jetzt|nun|inzwischen|seit|ahora|desde|maintenant|désormais|depuis)\b|现在|如今", _I
)
_ALSO = re.compile(r"\b(?:too|also|as well|both|another|auch|aussi|también)\b|也", _I)
# When it changed, which is no part of the value.
_WHEN = re.compile(
    r"\s+(?:(?:since|as of|seit|depuis|desde)\s+[^,;.]+|from now on|ab (?:jetzt|sofort)"
    rf"|(?:in|im|en)\s+{MONTH}(?:\s+\d{{4}})?)(?=[,;.]|$)"
    r"|^(?:as of|since) (?:this|last|next) \w+\s+|^(?:as of|since|from now|désormais|seit|depuis|desde)[^,]*,\s+",
    _I,
)
_GONE = re.compile(
    r"\b(?:gone|left|sold|retired|dropped|removed|deleted|replaced|shut|over|out|not|no longer|was|were|weg|nicht"
    r"|verkauft|verlassen|abgeschaltet|partie?s?|vendue?s?|plus|vendid[oa]s?|ya no)\b|不再",
    _I,
)
_ONE_AT_A_TIME = frozenset(("live", "work", "run", "place", "go", "own", "call", "end", "start", "meet", "report"))
_NOW = r"(?:(?:now|jetzt|ahora|maintenant)\s+)?"
_ARTICLE = (
    r"(?:(?:the|in|on|at|by|to|auf|bei|um|am|chez|en|à|der|die|le|la|les|el|los|las|host|server|port|room|branch"
    r"|version)\s+)*"
)
# What stands before the one value of an attribute: "the deadline is", "the build takes".
_COPULA = re.compile(
    rf"(?:\b(?:is|ist|est|es|beträgt|heißt|equals)|:|=|是|为)\s*{_NOW}{_ARTICLE}$|\bare\s+{_NOW}(?:in|on|at)\s+$", _I
)
_LEADS = re.compile(
    r"\b(?:lives? in|resides? in|works? (?:at|for)|employed (?:at|by)|(?:runs?|listens?) (?:on|in|at)|(?:hosted"
    r"|deployed"
    r"|stored|kept|located|placed) (?:in|on|at|by|to)|(?:goes?|sent|deploys?|reports?|delivered) to|(?:owned"
    r"|maintained|led"
    r"|managed|handled) by|called|named|(?:written|implemented) in|(?:moved|switched|migrated|changed|renamed|pushed"
    r"|bumped) to"
    r"|(?:answers?|replies|replys?|comments?|messages?|docs) in|wohnt in|lebt in|arbeitet (?:bei|für)|läuft auf"
    r"|(?:steht|liegt) (?:in|bei)|gehe?n? an|nach|habite (?:à|en)|travaille chez|hébergée? (?:chez|sur)|vive en"
    r"|trabaja en)"
    rf"\s+{_NOW}{_ARTICLE}$",
    _I,
)
_MEASURES = re.compile(
    r"\b(?:takes?|costs?|lasts?|weighs?|ends? (?:on|in|at)|expires? (?:on|in)|starts? (?:on|at)|begins? (?:on"
    r"|at)|due(?: on)?"
    r"|requires?|needs?|has|have|keeps?|pays?|dauert|kostet|endet am|beginnt um|braucht|hat|dure|coûte|a|dura"
    r"|cuesta|tiene)"
    rf"\s+{_NOW}$",
    _I,
)
_IDENTIFIERS = re.compile(
    r"^(?:bug|ticket|issue|pr|sprint|room|chapter|order|phase|migration|step|part|page|task|raum|kapitel)s?$", _I
)
_CONTINUES = re.compile(
    r"\s*[\d.,;:，；。、(]|\s+(?:utc|gmt|cet|and|und|et|y|in|on|at|with|as|for|to|since|called|named|by|which|who|until|because|weil|under"
    r"|through|via|namens|auf|bei|im|über|unter|nommée?|llamad[oa]|mit|als|seit|chez|avec|con|en|par|como|de)\b",
    _I,
)
# What limits a statement elsewhere, and behind a whole one only adds to it: "tea, without sugar", "until 30 September".
_ADDED = re.compile(
    r"(?:,|\band)\s+(?:\w+ and )?(?:without|ohne|sans|sin)\b"
    rf"|\b(?:until|bis|jusqu['’]au|hasta)\s+\d{{1,2}}\.?\s+{MONTH}",
    _I,
)
_REPLACES = re.compile(r"\b(?:instead|rather|statt|anstatt|lieu|lugar|vez|replac\w+)\b|代替|不再", _I)
_WHERE = re.compile(r"\b(?:in|for|on|at|with|für|auf|bei|mit|pour|dans|avec|en|para|con)\b", _I)
_MAX_VALUE = 3
_MIN_SHARED = 2
_GIVES_VALUE = re.compile(
    r"(?:\b(?:is|it['’]s|called|named|over to|to|but|take|uses?|has|have|goes with|by the name|replaced by|chose|on)"
    r"|[:=])(?:\s+(?:now|actually))?\s+$",
    _I,
)
_ARTICLES = re.compile(r"(?:an?|the)\s+$", _I)
_VALUE_OF = re.compile(
    r"\s+(?:is (?:the|what)|as (?:the|its|their)|(?:has )?replace[sd]|takes over|has taken over)\b", _I
)
_TALK_WORDS = """
agreed chose settled anybody actually today yesterday earlier way forget head fyi correction scrap folk decided change
switched note later anyone asks ask work take goes with new week day these planned scheduled over swapped out retired
dropped said what up remind know before tell told heard update updated
"""
_TALK = frozenset(map(stem, _TALK_WORDS.split()))
_MEASURED = re.compile(r"(?:\bis|\bist|\best|\bes|:|=|\b(?:is|are) (?:\w+ )?(?:at|for|on))\s+$", _I)
_MIN_FORM = 5
_ONE_OF_MANY = re.compile(
    r"\b(?:an?|one|another|eine?n?|une?|una) [^\W\d_]+ (?:called|named|namens|nommée?|llamad[oa]) $", _I
)
_CALLED = re.compile(r"\b(?:called|named|heißt|s['’]appelle|se llama)\s+$", _I)
_PLACE = re.compile(r"\b(in|on|at|by|to|bei|chez)\s+(?:(?:the|der|die|la|le|el)\s+)?$", _I)
_AND = re.compile(r"\b(?:and|or|und|oder|et|ou|y|o)\b|[,;和]", _I)
_COUNTED = re.compile(r"\b(?:has|have|needs?|requires?|keeps?|hat|braucht|a|tiene)\s+(?:now\s+)?$", _I)
_NUMBERED = re.compile(r"\b(?:port|version|puerto)\s+$", _I)
_PAST = re.compile(
    r"\b(?:was|were|had|did|went|flew|ran|met|bought|sold|saw|took|made|fixed|visited"
    r"|\w{3,}(?<!need)(?<!hosted)(?<!deployed)"
    r"(?<!stored)(?<!located)(?<!owned)(?<!managed)(?<!maintained)(?<!called)(?<!named)(?<!required)(?<!used)(?<!moved)"
    r"(?<!switched)(?<!changed)(?<!renamed)(?<!migrated)(?<!placed)(?<!handled)(?<!employed)(?<!needed)(?<=ed))\b",
    _I,
)
_LIMITS = re.compile(
    r"(?<!-)\b(?:if|when|unless|except|only|but|without|not|no|never|wenn|nur|außer|nicht|kein\w*|si|sauf|seulement"
    r"|sans|cuando|solo"
    r"|sólo|salvo|sin|while|(?:before|after|until|during)(?! (?:on )?\d{4}-))\b|如果|除|只|不|没",
    _I,
)


@dataclass(frozen=True, slots=True)
class _Claim:
    """An entry as its words in order, who or what it is about, and the classes of its verbs."""

    text: str
    words: tuple[Word, ...]
    subject: str
    verbs: frozenset[str]
    keys: tuple[str, ...] = field(default=())

    @property
    def values(self) -> frozenset[str]:
        return frozenset(self.keys)


def _claim(text: str) -> _Claim:
    verbs: set[str] = set()
    text = re.sub(r"\btime zone\b", "timezone", re.sub(r"`([\w-]+)`", r"\1", text), flags=_I)
    text = _PREFACE.sub("", text)
    subject = "project" if _IN_PROJECT.search(text) else "user" if _OF_USER.search(text) else ""
    text = _OF_USER.sub("", _IN_PROJECT.sub("", text))
    text = _DISLIKE.sub("does not like", text)
    for name, pattern in _CJK_WORDS.items():
        if re.search(pattern, text):
            verbs |= {name} & set(_VERBS)
            subject = subject or (name if name in _SUBJECTS else "")
            text = re.sub(pattern, " ", text)
    clauses = clauses_of(text)
    language_words = [word for clause in clauses for word in clause.words] or words_of(text)
    words: list[Word] = []
    for word in language_words:
        key = word.key
        if key in _SUBJECT_OF and not words and subject in ("", _SUBJECT_OF[key]):
            subject = _SUBJECT_OF[key]
        elif word.kind in ("word", "name") and (verb := _CLASS_OF.get(word.text.lower())):
            verbs.add(verb)
        elif key not in _IGNORED and not (word.kind == "word" and _CHANGE.fullmatch(word.text)):
            words.append(word._replace(key=key))
    if _CHANGE.search(text):
        verbs.add(_WILD)
    return _Claim(text, tuple(words), subject, frozenset(verbs), tuple(_key(word) for word in words))


def _key(word: Word) -> str:
    return f"{word.key} {word.unit}".strip()


def relation_of(older: str, newer: str) -> Relation | None:
    """What the newer entry is to the older one, or None; "contains" if the newer one says all of the older and more."""
    old, new = _claim(older), _claim(newer)
    if not old.keys or not new.keys:
        return None
    if old.subject and new.subject and old.subject != new.subject:
        return None
    if _is_superseded(old, new):
        return "superseded"
    if _is_same(old, new):
        return "same"
    if _is_contained(old, new):
        return "contains"
    return "contained" if _is_contained(new, old) else None


def _agree(one: _Claim, other: _Claim) -> bool:
    """Whether the verbs of two claims may mean the same."""
    verbs = one.verbs | other.verbs
    return not (one.verbs and other.verbs) or bool(one.verbs & other.verbs) or any(verbs <= each for each in _ALIKE)


def _loses(one: str, other: str) -> bool:
    return any(not lost.startswith("word ") for lost in missing_facts([one], other))


def _is_same(old: _Claim, new: _Claim) -> bool:
    if len(old.keys) != len(new.keys) or not _agree(old, new):
        return False
    if any(not any(_same_form(key, other) for other in new.keys) for key in old.keys):
        return False
    if any(not any(_same_form(key, other) for other in old.keys) for key in new.keys):
        return False
    return not _loses(old.text, new.text) and not _loses(new.text, old.text)


def _same_form(one: str, other: str) -> bool:
    """Whether two keys are forms of one word: "allergy" and "allergic"."""
    shorter = min(len(one), len(other))
    start = max(_MIN_FORM, shorter - 1)
    return one == other or (one.isalpha() and other.isalpha() and shorter >= start and one[:start] == other[:start])


def _is_contained(part: _Claim, whole: _Claim) -> bool:
    """Whether the whole begins with the part and adds to it, or has it as one of its clauses."""
    count = len(part.keys)
    if count >= len(whole.keys) or part.verbs - whole.verbs or _WILD in whole.verbs:
        return False
    if whole.keys[:count] == part.keys:
        begin = part.text.rstrip(" .!。")
        is_prefix = whole.text.lower().startswith(begin.lower())
        rest = whole.text[len(begin) :] if is_prefix else _text_behind(whole, count)
        return _adds(rest) and not _LIMITS.search(_ADDED.sub("", rest)) and not _loses(part.text, whole.text)
    clauses = [_claim(clause.text) for clause in clauses_of(whole.text)]
    return len(clauses) > 1 and any(
        clause.values == part.values and _agree(part, clause) and not _loses(part.text, clause.text)
        for clause in clauses
    )


def _text_behind(claim: _Claim, count: int) -> str:
    last = claim.words[count - 1]
    at = claim.text.find(last.text)
    return claim.text[at + len(last.text) :] if at >= 0 else ""


def _adds(rest: str) -> bool:
    """Whether a text continues behind a whole phrase: "React Native" is not React and more."""
    return _CONTINUES.match(rest) is not None


def _is_superseded(old: _Claim, new: _Claim) -> bool:
    if _ALSO.search(new.text):
        return False
    rules = (_denies, _has_new_value, _has_new_number, _has_new_name, _says_what_became_of)
    if any(rule(old, new) for rule in rules):
        return True
    for match in _OLD_VALUE.finditer(new.text):
        phrase = next(group for group in match.groups() if group)
        values = {key for word in _claim(phrase).words for key in (word.key, _key(word))}
        rest = [_key(word) for word in old.words if not {word.key, _key(word)} & values]
        if len(rest) == len(old.words) or not _changes(new):
            continue
        if all(key in new.values for key in rest):
            return True
        # "My editor is vim", and "I switched from vim to helix".
        target = _claim(new.text[match.end() :]).values
        before = next(old.text[: word.at] for word in old.words if {word.key, _key(word)} & values)
        if target and new.values <= values | target | old.values and _GIVES_VALUE.search(_ARTICLES.sub("", before)):
            return True
    dated = _WHEN.sub("", new.text)
    return dated != new.text and _has_new_value(old, _claim(dated), says_change=_says_change(new))


def _changes(new: _Claim) -> bool:
    return bool(_CHANGE.search(new.text) or _REPLACES.search(new.text))


def _says_change(new: _Claim) -> bool:
    """Whether the newer says that something is not as it was."""
    return bool(_SAYS_NOW.search(new.text) or _changes(new))


def _denies(old: _Claim, new: _Claim) -> bool:
    """Whether the newer says that the older no longer holds: its words again, denied, or the first of them."""
    if _NO_LONGER.search(old.text) or not _NO_LONGER.search(new.text):
        return False
    if {_key(word) for word in old.words if not _says_nothing(word)} <= new.values:
        return True
    for part in _parts(new.text):
        if _NO_LONGER.search(part):
            denied = _claim(part).values
            if denied == old.values:
                return True
            if old.keys[0] in denied and denied <= old.values and not _AND.search(old.text):
                return True
    return False


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[,;，；。]\s*|\.\s+", text) if part]


def _says_what_became_of(old: _Claim, new: _Claim) -> bool:
    """Whether the newer has another value, and says that the old one is over: "Tests run with nox, tox is gone"."""
    parts = [part for each in _parts(_WHEN.sub("", new.text)) for part in re.split(r"\s+(?:and|und|et|y)\s+", each)]
    for part in parts:
        now = _claim(part)
        head, tail = shared_ends(old.keys, now.keys)
        before, after = (set(keys[head : len(keys) - tail]) for keys in (old.keys, now.keys))
        is_about_it = head or (old.verbs and old.verbs == now.verbs)
        rest = [each for each in parts if each != part and _GONE.search(each)]
        is_over = any(before <= _claim(each).values for each in rest)
        if is_about_it and before and after and is_over and _agree(old, now):
            return True
    return False


def _has_new_value(old: _Claim, new: _Claim, *, says_change: bool | None = None) -> bool:
    """Whether the words of both are the same but for one value, of an attribute that has one value at a time."""
    keyed = [_KEYED.fullmatch(claim.text.rstrip(" .")) for claim in (old, new)]
    if keyed[0] and keyed[1] and keyed[0]["key"].lower() == keyed[1]["key"].lower():
        return not (_is_list(keyed[0]["key"]) or old.values <= new.values or new.values <= old.values)
    if bool(_LIMITS.search(old.text)) != bool(_LIMITS.search(new.text)) or _PAST.search(old.text):
        return False
    kept = new.words
    if not any(word.kind == "date" for word in old.words):
        # The day of the change.
        kept = tuple(word for word in kept if word.kind != "date")
    head, tail = shared_ends([_key(word) for word in old.words], [_key(word) for word in kept])
    values = old.words[head : len(old.words) - tail], kept[head : len(kept) - tail]
    if not all(0 < len(value) <= _MAX_VALUE for value in values):
        return False
    if any(_is_two_things(claim, value) for claim, value in zip((old, new), values, strict=True)):
        return False
    one, two = values[0][0], values[1][0]
    if all(len(value) == 1 or _is_with_version(value) for value in values) and _exclude_each_other(one, two):
        return _agree(old, new) or _WILD in new.verbs
    if says_change is None:
        says_change = _says_change(new)
    if says_change and len(values[0]) == len(values[1]) == 1 and _replaces_word(old, new, (one, two)):
        return True
    kinds = [{word.kind for word in value} for value in values]
    # A name has no capital in scripts without them.
    has_words = any("word" in kind for kind in kinds) and (one.key.isascii() or "是" not in old.text)
    texts = _texts_before(old, new, (one, two))
    is_named = all(_CALLED.search(text) for text in texts) or (
        old.verbs == new.verbs == {"live"}
        and all(map(_LEADS.search, texts))
        and one.text.istitle() == two.text.istitle()
    )
    if (has_words and not is_named) or not (kinds[0] & kinds[1] or is_named):
        return False
    return _is_single_valued(old, new, (one, two), old.words[:head], old.words[len(old.words) - tail :] if tail else ())


def _has_new_name(old: _Claim, new: _Claim) -> bool:
    """Whether both name the value of one attribute, in any wording: "heron uses x as its host", "x is heron's host"."""
    shared = [word for word in old.words if _key(word) in new.values]
    if len(shared) < _MIN_SHARED or all(word.kind != "word" for word in shared):
        return False
    one, two = (
        [word for word in claim.words if _key(word) not in other.values and not _says_nothing(word)]
        for claim, other in ((old, new), (new, old))
    )
    if not any(word.kind == "date" for word in one):
        # The day of the change.
        two = [word for word in two if word.kind != "date"]
    if not one and (_changes(new) or _OLD_VALUE.search(new.text)):
        # The newer one names the old value, too.
        one = [word for word in old.words if word.kind in ("name", "path") and _is_value(old, word)]
    if not len(one) == len(two) == 1 or {one[0].kind, two[0].kind} - {"name", "path"}:
        return False
    return _is_value(old, one[0]) and _is_value(new, two[0])


def _says_nothing(word: Word) -> bool:
    return word.kind in ("word", "name") and (is_filler(word.key) or word.key in _TALK)


def _is_value(claim: _Claim, word: Word) -> bool:
    """Whether a text says of a name that something is, has or got it, or that it is something."""
    before, _, behind = claim.text.partition(word.text)
    is_one_of_many = re.match(r"\s+as an?\b", behind)
    return not is_one_of_many and bool(_GIVES_VALUE.search(before) or _VALUE_OF.match(behind))


def _has_new_number(old: _Claim, new: _Claim) -> bool:
    """Whether both say the same words in any order, and a measure or a time of one attribute differs."""
    differ = [
        [word for word in claim.words if _key(word) not in other.values and not _says_nothing(word)]
        for claim, other in ((old, new), (new, old))
    ]
    if not len(differ[0]) == len(differ[1]) == 1 or len(old.values & new.values) < _MIN_SHARED:
        return False
    one, two = differ[0][0], differ[1][0]
    if one.kind != two.kind or one.kind not in ("number", "date") or one.unit != two.unit or not _agree(old, new):
        return False
    before, after = _texts_before(old, new, (one, two))
    return bool(
        _MEASURED.search(before) and (_MEASURED.search(after) or (_WILD in new.verbs and after.endswith("to ")))
    )


def _is_with_version(value: Sequence[Word]) -> bool:
    """Whether a value is a name and the number behind it: "MySQL 8"."""
    name, number = value[0], value[-1]
    return len(value) == 2 and number.kind == "number" and number.at == name.at + len(name.text) + 1


def _is_list(key: str) -> bool:
    """Whether several entries with a key may hold: "Languages: Polish", "Note: …"."""
    last = key.rsplit(maxsplit=1)[-1]
    is_plural = last.islower() or last.istitle()
    return key.lower() in _LISTED or (is_plural and re.search(r"[^sui]s$", last.lower()) is not None)


def _texts_before(old: _Claim, new: _Claim, values: tuple[Word, Word]) -> tuple[str, str]:
    """What stands in each text before its value, which begins where its token does: "555-1234"."""
    found = (
        re.sub(r"[A-Za-z0-9.@+/_-]*$", "", claim.text[: claim.text.find(word.text)])
        for claim, word in zip((old, new), values, strict=True)
    )
    before, after = found
    return before, after


def _same_place(before: str, after: str) -> bool:
    """Whether two values may be of one attribute: a server is in Frankfurt and on NixOS."""
    places = [_PLACE.search(text) for text in (before, after)]
    return not (places[0] and places[1]) or places[0][1].lower() == places[1][1].lower()


def _replaces_word(old: _Claim, new: _Claim, values: tuple[Word, Word]) -> bool:
    """Whether a newer word stands where the older one stood, and both are of one kind: days, ranks, names."""
    one, two = values
    if old.verbs - _ONE_AT_A_TIME or new.verbs - _ONE_AT_A_TIME - {_WILD}:
        return False
    before, after = _texts_before(old, new, values)
    if not _same_place(before, after) and _WILD not in new.verbs:
        return False
    is_series = any({one.key, two.key} <= line for line in _SERIES)
    if is_series and before.lower() == after.lower():
        return True
    if not old.verbs and not (_COPULA.search(before) and (_COPULA.search(after) or _LEADS.search(after))):
        return False
    is_related = is_series or two.key in related_words(one.key)
    are_names = "name" in (one.kind, two.kind) and not opposite_words(one.key) and not opposite_words(two.key)
    return is_related or (are_names and one.text.islower() == two.text.islower())


def _is_two_things(claim: _Claim, value: Sequence[Word]) -> bool:
    """Whether both values may hold: "100 in Python" and "80 in Markdown", "a brother named Ben" and "… named Tom"."""
    is_one_of_many = _ONE_OF_MANY.search(claim.text[: value[0].at])
    return bool(is_one_of_many or _WHERE.search(claim.text[value[0].at : value[-1].at]))


def _exclude_each_other(one: Word, two: Word) -> bool:
    return two.key in opposite_words(one.key) or any({one.key, two.key} <= line for line in _EXCLUSIVE)


def _is_single_valued(
    old: _Claim, new: _Claim, values: tuple[Word, Word], head: Sequence[Word], tail: Sequence[Word]
) -> bool:
    """Whether the words before the value lead to the one value of an attribute."""
    before, after = _texts_before(old, new, values)
    if not _same_place(before, after) and _WILD not in new.verbs:
        return False
    is_number = values[0].kind == "number"
    is_thing = re.match(r"\W*(?:the|our|my|der|die|das|le|la|el)\b", old.text, _I)
    has_attribute = bool(head and is_thing) or any(word.kind == "word" for word in (*head, *tail))
    if is_number and (_is_port(old, before) or (head and _is_version(old, values[0], head[-1]))):
        return _agree(old, new) or _WILD in new.verbs
    leads_to_measure = (
        _COUNTED.search(before) or _COPULA.search(before) or (values[0].unit and _MEASURES.search(before))
    )
    if tail and not (is_number and leads_to_measure):
        return False
    if _LEADS.search(before) and _LEADS.search(after):
        is_move = _MOVE.search(new.text) and old.verbs & {"live", "place", "run", "go"}
        return old.verbs == new.verbs or bool(is_move) or bool(old.verbs & {"call"} and _WILD in new.verbs)
    if values[0].kind in ("number", "date") and _MEASURES.search(before) and _MEASURES.search(after):
        return old.verbs == new.verbs and bool(head or tail)
    is_one_of_many = re.match(r"\W*(?:an?|one|another|ein|eine|un|une|una)\b", old.text, _I)
    return bool(has_attribute and not is_one_of_many and _COPULA.search(before)) and (
        bool(_COPULA.search(after)) or bool(_LEADS.search(after) and _WILD in new.verbs)
    )


def _is_port(claim: _Claim, before: str) -> bool:
    return bool(_NUMBERED.search(before) and (claim.verbs & {"use", "run"} or re.search(r"\b(?:is|on)\b|:", before)))


def _is_version(claim: _Claim, number: Word, name: Word) -> bool:
    """Whether a number is the version of something that is used: "Python 3.12 is required"."""
    beside = f"{name.text} {number.text}"
    is_used = claim.verbs & {"use", "require", "run"} or re.search(rf"(?:is|:) {re.escape(beside)}", claim.text)
    return beside in claim.text and bool(is_used) and not _IDENTIFIERS.search(name.text)


def find_pairs(entries: Sequence[str]) -> list[tuple[int, int, Relation]]:
    """The related pairs among entries in the order they were written: the places of the older and the newer one."""
    return [
        (older, newer, relation)
        for newer in range(len(entries))
        for older in range(newer)
        if (relation := relation_of(entries[older], entries[newer])) is not None
    ]
