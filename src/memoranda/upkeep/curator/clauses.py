"""Divides an entry into clauses and their words: names, numbers with units, dates, paths and plain words.

A word is compared by its `key`: a number is written in digits, a date as ISO 8601, a plain word as its stem.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple
from unicodedata import combining, normalize

from memoranda.search.index.related_words import close_words, related_words
from memoranda.search.index.stemmer import stem
from memoranda.support.lazy_dataclass import dataclass

Kind = Literal["word", "name", "number", "date", "path"]


class Word(NamedTuple):
    kind: Kind
    key: str
    text: str
    at: int
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """The words of one clause without those that carry no meaning; `lead` are those its subject may be among."""

    text: str
    words: tuple[Word, ...]
    lead: tuple[Word, ...]
    sentence: int
    at: int


_MONTHS = (
    "january|jan|januar|jänner|janvier|enero", "february|feb|februar|février|febrero", "march|mar|märz|mars|marzo",
    "april|apr|avril|abril", "may|mai|mayo", "june|jun|juni|juin|junio", "july|jul|juli|juillet|julio",
    "august|aug|août|agosto", "september|sep|sept|septembre|septiembre", "october|oct|oktober|octobre|octubre",
    "november|nov|novembre|noviembre", "december|dec|dez|dezember|décembre|diciembre",
)  # fmt: skip
_MONTH_OF = {name: place for place, names in enumerate(_MONTHS, 1) for name in names.split("|")}
MONTH = "(?:" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + ")"
_NUMBER_WORDS = (
    "zero null cero zéro 零", "", "two zwei deux dos 两 二 twice zweimal",
    "three third drei trois tres 三 thrice dreimal", "four fourth vier quatre cuatro 四",
    "five fifth fünf cinq cinco 五", "six sixth sechs seis 六", "seven seventh sieben sept siete 七",
    "eight eighth acht huit ocho 八", "nine ninth neun neuf nueve 九", "ten tenth zehn dix diez 十",
    "eleven eleventh elf onze once", "twelve twelfth zwölf douze doce dozen dutzend douzaine docena",
    "thirteen dreizehn treize trece", "fourteen vierzehn quatorze catorce", "fifteen fünfzehn quinze quince",
    "sixteen sechzehn seize", "seventeen siebzehn", "eighteen achtzehn", "nineteen neunzehn",
    "twenty zwanzig vingt veinte",
)  # fmt: skip
_NUMBER_OF = {word: str(value) for value, words in enumerate(_NUMBER_WORDS) for word in words.split()}
_NUMBER_OF |= {"thirty": "30", "dreißig": "30", "trente": "30", "treinta": "30", "forty": "40", "vierzig": "40"}
_NUMBER_OF |= {"fifty": "50", "fünfzig": "50", "sixty": "60", "sechzig": "60", "ninety": "90", "hundred": "100"}
# "Once" means one time, and in Spanish eleven; it is a number in neither case that matters here.
del _NUMBER_OF["once"]
_ONE = frozenset({"one", "a", "an", "ein", "eine", "einer", "einem", "einen", "un", "une", "una", "一"})
_UNITS = {
    name: unit
    for unit, names in {
        "second": "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos 秒",
        "minute": "min mins minute minutes minuten minuto minutos 分钟 分",
        "hour": "h hr hrs hour hours stunde stunden heure heures hora horas 小时 時 点 点钟",
        "day": "d day days tag tage tagen jour jours día días 天 日",
        "week": "week weeks woche wochen semaine semaines semana semanas 周",
        "month": "month months monat monate monaten mois mes meses 个月",
        "year": "year years jahr jahre jahren an ans año años 年",
        "ms": "ms millisecond milliseconds millisekunden millisecondes milisegundos 毫秒",
        "kb": "kb kilobyte kilobytes kib", "mb": "mb megabyte megabytes mib", "gb": "gb gigabyte gigabytes gib go",
        "tb": "tb terabyte terabytes tib", "percent": "% percent prozent pourcent", "euro": "€ eur euro euros 欧元",
        "dollar": "$ usd dollar dollars 美元", "pound": "£ gbp pounds",
        "km": "km kilometer kilometers kilometre kilometres", "mile": "mile miles mi", "cm": "cm", "mm": "mm",
        "meter": "m meter meters metre metres", "liter": "liter liters litre litres", "ml": "ml", "bar": "bar",
        "gram": "g gram grams gramm", "kg": "kg kilo kilos", "mg": "mg milligram milligrams", "mcg": "mcg µg",
        "celsius": "°c celsius", "degree": "° degree degrees", "pixel": "px pixel pixels", "yuan": "元 yuan",
    }.items()
    for name in names.split()
}  # fmt: skip
_TOKEN = re.compile(
    rf"""(?P<code>`[^`\n]+`)
    |(?P<url>\w+://\S*[\w/]|[\w.+-]+@[\w-]+\.[\w.-]*\w)
    |(?P<iso>\d{{4}}-\d\d(?:-\d\d)?(?![\w-]))
    |(?P<east>\d{{4}}年\d{{1,2}}月(?:\d{{1,2}}日)?)
    |(?P<day>\b\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\ (?:of|de))?\ (?P<month>{MONTH})\b
      (?:,?(?:\ (?:of|de))?\ (?P<year>\d{{4}}))?
    |(?P<month2>\b{MONTH})\ (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\ (?P<year2>\d{{4}}))?
    |(?P<dotted>\b\d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b)
    |(?P<time>\b\d{{1,2}}(?:(?::|\ ?h\ ?)\d\d(?::\d\d\b)?(?:\ ?[ap]\.?m\b\.?)?|\ ?[ap]\.?m\b\.?|\ Uhr\b))
    |(?P<address>\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b)
    |(?P<path>(?:~|\.{{0,2}})/[\w~.@/*+-]*[\w/*]|\b[\w.@*-]+/(?!(?:s|sec|second|min|minute|h|hour|day|week|month|year)\b)(?:[\w@.*/+-]*[\w*/])?|\b[A-Z]:\\\S+|(?<![\w-])--?[a-z][\w-]+
      |\b(?:make|npm|npm\ run|yarn|pnpm|cargo|just|git|docker|uv\ run)\ \w+[-:][\w:-]*\w
      |\b[\w-]*\w(?:\.[\w-]+)*\.(?:[a-z]{{2,4}}|internal|local|example|py|js|ts|md|sh|c|h|rs|go)\b(?!\.\w)|\.[a-z]\w+\b|\b\w+_\w+\b
      |(?<![\w-])(?=[\w-]*\d)[a-z]\w*(?:-\w+)+\b)
    |(?P<telephone>\b(?:\+\d+\ )?\d{{2,5}}(?:\ \d{{2,5}}){{2,}}\b)
    |(?P<number>(?:(?<=\s)[-−](?=\d))?[$€£]?(?<![A-Za-zÀ-ÿ0-9_])(?:v(?=\d))?\d(?:[\d.,'’]*\d)?(?![^\W\d_]{{4}})(?:(?:k|st|nd|rd|th)\b)?)
    |(?P<cjk>[\u3040-\u30ff\u3400-\u9fff]+)
    |(?P<word>[^\W_](?:[\w'’]*\w)?(?:\+\+|\#)?|[%€$£°]C?)""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\s*[;。！？；\n•]\s*")
_BREAK = re.compile(
    r"\s*[,，、]\s+|[，、]|\s+[–—-]\s+|\s+(?=\(|\bwhich\b|\bwho\b)|\s+(?:and|und|et|y|e|but|aber|mais|pero|while"
    r"|whereas|während)\s+|[和而但且]",
    re.IGNORECASE,
)
_STOP_WORDS = """
a an the and or of at by for with about between into to from up in out on off over as is are was were be been being am
have has had having do does did doing will would can could should shall may might must this that these those it its he
him his she her they them their we us our you your i me my who which whom whose what there here so than too very just
also then each any all both some such own same if when not no nor only but s t d ll re ve m don doesn didn isn aren
wasn weren won via per one ones every where how why because upon once before after until till since while during unless
under above below through across around among against behind beyond except apart other others otherwise within
without never ever always cannot more most less least anymore longer any
max min maximum minimum limit limits
der die das den dem des ein eine einen einem einer eines und oder von vom zu zum zur im in am an auf aus bei mit für
über unter nach vor ist sind war waren wird werden wurde hat haben hatte kann soll muss darf als auch es er sie wir ihr
ihm ihn sich nicht kein keine keinen wenn falls nur aber sein seine ihre unser jede jeder jedes alle dass derer denen
le la les l un une des du de d et ou à au aux en dans sur par pour avec chez est sont était a ont qui que qu ce cet
cette ces il elle ils elles on nous vous se ne n pas si son sa ses leur leurs y tous toutes tout ceux celle
el los las un una unos unas y o del al en por para con es son era fue ha han que se su sus lo le les si no esta este
todos todas todo a de
"""
_STOP = frozenset(_STOP_WORDS.split())
# Nouns and verbs in English, and stop words elsewhere.
_ENGLISH_WORDS = frozenset({"son", "war", "die", "den", "par", "sin"})
# Words that introduce a statement and say nothing of their own; another wording may do without them.
_FILLER_WORDS = """
user users nutzer benutzer utilisateur utilisatrice l'utilisateur l'utilisatrice usuario usuaria allowed permitted
says say said told tell tells note noted remember please always generally general usually currently now
really want wants wanted like likes prefer prefers preferred preference would located found place placed takes take
taking done using use uses used called named name means make makes made get gets got go goes going need needs needed
necessary required require requires run runs running work works working keep keeps kept store stored stores put set
written write writes implemented project team thing things way file files directory folder application
application's order case way instead still already both every everything anything something new current currently
existing different following regarding additionally moreover furthermore however therefore respectively whole entire
come comes give gives given provide provides provided contain contains consist happen happens occur last lasts due
between wait waiting exception except apart other otherwise never ever without person people us based total number
handle handles handled enjoy enjoys repository repo size tool tools
reachable url ip city wohnort ciudad
liegt steht stehen gibt wohnt läuft nutzt verwendet benutzt macht heißt heißen möchte utilise utilisent trouve habite
usa usan vive está tiene usar utiliza commence dure débute beginnt dauert empieza dura
amount value kind type sort wish wishes hold holds held time times moreover own owns owned belongs
belong live lives
"""
_FILLERS = frozenset(map(stem, _FILLER_WORDS.split()))
# First names that are also words: with a capital, they are names also where a sentence starts.
_FIRST_NAME_WORDS = """
tom mark frank jack bill rose grace max art rob sue pat drew ruby amber dawn joy hope faith harry peter ben sam dan
ken ray jay rex cliff dean dale glen grant guy heath jean lance miles nick norm ted tony victor wade eve ivy lily iris
daisy dick penny sandy terry kim lee chuck gene russell warren curtis jordan chase hunter carol
"""
_FIRST_NAMES = frozenset(_FIRST_NAME_WORDS.split())
_EMPHASIS = frozenset({"not", "never", "only", "no", "and", "or", "all", "must", "do", "if", "any"})
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# Japanese writes what joins words in hiragana.
_CJK_STOP = frozenset(map(chr, range(0x3041, 0x3097))) | frozenset(
    "的了在是有和由用为與与及把被就再也对到从等这那个们会要不没無无别勿非只仅除若如果当时候所以着过上下里中一人其他并且或"
)
_GERMAN = re.compile(
    r"\b(?:der|die|das|und|ist|nicht|wird|mit|im|dem|eine?|keine?n?|sind|bei|auf|für|von|den|ohne|zum|zur|möchte|nutzt|bitte|wohnt)\b",
    re.IGNORECASE,
)
_OTHER_LANGUAGE = re.compile(
    r"\b(?:le|la|les|est|dans|avec|el|los|con|para|une?|una|chez|sont|del|usa|tous|si|pas|à|au|aux|du|des|vive|al|las)\b",
    re.IGNORECASE,
)


def clauses_of(text: str) -> list[Clause]:
    """The clauses of a text. A part with fewer than two words of its own belongs to the part beside it."""
    language = _language(text)
    found: list[Clause] = []
    at = 0
    for number, sentence in enumerate(part for part in _SENTENCE.split(text) if part.strip()):
        parts: list[tuple[str, list[Word]]] = []
        rest = ""
        spans = [match.span() for match in _TOKEN.finditer(sentence) if match.lastgroup != "cjk"]
        for piece, separator in _pieces(sentence, spans):
            words = words_of(rest + piece, at, language=language, starts=not parts)
            if len(words) < 2 and parts:
                parts[-1] = (parts[-1][0] + piece, [*parts[-1][1], *words])
                rest = ""
            elif len(words) < 2:
                rest += piece + separator
                continue
            else:
                parts.append((rest + piece, words))
                rest = ""
            if separator:
                parts[-1] = (parts[-1][0] + separator, parts[-1][1])
        if rest and not parts:
            parts.append((rest, words_of(rest, at, language=language, starts=True)))
        lead: tuple[Word, ...] = ()
        for piece, words in parts:
            found.append(Clause(piece, tuple(words), lead, number, at))
            lead = lead if lead and not any(word.kind == "name" for word in words) else tuple(words[:2])
            at += len(piece)
    return found


def _language(text: str) -> str:
    """English, where an unknown word is a name; German, where a capital makes none; or another language."""
    if _GERMAN.search(text):
        return "de"
    return "other" if _OTHER_LANGUAGE.search(text) or _CJK.search(text) else "en"


def _pieces(sentence: str, protected: Sequence[tuple[int, int]]) -> Iterable[tuple[str, str]]:
    """The parts of a sentence with what separates each from the next; no token is divided."""
    breaks = [
        match
        for match in _BREAK.finditer(sentence)
        if not any(begin < match.start() and match.end() < end for begin, end in protected)
    ]
    start = 0
    for match in breaks:
        yield sentence[start : match.start()], match[0]
        start = match.end()
    yield sentence[start:], ""


def words_of(text: str, at: int = 0, *, language: str = "en", starts: bool = True) -> list[Word]:
    """The words of a text that carry meaning, in their order; `starts` says whether a sentence starts with it."""
    found: list[Word] = []
    matches = list(_TOKEN.finditer(text))
    for place, match in enumerate(matches):
        behind = matches[place + 1][0] if place + 1 < len(matches) else ""
        following = behind.lower()
        # A Pixel is a phone.
        unit = (
            ""
            if (behind.istitle() and len(behind) > 1) or text[match.end() :][:1] in "'’"
            else _UNITS.get(following, "")
        )
        if not unit and match.lastgroup == "number" and following and _CJK.match(following):
            unit = next((_UNITS[each] for each in (following[:2], following[:1]) if each in _UNITS), "")
        position = at + match.start()
        if match.lastgroup == "cjk":
            found += _cjk_words(match[0], position)
            continue
        first = starts and not re.search(r"\w", text[: match.start()])
        counts = bool(following) and following not in _STOP
        word = _word(match, unit, position, language=language, starts=first, counts=counts)
        if word is not None and not (found and found[-1].unit and found[-1].unit == _UNITS.get(match[0].lower())):
            found.append(word)
    return found


def _cjk_words(run: str, at: int) -> list[Word]:
    """Pairs of characters, without those that only join others; numbers are words of their own."""
    found = []
    for chunk in re.finditer(r"[^" + "".join(_CJK_STOP) + r"]+", run):
        if (digit := _NUMBER_OF.get(chunk[0][:1])) and len(chunk[0]) <= 3 and _UNITS.get(chunk[0][1:]):
            found.append(Word("number", digit, chunk[0], at + chunk.start(), _UNITS[chunk[0][1:]]))
        elif chunk[0] in _UNITS:
            continue
        elif len(chunk[0]) == 1:
            found.append(Word("word", chunk[0], chunk[0], at + chunk.start()))
        else:
            found += [
                Word("word", one + two, one + two, at + chunk.start() + place)
                for place, (one, two) in enumerate(pairwise(chunk[0]))
            ]
    return found


def _word(match: re.Match[str], unit: str, at: int, *, language: str, starts: bool, counts: bool) -> Word | None:
    text = match[0]
    kind = match.lastgroup
    if date := _date(match):
        return Word("date", date, text, at)
    if kind in ("code", "url", "path", "address", "telephone"):
        return Word("path", text.strip("`").rstrip("/").lower(), text, at)
    if kind == "time":
        return Word("number", _time(text), text, at)
    if kind == "number":
        symbol = _UNITS.get(text[0], "")
        return Word("number", _number(text.lstrip("$€£v")), text, at, unit or symbol)
    # "PRs" are several of a PR.
    lower = re.sub(r"['’]s?$|(?<=[A-Z]{2})s$", "", text.replace("’", "'")).lower()
    if lower in _NUMBER_OF or (lower in _ONE and unit) or (lower == "one" and counts):
        return Word("number", _NUMBER_OF.get(lower, "1"), text, at, unit)
    # "Blood group A" has no article.
    is_acronym = text.isupper() and (len(text) > 1 or (text == "A" and not starts)) and lower not in _EMPHASIS
    is_month = lower in _MONTH_OF and text[0].isupper() and not starts
    is_stop = lower in _STOP and not is_acronym and not is_month and not (language == "en" and lower in _ENGLISH_WORDS)
    if is_stop or lower.endswith("n't") or (lower in _UNITS and len(lower) == 1):
        return None
    key = stem(_without_accents(lower))
    return Word("name" if _is_name(text, lower, key, language=language, starts=starts) else "word", key, text, at)


