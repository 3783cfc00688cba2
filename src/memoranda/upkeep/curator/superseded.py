"""Says whether an entry is superseded by a newer one.

It is where one value of the same subject and attribute differs, or where the newer one says so ("no longer", "moved
to", "instead of"). An ordinary word as a value ("is weekly", "is on Monday") is replaced only where the newer one says
that something changed. The rules prefer missing a pair to touching two entries that both hold.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from memoranda.memory.curated.operations import shared_ends
from memoranda.search.index.related_words import opposite_words
from memoranda.search.index.stemmer import stem
from memoranda.upkeep.curator.claims import CHANGE, CHANGED, SAYS_NOW, Claim, agree, key_of, left_over, read_claim, says
from memoranda.upkeep.curator.clauses import MONTH, Word, is_filler, words_of

_I = re.IGNORECASE

# Of the words between commas one thing has one: a project has one package manager.
_EXCLUSIVE_WORDS = """
npm pnpm yarn bun, pip poetry uv pipenv pdm conda, postgresql postgres mysql sqlite mariadb mongodb oracle,
vim neovim emacs vscode helix zed sublime, pytest unittest nose, jest vitest mocha jasmine,
express fastify koa hapi nestjs, flask django fastapi, jenkins circleci travis buildkite, black yapf autopep8,
eslint biome tslint, bash zsh fish, tab space, dark light, heroku fly render vercel netlify railway,
jira linear asana trello, slack teams discord mattermost, webpack vite rollup parcel, gitlab github bitbucket,
master main trunk, weekly daily monthly, red green blue, morning evening
"""
# Of each line a newer value replaces an older one where a change is said.
_SERIES_WORDS = """
monday tuesday wednesday thursday friday saturday sunday, montag dienstag mittwoch donnerstag freitag samstag sonntag,
lundi mardi mercredi jeudi vendredi samedi dimanche, lunes martes miércoles jueves viernes sábado domingo
"""
_SERIES = [
    frozenset(word.key for each in line.split() for word in words_of(each, language="other"))
    for line in _SERIES_WORDS.split(",")
]
# A person or a project has several of these at a time: "Hobby: chess".
_LISTED_WORDS = """
note todo tip bug reminder hobby allergy language skill task rule idea link friend child pet dependency goal warning
fact example issue important
"""
_LISTED = frozenset(_LISTED_WORDS.split())
_KEYED = re.compile(r"\W*(?P<key>[^\W\d][^:.;,]{0,40}):\s+(?P<value>\S+(?:\s+\S+){0,2})")
_EXCLUSIVE = [frozenset(map(stem, line.split())) for line in _EXCLUSIVE_WORDS.split(",")]
NO_LONGER = re.compile(
    r"\b(?:no longer|not? .{0,60}\b(?:any ?more|any longer)|\w+n['’]t .{0,60}\b(?:any ?more|any longer)|stopped"
    r"|gave up|quit|(?<!is )(?<!are )used to|arrêté de|(?:was|were|has been|have been|got) (?:\w+ and )?(?:removed"
    r"|retired|deleted|dropped|discontinued|decommissioned|cancell?ed|fixed|resolved|shut down)|is (?:deprecated|gone"
    r"|retired)|(?:cancell?ed|dropped) the|got rid of|without any|unsubscribed|nicht mehr|kein\w* .{0,40}mehr"
    r"|ne .{0,60}\bplus|n['’]\w+ plus|ya no)\b|不再",
    _I,
)
_OLD_VALUE = re.compile(
    r"(?:\b|, )(?:not|without)\s+(?P<old0>[^,;.]+?)(?=[,;.]|$)|\b(?:instead of|rather than|forget"
    r"|(?<!was )(?<!were )replac\w+|from|in place of|dropped(?! in\b)|renamed|retired|statt|anstatt|anstelle von"
    r"|ersetzt|von|(?:mudó|cambió|pasó|passée?s?) de|au lieu d[e']|remplace|en lugar de|en vez de|reemplaza"
    r"|but no longer)\s+(?P<old>(?:[^,;.]|\.(?=\w))+?)(?=\s+(?:to|with|by|for|in favou?r|in|auf|zu|durch|für|par|pour"
    r"|por|para|but|as|a|à)\b|[,;]|\.(?!\w)|$)|不再使?用?(?P<old2>[^，。；]+)|代替(?P<old3>[^，。；]+)|(?P<old4>[^はがを、]+)から",
    _I,
)
_NEGATES = re.compile(r"\b(?:not|no|without|over|rather|never|\w+n['’]t|nicht|kein\w*|ohne|pas|sans|sin)\b", _I)
_A_TIME_OF_MANY = re.compile(
    r"\b(?:an?|another|eine?n?|une?|una)\s+[^\W\d_]+\b(?!.*(?:\b(?:is|are|ist|est|es)\b|=))[^\d]*$", _I
)
_DENIES_OLD = re.compile(r", (?:not|without)\b", _I)
_MOVE = re.compile(r"\b(?:moved|switched over|relocated|migrated|gezogen|umgezogen|déménagé|mudó)\b|搬到", _I)
_ALSO = re.compile(r"\b(?:too|also|as well|both|another|auch|aussi|también)\b|也", _I)
# When it changed, which is no part of the value.
_WHEN = re.compile(
    r"\s+(?:(?:since|as of|seit|depuis|desde)\s+[^,;.]+|from now on|ab (?:jetzt|sofort)"
    rf"|(?:in|im|en)\s+(?:version\s+)?v?\d+\.\d+|(?:in|im|en)\s+{MONTH}(?:\s+\d{{4}})?)(?=[,;.]|$)"
    r"|^(?:as of|since) (?:this|last|next) \w+\s+|^(?:as of|since|from now|désormais|seit|depuis|desde)[^,]*,\s+",
    _I,
)
_GONE = re.compile(
    r"\b(?:gone|left|sold|retired|dropped|removed|deleted|replaced|shut|over|out|not|no longer|was|were|weg|nicht"
    r"|verkauft|verlassen|abgeschaltet|partie?s?|vendue?s?|plus|vendid[oa]s?|ya no)\b|不再",
    _I,
)
_ONE_AT_A_TIME = frozenset(("live", "work", "run", "place", "go", "own", "call", "end", "start", "meet", "report"))
# Verbs that give a thing its value, each as well as another.
_GIVES = frozenset(("use", "call", "take", "go", "work", "require"))
_NOW = r"(?:(?:now|jetzt|ahora|maintenant)\s+)?"
_ARTICLE = (
    r"(?:(?:the|team|in|on|at|by|to|auf|bei|um|am|chez|en|à|der|die|le|la|les|el|los|las|host|server|port|room|branch"
    r"|version|raum|zimmer|salle|sala)\s+)*"
)
# What stands before the one value of an attribute: "the deadline is", "the build takes".
_COPULA = re.compile(
    rf"(?:\b(?:is|ist|est|es|beträgt|heißt|equals)|:|=|是|为|在)\s*{_NOW}{_ARTICLE}(?:an?\s+)?$|\bare\s+{_NOW}(?:in|on"
    rf"|at)\s+$",
    _I,
)
_LEADS = re.compile(
    r"\b(?:lives? in|resides? in|works? (?:at|for)|employed (?:at|by)|(?:runs?|listens?) (?:on|in|at)|(?:hosted"
    r"|deployed|stored|kept|located|placed) (?:in|on|at|by|to)|(?:goes?|sent|deploys?|reports?|delivered) to|(?:owned"
    r"|maintained|led|managed|handled) by|called|named|(?:written|implemented) in|(?:moved|switched|migrated|changed"
    r"|renamed|pushed|bumped)(?: over)? to|format\w* .{0,40}\bwith|(?:answers?|replies|replys?|comments?|messages?"
    r"|docs) in|wohnt in|lebt in|arbeitet (?:bei|für)|läuft auf|(?:steht|liegt) (?:in|bei)|gehe?n? an|nach"
    r"|habite (?:à|en)|travaille chez|hébergée? (?:chez|sur)|vive en|trabaja en)"
    rf"\s+{_NOW}{_ARTICLE}$",
    _I,
)
_MEASURES = re.compile(
    r"\b(?:takes?|costs?|lasts?|weighs?|ends? (?:on|in|at)|expires?(?: on| in)?|starts? (?:on|at)|begins? (?:on|at)"
    r"|due(?: on)?|requires?|needs?|has|have|keeps?|pays?|dauert|kostet|endet am|beginnt um|braucht|hat|dure|coûte|a"
    r"|dura|cuesta|tiene)"
    rf"\s+{_NOW}$",
    _I,
)
_IDENTIFIERS = re.compile(
    r"^(?:bug|ticket|issue|pr|sprint|room|chapter|order|phase|migration|step|part|page|task|raum|kapitel)s?$", _I
)
_REPLACES = re.compile(r"\b(?:instead|rather|statt|anstatt|lieu|lugar|vez|replac\w+)\b|代替|不再", _I)
WHERE = re.compile(r"\b(?:in|for|on|at|with|für|auf|bei|mit|pour|dans|avec|en|para|con)\b", _I)
_MAX_VALUE = 3
_MIN_SHARED = 2
_GIVES_VALUE = re.compile(
    r"(?:\b(?:is|it['’]s|called|named|to|but|take|uses?|has|have|goes with|by|by the name|chose|picked|(?:is|are|kept"
    r"|held|lives|goes|\w+ed) (?:with|in|on|at)|licensed under|in favou?r of|ist|est|es)|[:=,])(?:\s+(?:now"
    r"|actually))?\s+(?:(?:the|our|my|mrs?|ms|dr|prof)\b\.?\s+)*$",
    _I,
)
_IN_PLACE = re.compile(r"\b(?:is|are)\s+(in|on|at)?\s*(?:the\s+)?$", _I)
_CHANGED_TO = re.compile(r"(?:\b(?:to|in favou?r of)|:)\s+(?:(?:the|our|my|mrs?|ms|dr|prof)\b\.?\s+)*$", _I)
_BOUNDS = (
    re.compile(r"\b(?:from|after|since|at least|min(?:imum)?|\w+-in)\b", _I),
    re.compile(r"\b(?:until|till|before|by(?= \d)|at most|max(?:imum)?|\w+-out)\b", _I),
)
_ARTICLES = re.compile(r"(?:an?|the)\s+$", _I)
_VALUE_OF = re.compile(
    r"\s+(?:is (?:the|our|my|what|\w+['’]s)|as (?:the|its|their)|has it|(?:has )?replace[sd]|takes over"
    r"|has taken over|leads|owns|teaches|maintains|handles)\b",
    _I,
)
_TALK_WORDS = """
agreed chose settled anybody actually today yesterday earlier way forget head fyi correction scrap folk decided change
switched note later anyone asks ask work take goes with new week day these planned scheduled over swapped out retired
dropped said what up remind know before tell told heard update updated
keep mind thing small replacing nothing place good picked pick team morning whenever again went they
removed deleted discontinued decommissioned cancelled fixed resolved gone
merged deprecated shut down subscription
"""
_TALK = frozenset(map(stem, _TALK_WORDS.split()))
_MEASURED = re.compile(r"(?:\bis|\bist|\best|\bes|:|=|\b(?:is|are) (?:\w+ )?(?:at|for|on))\s+$", _I)
_ONE_OF_MANY = re.compile(
    r"\b(?:an?|one|another|eine?n?|une?|una) [^\W\d_]+ (?:called|named|namens|nommée?|llamad[oa]) $", _I
)
_CALLED = re.compile(r"\b(?:called|named|heißt|s['’]appelle|se llama)\s+$", _I)
_PLACE = re.compile(r"\b(in|on|at|by|to|with|from|bei|chez)\s+(?:(?:the|der|die|la|le|el)\s+)?$", _I)
_OPENING = re.compile(r"^\W*(?:for|in|on|at|just|as|when|note)\b[^,]*,", _I)
_AND = re.compile(r"\b(?:and|or|und|oder|et|ou|y|o)\b|[,;和]", _I)
_PAST = re.compile(
    r"\b(?:was|were|had|did|went|flew|ran|met|bought|sold|saw|took|made|(?!(?:need|hosted|deployed|stored|located|owned"
    r"|managed|maintained|called|named|required|used|moved|switched|changed|renamed|migrated|placed|handled|employed"
    r"|needed)\b)\w{3,}ed)\b",
    _I,
)
LIMITS = re.compile(
    r"(?<!-)\b(?:if|when|unless|except|only|but|without|not|no|never|wenn|nur|außer|nicht|kein\w*|si|sauf|seulement|sans"
    r"|cuando|s[oó]lo|salvo|sin|while|(?:before|after|until|during)(?! (?:on )?\d{4}-))\b|[只不没除]|如果|ない|ません",
    _I,
)


def is_superseded(old: Claim, new: Claim) -> bool:
    if _ALSO.search(new.text):
        return False
    bounds, others = ([bool(bound.search(claim.text)) for bound in _BOUNDS] for claim in (old, new))
    if sum(bounds) == sum(others) == 1 and bounds != others:
        return False
    rules = (_denies, _has_new_value, _has_other_value, _says_what_became_of, _names_old_value)
    if any(rule(old, new) for rule in rules):
        return True
    dated = _WHEN.sub("", new.text)
    return dated != new.text and _has_new_value(old, read_claim(dated), says_change=_says_change(new))


def _names_old_value(old: Claim, new: Claim) -> bool:
    """Whether the newer says what it replaces: "helix instead of vim", "in prose, not in lists"."""
    at = 0
    while match := _OLD_VALUE.search(new.text, at):
        at = match.start() + 1
        phrase = next(group for group in match.groups() if group)
        values = {key for word in read_claim(phrase).words for key in (word.key, key_of(word))}
        replaced = [word for word in old.words if {word.key, key_of(word)} & values]
        is_denied = _DENIES_OLD.match(match[0]) and not _NEGATES.search(old.text)
        was_denied = replaced and _NEGATES.search(old.text[: replaced[0].at])
        if not replaced or was_denied or not (_changes(new) or is_denied):
            continue
        rest = [word for word in old.words if word not in replaced]
        if rest and _changes(new) and all(says(new, word) for word in rest):
            return True
        # "My editor is vim", and "I switched from vim to helix".
        given = read_claim(_WHEN.sub("", new.text.replace(phrase, "")))
        added = [word for word in given.words if not says(old, word) and not _says_nothing(word)]
        gives_value = all(says(new, word) for word in rest) or _GIVES_VALUE.search(
            _ARTICLES.sub("", old.text[: replaced[0].at])
        )
        if gives_value and _is_one_phrase(added):
            return True
    return False


def _is_one_phrase(words: Sequence[Word]) -> bool:
    """Whether words are one value: "Fly", "Tesla Model 3"."""
    return 0 < len(words) <= _MAX_VALUE and all(two.at == one.at + len(one.text) + 1 for one, two in pairwise(words))


def _changes(new: Claim) -> bool:
    return bool(CHANGE.search(new.text) or _REPLACES.search(new.text))


def _says_change(new: Claim) -> bool:
    """Whether the newer says that something is not as it was."""
    return bool(SAYS_NOW.search(new.text) or _changes(new))


def _denies(old: Claim, new: Claim) -> bool:
    """Whether the newer says that the older no longer holds: its words again, denied, or the first of them."""
    if NO_LONGER.search(old.text) or not NO_LONGER.search(new.text):
        return False
    told = [word for word in old.words if not _says_nothing(word)]
    added = [word for word in new.words if not says(old, word) and not _says_nothing(word)]
    # One word may be in much that says another thing.
    is_about_it = len(told) > 1 or len(added) <= 1 or (old.verbs and old.verbs <= new.verbs)
    for part in _parts(new.text):
        if NO_LONGER.search(part):
            denied = read_claim(_WHEN.sub("", part))
            has_some = any(says(denied, word) for word in told)
            if has_some and is_about_it and all(says(new, word) for word in told):
                return True
            own = [word for word in denied.words if says(old, word)]
            others = [word for word in denied.words if word not in own and not _says_nothing(word)]
            is_most = 2 * len(own) > len(old.words) and len(own) >= _MIN_SHARED
            starts = bool(own) and says(denied, old.words[0]) and (len(own) > 1 or len(old.words) <= _MIN_SHARED)
            is_named = any(word.kind == "path" for word in own)
            if not others and (is_most or starts or is_named) and not _AND.search(_OPENING.sub("", old.text)):
                return True
    return False


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[,;，；。]\s*|\.\s+", text) if part]


def _says_what_became_of(old: Claim, new: Claim) -> bool:
    """Whether the newer has another value, and says that the old one is over: "Tests run with nox, tox is gone"."""
    if _GONE.search(old.text):
        return False
    parts = [part for each in _parts(_WHEN.sub("", new.text)) for part in re.split(r"\s+(?:and|und|et|y)\s+", each)]
    for part in parts:
        now = read_claim(part)
        before, after = old.values - now.values, now.values - old.values
        is_about_it = old.values & now.values or (old.verbs and old.verbs == now.verbs)
        rest = [each for each in parts if each != part and _GONE.search(each)]
        is_over = any(before <= read_claim(each).values for each in rest)
        if is_about_it and before and 0 < len(after) < _MAX_VALUE and is_over and agree(old, now):
            return True
    return False


def _has_new_value(old: Claim, new: Claim, *, says_change: bool | None = None) -> bool:
    """Whether the words of both are the same but for one value, of an attribute that has one value at a time."""
    keyed = [_KEYED.fullmatch(claim.text.rstrip(" .")) for claim in (old, new)]
    if keyed[0] and keyed[1]:
        is_same_key = keyed[0]["key"].lower() == keyed[1]["key"].lower()
        is_more = old.values <= new.values or new.values <= old.values
        return is_same_key and not is_more and not _is_list(keyed[0]["key"])
    if bool(LIMITS.search(old.text)) != bool(LIMITS.search(new.text)) or _PAST.search(old.text):
        return False
    kept = new.words
    if not any(word.kind == "date" for word in old.words):
        # The day of the change.
        kept = tuple(word for word in kept if word.kind != "date")
    head, tail = shared_ends([key_of(word) for word in old.words], [key_of(word) for word in kept])
    values = old.words[head : len(old.words) - tail], kept[head : len(kept) - tail]
    if not all(0 < len(value) <= _MAX_VALUE for value in values):
        return False
    if any(_is_two_things(claim, value) for claim, value in zip((old, new), values, strict=True)):
        return False
    one, two = values[0][0], values[1][0]
    if all(len(value) == 1 or is_with_version(value) for value in values) and _exclude_each_other(one, two, old):
        return agree(old, new) or CHANGED in new.verbs
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
    both_named = all(kind & {"name", "path"} for kind in kinds)
    if (has_words and not is_named) or not (kinds[0] & kinds[1] or both_named or is_named):
        return False
    return _is_single_valued(old, new, (one, two), old.words[:head], old.words[len(old.words) - tail :] if tail else ())


def _has_other_value(old: Claim, new: Claim) -> bool:
    """Whether both say the same in any order and wording, but for one value of an attribute that has one at a time."""
    shared = [word for word in old.words if says(new, word)]
    is_change = CHANGED in new.verbs
    one, two = ([word for word in words if not _says_nothing(word)] for words in left_over(old, new, implies=is_change))
    if not any(word.kind == "date" for word in one):
        # The day of the change.
        two = [word for word in two if word.kind != "date"]
    if not one and (_changes(new) or _OLD_VALUE.search(new.text)):
        # The newer one names the old value, too.
        one = [word for word in shared if word.kind in ("name", "path") and _is_value(old, [word])]
        shared = [word for word in shared if word not in one]
    past = [match for match in _PAST.finditer(old.text) if stem(match[0].lower()) not in _TALK]
    is_past = past and not re.search(r"\b(?:is|are|got)\b", old.text)
    if (
        not shared
        or not one
        or not two
        or is_past
        or not (is_change or agree(old, new) or old.verbs | new.verbs <= _GIVES)
    ):
        return False
    are_names = all(word.kind in ("name", "path") for word in (*one, *two))
    if not are_names and bool(LIMITS.search(old.text)) != bool(LIMITS.search(new.text)):
        return False
    if len(one) == len(two) == 1 and _exclude_each_other(one[0], two[0], old) and _changes(new):
        return True
    return _has_new_measures(old, new, one, two) or _has_new_phrase(old, new, one, two, shared)


def _has_new_phrase(old: Claim, new: Claim, one: Sequence[Word], two: Sequence[Word], shared: Sequence[Word]) -> bool:
    """Whether two phrases are values of what both texts share."""
    is_change = CHANGED in new.verbs
    if not (_is_one_phrase(one) and _is_value(old, one)):
        return False
    rest = [word for word in old.words if word not in one and not says(new, word)]
    is_place = _PLACE.search(old.text[: one[0].at]) or old.verbs & {"live", "place", "run", "go", "work"}
    if (
        is_change
        and _CHANGED_TO.search(new.text[: two[0].at])
        and not rest
        and (is_place or not _MOVE.search(new.text))
    ):
        return len(shared) >= _MIN_SHARED
    if not (_is_one_phrase(two) and _is_value(new, two)):
        return False
    if not is_change and not _same_place(*_texts_before(old, new, (one[0], two[0]))):
        return False
    about = [word for word in shared if word.kind == "word"] + sorted((old.verbs & new.verbs) - {"use"})
    names = sum(word.kind != "word" for word in shared)
    are_names = all({word.kind for word in value} <= {"name", "path"} for value in (one, two))
    return are_names and bool(about) and len(about) + names >= _MIN_SHARED


def _says_nothing(word: Word) -> bool:
    return word.kind in ("word", "name") and word.key != "call" and (is_filler(word.key) or word.key in _TALK)


def _is_value(claim: Claim, value: Sequence[Word]) -> bool:
    """Whether a text says of a phrase that something is, has or got it, or that it is something."""
    before, behind = claim.text[: value[0].at], claim.text[value[-1].at + len(value[-1].text) :]
    is_one_of_many = re.match(r"\s+as an?\b", behind) or _ONE_OF_MANY.search(before)
    return not is_one_of_many and bool(_GIVES_VALUE.search(before) or _VALUE_OF.match(behind))


def _has_new_measures(old: Claim, new: Claim, one: Sequence[Word], two: Sequence[Word]) -> bool:
    """Whether only measures, times or versions of one thing differ."""
    pairs = [pair for pair in zip(one, two, strict=False) if not any({w.key for w in pair} <= line for line in _SERIES)]
    return (
        len(one) == len(two) <= _MAX_VALUE
        and bool(pairs)
        and all(
            first.kind == second.kind
            and first.unit == second.unit
            and _is_measure(old, first)
            and (_is_measure(new, second) or CHANGED in new.verbs)
            for first, second in pairs
        )
    )


def _is_measure(claim: Claim, word: Word) -> bool:
    """Whether a number says how much, when or which version: "30 days", "at 9:30", "Node 18"; "bug 12" is a name."""
    before, behind = claim.text[: word.at], claim.text[word.at + len(word.text) :]
    if word.kind not in ("number", "date") or (_A_TIME_OF_MANY.search(before) and not word.unit):
        return False
    if word.unit or word.kind == "date" or ":" in word.key:
        return True
    place = claim.words.index(word)
    beside = claim.words[place - 1] if place and is_with_version(claim.words[place - 1 : place + 1]) else None
    if beside is not None and (_IDENTIFIERS.search(beside.text) or not _is_version(claim, word, beside)):
        return False
    return bool(beside or _MEASURED.search(before) or re.match(r" (?:a |per |[a-z]{3,})", behind))


def is_with_version(value: Sequence[Word]) -> bool:
    """Whether a value is a name and the number behind it: "MySQL 8"."""
    name, number = value[0], value[-1]
    return len(value) == 2 and number.kind == "number" and number.at == name.at + len(name.text) + 1


def _is_list(key: str) -> bool:
    """Whether several entries with a key may hold: "Languages: Polish", "Note: …"."""
    last = key.rsplit(maxsplit=1)[-1]
    is_plural = last.islower() or last.istitle()
    return key.lower() in _LISTED or (is_plural and re.search(r"[^sui]s$", last.lower()) is not None)


def _texts_before(old: Claim, new: Claim, values: tuple[Word, Word]) -> tuple[str, str]:
    """What stands in each text before its value, which begins where its token does: "555-1234"."""
    found = (
        re.sub(r"[A-Za-z0-9.@+/_-]*$", "", claim.text[: word.at])
        for claim, word in zip((old, new), values, strict=True)
    )
    before, after = found
    return before, after


def _same_place(before: str, after: str) -> bool:
    """Whether two values may be of one attribute: a server is in Frankfurt and on NixOS."""
    if (one := _IN_PLACE.search(before)) and (two := _IN_PLACE.search(after)) and not (one[1] and two[1]):
        return one[1] == two[1]
    places = [_PLACE.search(text) for text in (before, after)]
    return not (places[0] and places[1]) or places[0][1].lower() == places[1][1].lower()


def _replaces_word(old: Claim, new: Claim, values: tuple[Word, Word]) -> bool:
    """Whether a newer word stands where the older one stood: a day, or a name of a thing that has one at a time."""
    one, two = values
    before, after = _texts_before(old, new, values)
    is_series = any({one.key, two.key} <= line for line in _SERIES)
    if old.verbs - _ONE_AT_A_TIME or new.verbs - _ONE_AT_A_TIME - {CHANGED} or not re.search(r"\w", before):
        return False
    if not (_COPULA.search(before) or old.verbs - {"run"}) or not (_same_place(before, after) or CHANGED in new.verbs):
        return False
    if old.verbs - new.verbs - {"live", "place", "run", "go", "call"} and _MOVE.search(new.text):
        return False
    are_names = "name" in (one.kind, two.kind) and one.text.islower() == two.text.islower()
    return is_series or (are_names and not opposite_words(one.key))


def _is_two_things(claim: Claim, value: Sequence[Word]) -> bool:
    """Whether both values may hold: "100 in Python" and "80 in Markdown", "a brother named Ben" and "… named Tom"."""
    is_one_of_many = _ONE_OF_MANY.search(claim.text[: value[0].at])
    is_time = all(word.kind in ("number", "date") for word in value[1:])
    return bool(is_one_of_many or (not is_time and WHERE.search(claim.text[value[0].at : value[-1].at])))


def _exclude_each_other(one: Word, two: Word, old: Claim) -> bool:
    """Whether a thing has one of two values; what stands first is the thing itself: a brother, a sister."""
    is_thing = one == old.words[0] and not re.search(r"\b(?:is|are|as)\b|[:=]", old.text[: one.at])
    are_opposite = not is_thing and two.key in opposite_words(one.key)
    return are_opposite or any({one.key, two.key} <= line for line in _EXCLUSIVE)


def _is_single_valued(
    old: Claim, new: Claim, values: tuple[Word, Word], head: Sequence[Word], tail: Sequence[Word]
) -> bool:
    """Whether the words before the value lead to the one value of an attribute."""
    before, after = _texts_before(old, new, values)
    are_paths = all("/" in value.key for value in values)
    if not (are_paths or _same_place(before, after)) and CHANGED not in new.verbs:
        return False
    is_number = values[0].kind == "number"
    is_thing = re.match(r"\W*(?:the|our|my|der|die|das|le|la|el)\b", old.text, _I)
    has_attribute = (
        (head and (is_thing or old.subject))
        or any(word.kind == "word" for word in (*head, *tail))
        or old.verbs & {"own", "call"}
    )
    if is_number and head and _is_version(old, values[0], head[-1]):
        return agree(old, new) or CHANGED in new.verbs
    leads_to_measure = _COPULA.search(before) or (values[0].unit and _MEASURES.search(before))
    if tail and not (is_number and leads_to_measure):
        return False
    if _LEADS.search(before) and _LEADS.search(after):
        is_move = _MOVE.search(new.text) and old.verbs & {"live", "place", "run", "go"}
        return old.verbs == new.verbs or bool(is_move) or bool(old.verbs & {"call"} and CHANGED in new.verbs)
    if values[0].kind in ("number", "date") and _MEASURES.search(before) and _MEASURES.search(after):
        return old.verbs == new.verbs and bool(head or tail)
    is_one_of_many = re.match(r"\W*(?:an?|one|another|ein|eine|un|une|una)\b", old.text, _I)
    if new.verbs - old.verbs - {CHANGED} or (old.verbs - new.verbs and CHANGED not in new.verbs):
        return False
    return bool(has_attribute and not is_one_of_many and _COPULA.search(before)) and (
        bool(_COPULA.search(after)) or bool(_LEADS.search(after) and CHANGED in new.verbs)
    )


def _is_version(claim: Claim, number: Word, name: Word) -> bool:
    """Whether a number is the version of something that is used: "Python 3.12 is required"."""
    beside = f"{name.text} {number.text}"
    is_used = claim.verbs & {"use", "require", "run"} or re.search(
        rf"(?:\b(?:is|ist|est|es)|:|是) {re.escape(beside)}", claim.text
    )
    return beside in claim.text and bool(is_used) and not _IDENTIFIERS.search(name.text)