def _without_accents(lower: str) -> str:
    """German changes the vowel in a plural, and people leave out accents."""
    return lower if lower.isascii() else "".join(c for c in normalize("NFD", lower) if not combining(c))


def _is_name(text: str, lower: str, key: str, *, language: str, starts: bool) -> bool:
    bare = re.sub(r"['’]s?$", "", text)
    if len(bare) > 1 and (bare.isupper() or any(char.isdigit() for char in bare) or re.search(r"[a-z][A-Z]", bare)):
        return True
    known = not (lower in _FIRST_NAMES and bare[0].isupper()) and (is_filler(key) or is_known(key))
    if not bare[0].isupper():
        return language == "en" and lower.isascii() and len(lower) > 2 and not known
    # German writes every noun with a capital.
    return not known if starts or language == "de" else not is_filler(key)


def _date(match: re.Match[str]) -> str:
    if match["iso"]:
        return match["iso"]
    if match["east"]:
        return "-".join(part.zfill(2) for part in re.findall(r"\d+", match["east"]))
    if match["dotted"]:
        day, month, year = match["dotted"].split(".")
        return f"{year}-{month:0>2}-{day:0>2}"
    day, month, year = (match[name] or match[f"{name}2"] for name in ("day", "month", "year"))
    return f"{year or '-'}-{_MONTH_OF[month.lower()]:02}-{day:0>2}" if month else ""


def _time(text: str) -> str:
    hours, _, minutes = re.sub(r"[^\d:h]", "", text.lower()).replace("h", ":").partition(":")
    late = 12 if re.search(r"p\.?m", text, re.IGNORECASE) and int(hours) < 12 else 0
    return f"{int(hours) + late:02}:{minutes or '00'}"


def _number(text: str) -> str:
    thousands = text[-1] in "kK"
    plain = text.rstrip("kKsndrth").replace("’", "'")
    if re.fullmatch(r"\d{1,3}(?:[,.']\d{3})+", plain) and not plain.startswith("0"):
        plain = re.sub("[,.']", "", plain)
    elif re.fullmatch(r"\d+,\d+", plain):
        plain = plain.replace(",", ".")
    return f"{plain}000" if thousands else plain


def is_filler(key: str) -> bool:
    return key in _FILLERS


@lru_cache(maxsize=4096)
def is_known(key: str) -> bool:
    """Whether a stem is an ordinary English word, as the table of related words has it."""
    return bool(related_words(key))


_MIN_PREFIX = 4
_MIN_INFIX = 5


@lru_cache(maxsize=20_000)
def same_word(one: str, other: str) -> bool:
    """Whether two stems are forms of one word, or words that mean the same."""
    if one == other:
        return True
    if _CJK.match(one):
        return False
    shared = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        shared += 1
    shorter = min(len(one), len(other))
    if shared >= _MIN_PREFIX and shared >= shorter - 2 and shared * 2 > max(len(one), len(other)) - 2:
        return True
    if shorter >= _MIN_INFIX and (one in other or other in one):
        return True
    return other in close_words(one) or one in close_words(other)


def is_among(word: Word, words: Iterable[Word], text: str) -> bool:
    """Whether a clause says a word; `text` is the clause, in which characters of unspaced scripts are looked for."""
    if word.kind == "word" and _CJK.match(word.key):
        return all(char in text for char in word.key)
    if word.kind == "name":
        return any(_same_name(word.key, other) for other in words)
    if word.kind == "word":
        return any(
            same_word(word.key, part)
            for other in words
            for part in ((other.key,) if other.kind != "path" else re.split(r"[\W_]+", other.key))
        )
    return any(word.key == other.key for other in words if other.kind == word.kind)


def _same_name(name: str, other: Word) -> bool:
    parts = (other.key,) if other.kind != "path" else tuple(re.split(r"[\W_]+", other.key))
    return any(
        name == part or (min(len(name), len(part)) >= 6 and (name.startswith(part[:6]) and part.startswith(name[:6])))
        for part in parts
    )
