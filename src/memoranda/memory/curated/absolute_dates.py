"""Makes the dates of an entry absolute: "yesterday" means something else on every day that it is read.

A phrase is replaced by the day, week, month or year that it meant when it was written. A phrase that is part of a
name, a path, code or a quotation stays, and so does one that tells of a habit or a preference
("copies yesterday's logs every night"). A duration ("finished in two weeks") and a window ("the last two weeks") are no
dates.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from memoranda.support.lazy_pattern import compile_later

Unit = Literal["day", "week", "month", "year"]


class _Language(NamedTuple):
    """How one language writes a day, a week, a month and a year: alone, and after a preposition."""

    day: str
    week: str
    month: str
    year: str
    prepositions: str
    """The words behind which the first word of the forms is left out."""
    habit: str
    past: str
    future: str


_FORMS: dict[str, _Language] = {
    "en": _Language(
        "on {}", "in the week of {}", "in {}", "in {}",
        r"since|until|till|by|from|before|after|on|of|for|to|through|in|during|starting|begin\w*|effective|as of",
        r"\b(?:every|each|always|hourly|daily|nightly|weekly|monthly|usually|often|whenever|never|any|i like|likes"
        r"|(?<!would )(?<!['’]d )prefers?|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b|['’]s \w+ makes\b"
        r"|^\W*when\b|^\W*(?:if|unless)\b(?!.*\b(?:tomorrow|next)\b)|\b(?:if|unless) (?:an?|any\w*)\b"
        r"|\bdefault(?:s to|(?: \w+){0,4} is) (?:the )?(?:yesterday|today|tomorrow|last|this|next)\b",
        r"\b(?:was|were|had|did|went|made|broke|chose|took|began|met|sent|left|got|said|told|came|ran|built|wrote|paid"
        r"|bought|lost|won|gave|\w{3,}ed)\b",
        r"\b(?:will|won['’]t|shall|going to|due|deadline|starts?|begins?|ends?|leaves?|launch(?:es)?|ships?|expires?"
        r"|fl(?:y|ies)|arrives?|scheduled|planned|returns?|must|needs? to|has to|have to|\w+['’]ll)\b",
    ),
    "de": _Language(
        "am {}", "in der Woche vom {}", "im Monat {}", "im Jahr {}",
        r"seit|bis|ab|von|vor|nach|am|zum|vom|dem|den|für",
        r"\b(?:jede[rnsm]?|immer(?! noch)|täglich|nächtlich|wöchentlich|monatlich|stets|nie|niemals|üblicherweise|oft"
        r"|meistens|bevorzug\w*|mag|gerne?|(?:mon|diens|mittwoch|donners|frei|sams|sonn)tags|mittwochs)\b"
        r"|^\W*(?:wenn|falls)\b",
        r"\b(?:war|waren|wurden?|hatten?|haben|hat|ist \w+ ge\w+|ging|kam|ge(?!schlossen|öffnet)\w{3,}(?:t|en))\b",
        r"\b(?:wird|werden|muss|müssen|soll|sollen|fällig|beginnt|endet|startet|läuft ab|Frist|geplant|kommt)\b",
    ),
    "fr": _Language(
        "le {}", "la semaine du {}", "en {}", "en {}", r"le|au|du|à",
        r"\b(?:chaque|toujours|quotidien\w*|tous les|toutes les|jamais|habituellement|hebdomadaire\w*|souvent|préfère"
        r"|aime|les? (?:lun|mar|mercre|jeu|vendre|same)dis?(?! (?:\d|de|prochain|dernier)))\b"
        r"|^\W*(?:quand|lorsqu|si\b|s['’]il)",
        r"\b(?:était|étaient|avait|avons|avez|ont|a \w+[éiu]\w*|est \w+[éi]e?s?|a été)\b",
        r"\b(?:sera|seront|va|vont|doit|doivent|aura|commence|finit|expire|prévue?|devra|\w+(?:era|eront|ira|iront))\b",
    ),
    "es": _Language(
        "el {}", "la semana del {}", "en {}", "en {}", r"el|del|al",
        r"\b(?:cada|siempre|diari\w+|semanal\w*|mensual\w*|tod[oa]s l[oa]s|nunca|normalmente|habitualmente|a menudo"
        r"|prefier[oe]|gustan?|los (?:lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bados|domingos))\b"
        r"|^\W*(?:cuando|si)\b",
        r"\b(?:era|eran|fue|fueron|había|hemos|ha|han|estaba|\w+(?:ó|amos|aron|ieron|imos))\b",
        r"\b(?:será|serán|va|van|vamos|debe|deben|empieza|termina|caduca|vence|previst[oa]|tendrá|\w+(?:ará|erá|irá))\b",
    ),
    "it": _Language(
        "il {}", "nella settimana del {}", "nel {}", "nel {}",
        r"il|la|del|della|dal|dalla|al|alla|nel|nella|a|di|da|per|entro|fino a|prima di|dopo",
        r"\b(?:ogni|sempre|tutt[ie] (?:i|gli|le)|quotidian\w*|giornalier\w*|settimanal\w*|mensil\w*|mai|di solito"
        r"|spesso|preferi\w+|piac\w+"
        r"|(?:il|di) (?:lune|marte|mercole|giove|vener)d[ìi](?! (?:\d|della|scorso|prossimo)))\b"
        r"|^\W*(?:quando|se)\b",
        r"\b(?:era|erano|aveva|abbiamo|hanno|h[ao] \w+[ts]o|è (?:stat[oa]|\w+[ts][oa])|sono \w+[ts][ieoa])\b",
        r"\b(?:sarà|saranno|va|vanno|deve|devono|inizia|finisce|scade|arriva|previst[oa]|\w+(?:[ei]rà|[ei]ranno))\b",
    ),
    "pt": _Language(
        "em {}", "na semana de {}", "em {}", "em {}",
        r"[oa]|d[oa]|n[oa]|ao|à|de|em|desde|até|para|antes de|a partir de",
        r"\b(?:cada|sempre|tod[oa]s? [oa]s?|diari\w+|diário\w*|semana(?:l|is)\w*|mensa\w+|nunca|normalmente"
        r"|muitas vezes|prefer[eo]|prefiro|gost[oa]"
        r"|às (?:segundas|terças|quartas|quintas|sextas)|aos (?:sábados|domingos))\b"
        r"|^\W*(?:quando|se (?:[oa]s?|uma?|alguém|você))\b",
        r"\b(?:era|eram|foi|foram|tinha|havia|estava|\w{2,}(?:ou|eu|iu|[aei]ram|[aei]mos))\b",
        r"\b(?:será|serão|vai|vão|vamos|deve|devem|começa|termina|vence|expira|previst[oa]|\w+[aei]rá)\b",
    ),
    "zh": _Language(
        "{}", "{}那一周", "{}", "{}年", "(?!)",
        "每|如果|总是|一直都|经常|通常|从不", "了|过", "将|会|要|截止|到期|必须",
    ),
    "other": _Language("{}", "{}", "{}", "{}", "(?!)", "(?!)", "(?!)", "(?!)"),
}  # fmt: skip

_NUMBERS = {
    "en": "a|an one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve",
    "de": "einem|einer|einen ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf",
    "fr": "une un|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze",
    "es": "una un|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce",
    "it": "una un|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici",
    "pt": "uma um|dois|três|quatro|cinco|seis|sete|oito|nove|dez|onze|doze",
}
_COUNT_OF: dict[str, dict[str, int]] = {
    language: {word: place for place, word in enumerate(re.sub(r"^\S+ ", "", words).split("|"), 1)}
    | dict.fromkeys(words.split(" ")[0].split("|"), 1)
    for language, words in _NUMBERS.items()
}
_COUNT_OF["en"] |= {"a couple of": 2, "couple of": 2}
_COUNT_OF["pt"] |= {"duas": 2}
_COUNT_OF["zh"] = {sign: place for place, sign in enumerate("一二三四五六七八九十", 1)} | {"两": 2, "兩": 2}
_WEEKDAYS = {
    "other": "",
    "en": "monday tuesday wednesday thursday friday saturday sunday",
    "de": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "pt": "segunda terça quarta quinta sexta sábado domingo",
    "zh": "一 二 三 四 五 六 日",
}
_DAY_OF: dict[str, dict[str, int]] = {
    language: {name: place for place, name in enumerate(names.split())} for language, names in _WEEKDAYS.items()
}
_DAY_OF["zh"]["天"] = 6
_DAY_OF["de"]["sonnabend"] = 5
_DAY_OF["es"] |= {"miercoles": 2, "sabado": 5}
_DAY_OF["it"] |= {name.replace("ì", "i"): day for name, day in _DAY_OF["it"].items()}
_DAY_OF["pt"] |= {f"{name}-feira": day for name, day in _DAY_OF["pt"].items()} | {"sabado": 5}
_UNIT_WORDS: dict[Unit, str] = {
    "day": "day days tag tage tagen jour jours día días dia dias giorno giorni 天 日",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane 周 週 星期 礼拜",
    "month": "month months monat monate monats monaten mois mes meses mês mese mesi 月",
    "year": "year years jahr jahre jahres jahren an ans année années año años anno anni ano anos 年",
}
_UNITS: dict[str, Unit] = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}


class _When(NamedTuple):
    unit: Unit
    start: date
    """The day; the Monday of the week; a day of the month or year."""
    part: str = ""
    """The words that name a part of the day, written behind the date."""


Resolve = Callable[[re.Match[str], date], _When | None]


class _Rule(NamedTuple):
    language: str
    pattern: re.Pattern[str]
    resolve: Resolve
    needs_tense: bool = False
    may_be_duration: bool = False


def _shift(start: date, unit: Unit, count: int) -> _When:
    """So many units later, or earlier. Months and years keep the day, where the month has it."""
    if unit == "day":
        return _When("day", start + timedelta(days=count))
    if unit == "week":
        return _When("day", start + timedelta(weeks=count))
    months = start.year * 12 + start.month - 1 + count * (12 if unit == "year" else 1)
    moved = date(months // 12, months % 12 + 1, min(start.day, 28))
    return _When(unit, moved)


def _period(start: date, unit: Unit, offset: int) -> _When:
    """The calendar week, month or year that is `offset` after the present one."""
    if unit == "week":
        return _When("week", start - timedelta(days=start.weekday()) + timedelta(weeks=offset))
    return _shift(start, unit, offset)


def _weekday(start: date, day: int, offset: int) -> _When:
    """The weekday last before the day (-1), first after it (1), or of the same week (0)."""
    distance = (day - start.weekday()) % 7
    if offset > 0:
        return _When("day", start + timedelta(days=distance or 7))
    if offset < 0:
        return _When("day", start + timedelta(days=distance - 7))
    return _When("day", start + timedelta(days=day - start.weekday()))


def _days(offset: int, part: str = "") -> Resolve:
    return lambda match, start: _When("day", start + timedelta(days=offset), part)


def _weekend(offset: int) -> Resolve:
    """The Saturday of this, the last or the next week."""
    return lambda match, start: _When(
        "day", start - timedelta(days=start.weekday()) + timedelta(weeks=offset, days=5), " (weekend)"
    )


def _counted(language: str, sign: int) -> Resolve:
    def resolve(match: re.Match[str], start: date) -> _When | None:
        written = match["count"].lower()
        count = int(written) if written.isdecimal() else _COUNT_OF[language].get(written, 0)
        if "hour" in match.groupdict() and match["hour"]:
            return _When("day", start)
        return _shift(start, _UNITS[match["unit"].lower()], sign * count) if 0 < count < 1000 else None

    return resolve


def _named(language: str, offset: int) -> Resolve:
    """Of "last week", "next Friday": the calendar unit, or the weekday."""

    def resolve(match: re.Match[str], start: date) -> _When | None:
        word = match["unit"].lower()
        if word in _DAY_OF[language]:
            return _weekday(start, _DAY_OF[language][word], offset)
        return _period(start, _UNITS[word], offset)

    return resolve


def _weekday_of_week(language: str, offset: int) -> Resolve:
    def resolve(match: re.Match[str], start: date) -> _When | None:
        monday = start - timedelta(days=start.weekday())
        return _When("day", monday + timedelta(weeks=offset, days=_DAY_OF[language][match["unit"].lower()]))

    return resolve


def _rule(
    language: str, pattern: str, resolve: Resolve, *, needs_tense: bool = False, may_be_duration: bool = False
) -> _Rule:
    count = r"(?P<count>\d{1,3}|" + "|".join(_COUNT_OF.get(language, {})) + ")"
    days = r"(?P<unit>" + "|".join(_DAY_OF.get(language, {})) + ")"
    edges = pattern if language == "zh" else rf"(?<!\w)(?:{pattern})(?!\w)"
    edges = edges.replace("<count>", count).replace("<days>", days)
    return _Rule(language, compile_later(edges, re.IGNORECASE), resolve, needs_tense, may_be_duration)


def _spans(language: str, pattern: str, offset: int) -> _Rule:
    return _rule(language, pattern, _named(language, offset))


_EN = "(?P<unit>week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_DE = "(?P<unit>woche|monats?|jahr(?:es)?|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)"
_FR_DAYS = "(?P<unit>lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
_FR = f"{_FR_DAYS[:-1]}|semaine|mois|année|an)"
_ES_DAYS = "(?P<unit>lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bado|domingo)"
_ES = f"{_ES_DAYS[:-1]}|semana|mes|año)"
_IT_DAYS = "(?P<unit>luned[ìi]|marted[ìi]|mercoled[ìi]|gioved[ìi]|venerd[ìi]|sabato|domenica)"
_IT = f"{_IT_DAYS[:-1]}|settimana|mese|anno)"
_PT_DAYS = "(?P<unit>(?:segunda|terça|quarta|quinta|sexta)(?:-feira)?|s[áa]bado|domingo)"
_PT = f"{_PT_DAYS[:-1]}|semana|m[êe]s|ano)"

# The longer phrases come first: no part of the text is read twice.
_RULES: tuple[_Rule, ...] = (
    _rule("en", "(?:on )?<days> (?:of )?last week", _weekday_of_week("en", -1)),
    _rule("en", "(?:on )?<days> (?:of )?next week", _weekday_of_week("en", 1)),
    _rule("en", "(?:the )?day before yesterday", _days(-2)),
    _rule("en", "(?:the )?day after tomorrow", _days(2)),
    _rule("en", "<count> (?P<unit>day|week|month|year)s? ago", _counted("en", -1)),
    _rule("en", r"(?:<count> |half an )(?P<hour>hour|minute)s? ago", _days(0)),
    _rule("en", "<count> (?P<unit>day|week|month|year)s? from (?:now|today)", _counted("en", 1)),
    _rule("en", "in <count> (?P<unit>day|week|month|year)s?(?: from now)?", _counted("en", 1), may_be_duration=True),
    _rule("en", "last night", _days(-1, " (night)")),
    _rule("en", "yesterday (?P<part>morning|afternoon|evening|night)", _days(-1, " ({part})")),
    _rule("en", "tomorrow (?P<part>morning|afternoon|evening|night)", _days(1, " ({part})")),
    _rule("en", "this (?P<part>morning|afternoon|evening)", _days(0, " ({part})")),
    _rule("en", "tonight", _days(0, " (evening)")),
    _spans("en", rf"(?:this past|last) {_EN}(?! (?:of|in) )", -1),
    _spans("en", rf"(?:this coming|next|coming) {_EN}(?! (?:of|in) )", 1),
    _spans("en", rf"this {_EN}", 0),
    _rule("en", "last weekend", _weekend(-1)),
    _rule("en", "this weekend", _weekend(0)),
    _rule("en", "next weekend", _weekend(1)),
    _rule("en", "yesterday", _days(-1)),
    _rule("en", "tomorrow", _days(1)),
    _rule("en", "today", _days(0)),
    _rule("en", "(?<=since )(?:last )?<days>", _named("en", -1)),
    _rule("en", "(?:(?<=by )|(?<=until )|(?<=till )|(?<=before )|(?<=due ))<days>", _named("en", 1)),
    _rule("en", "(?:(?<=^back on )|(?<=, back on )|(?<=is back on )|(?<=are back on )"
          "|(?<!was coming back on )(?<!were coming back on )(?<=coming back on ))<days>", _named("en", 1)),
    _rule("en", "on <days>(?! (?:of|in) )", _named("en", 0), needs_tense=True),
    _rule("de", "(?:am )?<days> (?:der )?(?:letzte|vorige|vergangene)[nr] woche", _weekday_of_week("de", -1)),
    _rule("de", "(?:am )?<days> (?:der )?(?:nächste|kommende)[nr] woche", _weekday_of_week("de", 1)),
    _rule("de", "vorgestern", _days(-2)),
    _rule("de", "übermorgen", _days(2)),
    _rule("de", "vor <count> (?P<unit>tag|woche|monat|jahr)(?:en|n|e)?", _counted("de", -1)),
    _rule("de", "in <count> (?P<unit>tag|woche|monat|jahr)(?:en|n|e)?", _counted("de", 1), may_be_duration=True),
    _rule("de", "gestern (?P<part>morgen|früh|vormittag|mittag|nachmittag|abend|nacht)", _days(-1, " ({part})")),
    _rule("de", "heute (?P<part>morgen|früh|vormittag|mittag|nachmittag|abend|nacht)", _days(0, " ({part})")),
    _rule("de", "morgen (?P<part>früh|vormittag|mittag|nachmittag|abend|nacht)", _days(1, " ({part})")),
    _spans("de", rf"(?:letzte|vorige|vergangene)[nsrm]? {_DE}", -1),
    _spans("de", rf"(?:nächste|kommende)[nsrm]? {_DE}", 1),
    _spans("de", rf"diese[nsrm]? {_DE}", 0),
    _rule("de", "(?:letztes|vergangenes) wochenende", _weekend(-1)),
    _rule("de", "(?:dieses|kommendes) wochenende", _weekend(0)),
    _rule("de", "nächstes wochenende", _weekend(1)),
    _rule("de", "gestern", _days(-1)),
    _rule("de", "heute", _days(0)),
    _rule("de", r"(?-i:morgen)|(?<!\w )(?-i:Morgen)(?=[, ])", _days(1)),
    _rule("de", "(?<=seit )<days>", _named("de", -1)),
    _rule("de", "(?:(?<=bis )|(?<=bis zum )|(?<=ab )|(?<=, zurück am ))<days>", _named("de", 1)),
    _rule("de", "am <days>", _named("de", 0), needs_tense=True),
    _rule("fr", "(?:le )?<days> de la semaine dernière", _weekday_of_week("fr", -1)),
    _rule("fr", "(?:le )?<days> de la semaine prochaine", _weekday_of_week("fr", 1)),
    _rule("fr", "avant-hier", _days(-2)),
    _rule("fr", "après-demain", _days(2)),
    _rule("fr", "il y a <count> (?P<unit>jours?|semaines?|mois|ans?|années?)", _counted("fr", -1)),
    _rule("fr", "d(?:ans|['’]ici) <count> (?P<unit>jours?|semaines?|mois|ans?|années?)", _counted("fr", 1)),
    _rule("fr", "hier (?P<part>matin|après-midi|soir)", _days(-1, " ({part})")),
    _rule("fr", "demain (?P<part>matin|après-midi|soir)", _days(1, " ({part})")),
    _rule("fr", "ce (?P<part>matin|soir)|cet (?P<noon>après-midi)", _days(0)),
    _spans("fr", rf"(?:l['’]|la |le )?{_FR} derni(?:er|ère)", -1),
    _spans("fr", rf"(?:l['’]|la |le )?{_FR} prochaine?", 1),
    _spans("fr", "cet?t?e? (?P<unit>semaine|année|mois)(?:-ci)?", 0),
    _rule("fr", "(?:le )?week-end dernier", _weekend(-1)),
    _rule("fr", "ce week-end", _weekend(0)),
    _rule("fr", "(?:le )?week-end prochain", _weekend(1)),
    _rule("fr", "hier", _days(-1)),
    _rule("fr", "demain", _days(1)),
    _rule("fr", "aujourd['’]hui", _days(0)),
    _rule("fr", f"(?<=depuis ){_FR_DAYS}", _named("fr", -1)),
    _rule("fr", f"(?:(?<=jusqu['’]à )|(?<=avant )|(?<=d['’]ici )|(?<=à partir de )){_FR_DAYS}", _named("fr", 1)),
    _rule("es", "(?:el )?<days> de la semana pasada", _weekday_of_week("es", -1)),
    _rule("es", "(?:el )?<days> de la (?:semana que viene|próxima semana)", _weekday_of_week("es", 1)),
    _rule("es", "anteayer|antier|antes de ayer", _days(-2)),
    _rule("es", "pasado mañana", _days(2)),
    _rule("es", "hace <count> (?P<unit>d[íi]as?|semanas?|mes(?:es)?|años?)", _counted("es", -1)),
    _rule("es", "dentro de <count> (?P<unit>d[íi]as?|semanas?|mes(?:es)?|años?)", _counted("es", 1)),
    _rule("es", "en <count> (?P<unit>d[íi]as?|semanas?|mes(?:es)?|años?)", _counted("es", 1), may_be_duration=True),
    _rule("es", "anoche", _days(-1, " (noche)")),
    _rule("es", "esta (?P<part>mañana|tarde|noche)", _days(0, " ({part})")),
    _rule("es", "ayer por la (?P<part>mañana|tarde|noche)", _days(-1, " ({part})")),
    _rule("es", "mañana por la (?P<part>mañana|tarde|noche)", _days(1, " ({part})")),
    _spans("es", rf"(?<!fin de )(?:la |el )?{_ES} pasad[oa]", -1),
    _spans("es", rf"(?:la |el )pasad[oa] {_ES}", -1),
    _spans("es", rf"(?<!fin de )(?:la |el )?{_ES} (?:próxim[oa]|que viene|siguiente)", 1),
    _spans("es", rf"(?:la |el )?próxim[oa] {_ES}", 1),
    _spans("es", rf"est[ea] {_ES}", 0),
    _rule("es", "(?:el )?fin de semana pasado", _weekend(-1)),
    _rule("es", "este fin de semana", _weekend(0)),
    _rule("es", "(?:el )?(?:próximo fin de semana|fin de semana que viene)", _weekend(1)),
    _rule("es", "ayer", _days(-1)),
    _rule("es", "hoy(?! (?:en )?d[íi]a)", _days(0)),
    _rule("es", "(?<!la )(?<!las )(?<!cada )mañana", _days(1)),
    _rule("es", f"(?<=desde )el {_ES_DAYS}", _named("es", -1)),
    _rule("es", f"(?:(?<=hasta )|(?<=antes d)|(?<=a partir d))(?:e)?(?:el|l) {_ES_DAYS}", _named("es", 1)),
    _rule("it", "(?:il )?<days> della (?:settimana scorsa|scorsa settimana)", _weekday_of_week("it", -1)),
    _rule("it", "(?:il )?<days> della (?:settimana prossima|prossima settimana)", _weekday_of_week("it", 1)),
    _rule("it", "l['’]altro ?ieri|ieri l['’]altro|avantieri|altroieri", _days(-2)),
    _rule("it", "dopodomani", _days(2)),
    _rule("it", "<count> (?P<unit>giorn[oi]|settiman[ae]|mes[ei]|ann[oi]) fa", _counted("it", -1)),
    _rule("it", "(?:[ft]ra|entro) <count> (?P<unit>giorn[oi]|settiman[ae]|mes[ei]|ann[oi])", _counted("it", 1)),
    _rule("it", "ieri (?P<part>mattina|pomeriggio|sera|notte)", _days(-1, " ({part})")),
    _rule("it", "domani (?P<part>mattina|pomeriggio|sera|notte)", _days(1, " ({part})")),
    _rule("it", "(?:sta|questa |questo )(?P<part>mattina|pomeriggio|sera|notte)", _days(0, " ({part})")),
    _rule("it", "(?:lo |il )?(?:scorso (?:fine settimana|weekend)|(?:fine settimana|weekend) scorso)", _weekend(-1)),
    _rule("it", "questo (?:fine settimana|weekend)", _weekend(0)),
    _rule("it", "(?:il )?(?:prossimo (?:fine settimana|weekend)|(?:fine settimana|weekend) prossimo)", _weekend(1)),
    _spans("it", rf"(?P<with_article>[dn][ae]l)l['’]{_IT} (?:scors|passat)[oa]", -1),
    _spans("it", rf"(?:l['’]|la |il )?{_IT} (?:scors|passat)[oa]", -1),
    _spans("it", rf"(?:la |lo )?scors[oa] {_IT}", -1),
    _spans("it", rf"(?:l['’]|la |il )?{_IT} (?:prossim[oa]|che viene)", 1),
    _spans("it", rf"(?:la |il )?prossim[oa] {_IT}", 1),
    _spans("it", rf"quest(?:[oa] |['’]){_IT}", 0),
    _rule("it", "ieri", _days(-1)),
    _rule("it", "(?<!giorno d['’])oggi", _days(0)),
    _rule("it", "domani", _days(1)),
    _rule("it", f"(?:(?<=da )|(?<=dal )|(?<=dalla )){_IT_DAYS}", _named("it", -1)),
    _rule("it", f"(?:(?<=entro )|(?<=fino a )|(?<=prima di )|(?<=a partire da )){_IT_DAYS}", _named("it", 1)),
    _rule("pt", "(?:n?[oa] )?<days> da semana passada", _weekday_of_week("pt", -1)),
    _rule("pt", "(?:n?[oa] )?<days> da (?:semana que vem|próxima semana)", _weekday_of_week("pt", 1)),
    _rule("pt", "anteontem|antes de ontem", _days(-2)),
    _rule("pt", "depois de amanhã", _days(2)),
    _rule("pt", "há <count> (?P<unit>dias?|semanas?|m[êe]s(?:es)?|anos?)(?: atrás)?", _counted("pt", -1)),
    _rule("pt", "<count> (?P<unit>dias?|semanas?|m[êe]s(?:es)?|anos?) atrás", _counted("pt", -1)),
    _rule("pt", "(?:daqui a|dentro de) <count> (?P<unit>dias?|semanas?|m[êe]s(?:es)?|anos?)", _counted("pt", 1)),
    _rule("pt", "em <count> (?P<unit>dias?|semanas?|m[êe]s(?:es)?|anos?)", _counted("pt", 1), may_be_duration=True),
    _rule("pt", "ontem (?:de|à|a) (?P<part>manhã|tarde|noite)", _days(-1, " ({part})")),
    _rule("pt", "amanhã (?:de|à|a) (?P<part>manhã|tarde|noite)", _days(1, " ({part})")),
    _rule("pt", "(?:hoje (?:de|à|a)|n?esta) (?P<part>manhã|tarde|noite)", _days(0, " ({part})")),
    _rule("pt", "(?:n?o )?fim de semana passado", _weekend(-1)),
    _rule("pt", "n?este fim de semana", _weekend(0)),
    _rule("pt", "(?:n?o )?(?:próximo fim de semana|fim de semana que vem)", _weekend(1)),
    _spans("pt", rf"(?:n?[oa] )?{_PT} passad[oa]", -1),
    _spans("pt", rf"(?:n?[oa] )?{_PT} (?:que vem|seguinte)", 1),
    _spans("pt", rf"(?:n?[oa] )?próxim[oa] {_PT}", 1),
    _spans("pt", rf"n?est[ea] {_PT}", 0),
    _rule("pt", "ontem", _days(-1)),
    _rule("pt", "hoje(?! em dia)", _days(0)),
    _rule("pt", "amanhã", _days(1)),
    _rule("pt", f"(?<=desde )(?:[oa] )?{_PT_DAYS}", _named("pt", -1)),
    _rule("pt", f"(?:(?<=até )|(?<=antes d)|(?<=a partir d))(?:[oa] )?{_PT_DAYS}", _named("pt", 1)),
    _rule("zh", "大前天", _days(-3)),
    _rule("zh", "大后天|大後天", _days(3)),
    _rule("zh", "前天", _days(-2)),
    _rule("zh", "(?:后天|後天)(?!性|的努力)", _days(2)),
    _rule("zh", "昨天|昨日|昨晚", _days(-1)),
    _rule("zh", "今天|今日(?!头条|頭條)|今晚|今早", _days(0)),
    _rule("zh", "明天|明日|明早|明晚", _days(1)),
    _rule("zh", "(?:<count>)(?:个|個)?(?P<unit>天|日|周|週|星期|礼拜|月|年)(?:之|以)?前", _counted("zh", -1)),
    _rule("zh", "(?:<count>)(?:个|個)?(?P<unit>天|日|周|週|星期|礼拜|月|年)(?:之|以)?[后後]", _counted("zh", 1)),
    _rule("zh", "上(?:个|個)?(?:周|週|星期|礼拜)(?P<unit>[一二三四五六日天])", _weekday_of_week("zh", -1)),
    _rule("zh", "下(?:个|個)?(?:周|週|星期|礼拜)(?P<unit>[一二三四五六日天])", _weekday_of_week("zh", 1)),
    _rule("zh", "(?:这|這|本)(?:个|個)?(?:周|週|星期|礼拜)(?P<unit>[一二三四五六日天])", _weekday_of_week("zh", 0)),
    _rule("zh", "上(?:个|個)?周末", _weekend(-1)),
    _rule("zh", "(?:这|這|本)(?:个|個)?周末", _weekend(0)),
    _rule("zh", "下(?:个|個)?周末", _weekend(1)),
    _spans("zh", "上(?:个|個)?(?P<unit>周|週|星期|礼拜|月)", -1),
    _spans("zh", "下(?:个|個)?(?P<unit>周|週|星期|礼拜|月)", 1),
    _spans("zh", "(?:这|這|本)(?:个|個)?(?P<unit>周|週|星期|礼拜|月)", 0),
    _spans("zh", "去(?P<unit>年)", -1),
    _spans("zh", "明(?P<unit>年)", 1),
    _spans("zh", "今(?P<unit>年)", 0),
    _rule("other", "gisteren|вчера|昨日|어제", _days(-1)),
    _rule("other", "vandaag|сегодня|오늘", _days(0)),
    _rule("other", "завтра|내일", _days(1)),
)  # fmt: skip

# Every phrase of a language contains one of these. Most entries contain none, and need no expression of the language.
_CUES = {
    "en": "day week month year hour minute night morning afternoon evening tomorrow",
    "de": "tag woche monat jahr gestern heute morgen mittwoch sonnabend",
    "fr": "hier demain jour semaine mois année matin midi soir week-end lundi mardi mercredi jeudi vendredi samedi "
    "dimanche derni prochain il_y_a dans_ d'ici d’ici",
    "es": "ayer antier anoche hoy día dia semana mes año mañana tarde noche lunes martes miércoles miercoles jueves "
    "viernes sábado sabado domingo",
    "zh": "天 日 昨 今 明 周 週 星期 礼拜 月 年",
    "it": "ieri oggi domani giorn settiman mes ann mattin pomeriggio sera notte weekend luned marted mercoled gioved "
    "venerd sabato domenica",
    "pt": "ontem hoje amanhã dia semana mês mes ano manhã tarde noite segunda terça quarta quinta sexta sábado sabado "
    "domingo",
    "other": "gisteren вчера 昨日 어제 vandaag сегодня 오늘 завтра 내일",
}

# A word with such a character is tried from its start or from the end of a quotation: tried from each of its letters,
# a long word would take the square of its length.
_PROTECTED = compile_later(
    r"```.*?(?:```|\Z)|``[^\n]+?``|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|‹[^›\n]*›|「[^」\n]*」|『[^』\n]*』"
    r"|《[^》\n]*》|‘[^’\n]*’|(?<!\w)'[^'\n]+'(?!\w)"
    r"|(?<![^\s`\"“”»›」』》’'])(?:\S*[/\\_=<>{}$@#~]\S*|\S*[\w)]\.\w\S*)|(?<!\w)--?\w\S*",
    re.DOTALL,
)
_NAMED_THING = (
    "script|director(?:y|ies)|folder|branch|table|column|file|view|command|function|method|app|widget|button|channel|tag"
    "|label|variable|field|flag|option|module|class|package|repo|repository|playlist|project|tool|bucket|queue|alias"
    "|newspaper|magazine|enum|keyword|filter|preset|theme|word|term|string|skript|verzeichnis|ordner|dossier|fichier|carpeta|archivo"
    "|rama|tabla|temas?|cartella|tabella|progetto|pasta|arquivo|ficheiro|tabela|projeto"
)
# An option of a command has a value of its own: "git log --since yesterday".
_BEFORE_NAME = compile_later(
    r"(?:\b(?:called|named|titled|entitled|namens|heißt|hieß|genannt|appelée?|nommée?|intitulée?|llamad[oa]|titulad[oa]"
    r"|chiamat[oa]|intitolat[oa]|chamad[oa])|名为|叫做?|名叫|(?<!\S)--?[a-z][\w-]*)[\s:]*$",
    re.IGNORECASE,
)
# "The branch next" is a name; "to the new tool next month" names a month.
_BEFORE_ONE_WORD = compile_later(rf"\b(?:{_NAMED_THING})[\s:]*$", re.IGNORECASE)
_AFTER_NAME = compile_later(
    rf"(?:[\s-]+(?:{_NAMED_THING})\b|\s*=|[-/\\(_=]\w|\(\)|[-/\\]|脚本|目录|文件夹|分支)", re.IGNORECASE
)
_WORK_OF_ART = compile_later(
    r"\b(?:song|film|movie|album|novel|book|band|track|episode|series|poem|lied|roman|serie|buch|chanson|livre|série"
    r"|canción|película|libro|disco|canzone|canção|música|livro|filme|musical|podcast)\b[^.!?]*$|(?:歌|电影|歌曲|专辑|小说)[^。！？]*$",
    re.IGNORECASE,
)
_BY_AUTHOR = compile_later(r"\s+(?:by|von|de|di) (?:the )?[A-Z]")
_ALREADY_DATED = compile_later(r"[\s,]*[(（]?\s*(?:\d{4}-\d\d|\d{1,2}[./]\d{1,2}[./]?|\d{4}年|\d{1,2}月|the \d)")
_IS_DONE = compile_later(
    r"\b(?:(?:is|are)(?:n['’]t)?|gets?|will be|it['’]s|we['’]re)(?: \w+)? (?:\w+ed|sent|made|built|kept|written|paid)\b"
    r"|^\W*closed on\b|\b(?:wird|werden) .{0,80}?\bge\w+(?:t|en)\b"
)
_EARLIER = compile_later(r"yesterday|last|gestern|letzt|vorig", re.IGNORECASE)
_POSSESSIVE = compile_later(r"['’]s(?= \w)")
_ALWAYS = compile_later(
    r"\b(?:always|never|usually|often|immer(?! noch)|nie|meistens|oft|toujours|jamais|souvent|siempre|nunca|a menudo"
    r"|sempre|mai|spesso|di solito|(?:every|each|jede[nrs]?|chaque|cada|ogni) (?:morning|evening|night|week|month"
    r"|\w*day|morgen|abend|woche|\w*tag|matin|soir|jour|semaine|\w+di|mañana|noche|día|semana|manhã|noite|dia|mattina|sera"
    r"|giorno|settimana))\b",
    re.IGNORECASE,
)
_RELATIVE = (
    r"(?:yesterday|today|tomorrow|(?:this|last|next) (?:week|month|year)|gestern|heute|morgen"
    r"|(?:diese|letzte|nächste)[rnsm]? (?:woche|monat|jahr)|hier|aujourd['’]hui|demain|ayer|hoy|mañana|ieri|oggi|domani"
    r"|ontem|hoje|amanhã|昨天|今天|明天|上周|本周|这周|下周)"
)
_JOINED = compile_later(
    rf"{_RELATIVE}\s*(?:\b(?:or|with|than|vs|versus|oder|mit|als|ou|avec|que|[ou]|con|com)\b|或者?)\s*{_RELATIVE}",
    re.IGNORECASE,
)
# "Orders placed today arrive tomorrow", but not "the testers asked today to meet tomorrow".
_CHAINED = compile_later(
    rf"^\W*(?:if|unless) (?:(?:an?|any\w*|someone|you)\b|.*{_RELATIVE}.*{_RELATIVE})"
    r"|^\W*(?:(?:the|any|all) )?(?:\w+s (?:\w+ed|made|sent|built|written)|(?:what(?:ever)?|anything)\b[^,]*?)"
    rf" {_RELATIVE} (?!(?:to|that|and|but|because|about|for|with|from|on|in|at|after|until)\b)\w.*{_RELATIVE}",
    re.IGNORECASE,
)
_WHAT = compile_later(r"(?<=\w )(?:what|whatever)\b.*$", re.IGNORECASE)
_THING_DOES = compile_later(r"^\W*(?:(?:the|an?|our|this|user)\b[^,]* [a-z]{3,}s|\w+s run on) $", re.IGNORECASE)
_DESCRIBES = compile_later(
    r"(?P<relative>\b(?:that|which|who) )?(?<!\bthe )(?<!\bour )"
    r"(?:(?P<says>\b(?:shows|displays|zeigt|montre|affiche|muestra|mostra)\b|显示)|\b(?:compares?|covers|lists|scrapes"
    r"|summari[sz]es|deletes|removes|rotates|copies|archives|vergleicht|löscht|umfasst|kopiert|supprime|couvre|compara"
    r"|borra|elimina|cubre|confronta|cancella|apaga)\b|对比|比较|删除)(?! that\b)"
    r"(?P<rest>(?:(?!\b(?:but|because|and (?:it|was|has|the|we|\w+ed))\b)[^,;:，])*)$",
    re.IGNORECASE,
)
_LATER = compile_later(r"tomorrow|next|morgen|nächst|demain|mañana|próxim|domani|prossim|amanhã|明|下", re.IGNORECASE)
_OBJECT = compile_later(r"^\W*(?:the )?$|\b(?:for|of|from|due|with|für|von|mit|and|und) $")
_WINDOW = compile_later(
    r"\b(?:more than|older than|at least|less than|within|over|every|each|älter als|mehr als|plus de|más de|più di"
    r"|mais de)\s$",
    re.IGNORECASE,
)
# "Passwords expire in 90 days" is always so; "the contracts expire in 90 days" is not.
_LASTS_ALWAYS = compile_later(
    r"(?:^|[:,] )\W*(?!(?:the|these|those|both|some|two|three|four|five|my|our|your|his|her|its|their)\b|\d)"
    r"(?:(?!and\b)\w[\w-]* ){0,2}\w{2,}[^\Ws]s (?:are (?!\w+ing\b)\w+|expire|end|close|renew|must|have to|need to|get) "
)
_FROM = compile_later(r"\b(?:from|between|vo[nm]) (.{1,40}?) (?:to|until|till|through|and|bis) $", re.IGNORECASE)
_NEXT = compile_later(r"(?:(?:next|coming|nächste[nr]?|kommende[nr]?) )?(\w+)", re.IGNORECASE)
_SENTENCE = compile_later(r"[.!?;\n](?:\s|$)|[。！？；]")
_STARTS_SENTENCE = compile_later(r"(?:^|[.!?:;\n•*-]\s*|^\s*[-*]\s*)$")
_ANCHOR = compile_later(
    r"(?:\b(?:since|as of|starting|beginning|effective|until|till|by|seit|ab|bis|depuis|dès|à partir (?:de|du)"
    r"|jusqu['’]à|desde|a partir de|hasta|da|dal|dalla|fino a|até)|从|自|自从|直到|到)\s*$",
    re.IGNORECASE,
)
_GERMAN = compile_later(
    r"\b(?:der|die|das|ist|und|wir|nicht|ein|eine|sind|liegt|steht|gibt|es|im|den|hat|wird|mit|von)\b", re.IGNORECASE
)
_FRENCH = compile_later(
    r"\b(?:(?i:le|la|les|une?|nous|on|je|ils?|elles?|vous|depuis)|du|est|ont|avec|a|à|[cdjln]['’]\w+|[a-zà-ÿ]{2,}ée?s?)\b"
)
_PORTUGUESE = compile_later(r"[ãõ]|\b(?:na|em|do|uma|um|os|é|foi)\b", re.IGNORECASE)
_MORNING = compile_later(r"\b(?:guten|am|jeden|diesen|de la|por la|cada|la|una)\s$", re.IGNORECASE)


def absolute_dates(text: str, written: date | datetime | float | str) -> str:
    """The text with the dates it meant when it was `written`: a date, a time in seconds, or either as ISO 8601."""
    start = _day_of(written)
    lowered = text.lower()
    languages = [name for name, cues in _CUES.items() if any(cue.replace("_", " ") in lowered for cue in cues.split())]
    protected = [match.span() for match in _PROTECTED.finditer(text)]
    found: list[tuple[int, int, str]] = []
    for rule in (each for each in _RULES if each.language in languages):
        for match in rule.pattern.finditer(text):
            taken = protected + [(begin, end) for begin, end, _ in found]
            if any(begin < match.end() and match.start() < end for begin, end in taken):
                continue
            if (replacement := _replacement(rule, match, text, start)) is not None:
                found.append(replacement)
    for begin, end, new in sorted(found, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def _day_of(written: date | datetime | float | str) -> date:
    if isinstance(written, str):
        written = datetime.fromisoformat(written)
    if isinstance(written, datetime):
        # The journal has UTC, and "yesterday" was said on the day of the person.
        return (written if written.tzinfo is None else written.astimezone()).date()
    return written if isinstance(written, date) else date.fromtimestamp(written)


def _replacement(rule: _Rule, match: re.Match[str], text: str, start: date) -> tuple[int, int, str] | None:
    before, after = text[: match.start()], text[match.end() :]
    ends = [end.end() for end in _SENTENCE.finditer(before)]
    lead = before[ends[-1] if ends else 0 :]
    end = _SENTENCE.search(after)
    sentence = lead + match[0] + (after[: end.start()] if end else after)
    if _is_name(rule, match, text, lead, after) or _is_habit(rule, match, lead, after, sentence):
        return None
    when = _resolve(rule, match, lead, sentence, start)
    if when is None:
        return None
    part = when.part.format(**{name: value or "" for name, value in match.groupdict().items()})
    stop, form = match.end(), _form(rule.language, when)
    preposition = re.search(rf"(?<!\w)(?:{_FORMS[rule.language].prepositions})\s+$", lead, re.IGNORECASE)
    if preposition and not match[0].lower().startswith(("on ", "in ", "am ", "vor ")):
        form = form.partition(" ")[2]
    if match.groupdict().get("with_article"):
        form = f"{match['with_article']} {form.partition(' ')[2]}"
    possessive = _POSSESSIVE.match(after) if rule.language == "en" else None
    if possessive:
        stop += possessive.end()
        form = f"the {form.split()[-1]}" if not re.search(r"\b(?:the|this|our|my)\s$", lead) else form.split()[-1]
    if match[0][0].isupper() and _STARTS_SENTENCE.search(before):
        form = form[:1].upper() + form[1:]
    return match.start(), stop, form + part


def _form(language: str, when: _When) -> str:
    forms = _FORMS[language]
    if when.unit == "day":
        return forms.day.format(when.start.isoformat())
    if when.unit == "week":
        return forms.week.format(when.start.isoformat())
    if when.unit == "month":
        return forms.month.format(f"{when.start:%Y-%m}")
    return forms.year.format(when.start.year)


def _resolve(rule: _Rule, match: re.Match[str], lead: str, sentence: str, start: date) -> _When | None:
    language = _FORMS[rule.language]
    # What "is closed on Sunday" is so on every Sunday.
    told = _IS_DONE.sub("", sentence.lower()) if rule.needs_tense else sentence
    past, future = re.search(language.past, told, re.IGNORECASE), re.search(language.future, sentence, re.IGNORECASE)
    if rule.may_be_duration and ((past and not future) or _LASTS_ALWAYS.search(lead.lower())):
        return None
    if rule.needs_tense:
        if not past and not future:
            return None
        return _weekday(start, _DAY_OF[rule.language][match["unit"].lower()], 1 if future else -1)
    when, found, weekday = rule.resolve(match, start), _FROM.search(lead), _NEXT.fullmatch(match[0])
    if when and found and weekday and weekday[1].lower() in _DAY_OF[rule.language]:
        # "From next Monday to next Friday": a range does not end before it begins.
        begin = max(re.findall(r"\d{4}-\d\d-\d\d", absolute_dates(found[1], start)), default="")
        return next((each for each in (when, _shift(when.start, "week", 1)) if str(each.start) >= begin), None)
    return when


def _is_name(rule: _Rule, match: re.Match[str], text: str, lead: str, after: str) -> bool:
    """Whether the phrase is a name or a part of one, or has its date beside it already."""
    first = match[0][0] if match[0].lower() not in _DAY_OF[rule.language] else ""
    if first.isupper() and not _STARTS_SENTENCE.search(text[: match.start()]):
        return True
    if _ALREADY_DATED.match(after) or _BEFORE_NAME.search(lead) or _AFTER_NAME.match(after):
        return True
    if _WORK_OF_ART.search(lead) or (" " not in match[0] and _BEFORE_ONE_WORD.search(lead)):
        return True
    is_title = rule.language == "en" and re.match(r"\s+(?:[A-ZÄÖÜ]\w+\s+[A-Z]|Show\b)", after)
    if first.isupper() and (is_title or _BY_AUTHOR.match(after)):
        return True
    word = match[0].lower()
    if word in ("morgen", "mañana") and _MORNING.search(lead):
        return True
    # In German and Dutch "hier" is a place. "Esta semana" is Spanish and Portuguese.
    if rule.language == "es" and word.startswith(("este ", "esta ", "próxim")):
        return bool(_PORTUGUESE.search(text))
    return word == "hier" and (bool(_GERMAN.search(text)) or not _FRENCH.search(text))


def _is_habit(rule: _Rule, match: re.Match[str], lead: str, after: str, sentence: str) -> bool:
    """Whether the sentence tells of a habit, so that the phrase means another day each time; or is a window."""
    if _WINDOW.search(lead) or _is_description(rule, match, lead, sentence):
        return True
    language = _FORMS[rule.language]
    # Spanish and Portuguese share phrases.
    habits = (_FORMS["es"].habit, _FORMS["pt"].habit) if rule.language in ("es", "pt") else (language.habit,)
    if not re.search("|".join(habits), sentence, re.IGNORECASE) or _ANCHOR.search(lead):
        return False
    # "From tomorrow" is a start; "the logs from yesterday" are others each time.
    if re.search(r"\bfrom\s$", lead, re.IGNORECASE) and not re.match("yesterday|last", match[0]):
        return False
    # "Tomorrow's standup is always announced at nine": the participle is no past.
    if rule.language in ("en", "de") and _IS_DONE.search(after):
        is_of_something = lead.strip() and _EARLIER.match(match[0])
        rest = _IS_DONE.sub("", sentence)
        if _POSSESSIVE.match(after) or (is_of_something and not re.search(language.past, rest, re.IGNORECASE)):
            return True
    # "Wants a summary of what happened yesterday every morning" is in the present.
    told = _WHAT.sub("", lead) + sentence[len(lead) :]
    return not re.search(language.past, told, re.IGNORECASE) or _tells_always(rule, lead)


def _is_description(rule: _Rule, match: re.Match[str], lead: str, sentence: str) -> bool:
    """Whether the sentence tells what a thing does each time ("shows today's weather"), or goes from day to day."""
    language = _FORMS[rule.language]
    after = sentence[len(lead + match[0]) :]
    past = re.search(language.past, sentence, re.IGNORECASE)
    if _ANCHOR.search(lead):
        return False
    if _CHAINED.search(sentence):
        return True
    if not past and not re.search(language.future, sentence, re.IGNORECASE) and _JOINED.search(sentence):
        return True
    of_thing = _POSSESSIVE.match(after)
    if of_thing and not past and _THING_DOES.search(lead):
        return True
    found = _DESCRIBES.search(lead)
    # "The museum shows Monet next week" is an event; "shows the weather for tomorrow" is none.
    if not found or (_LATER.match(match[0]) and not of_thing and not _OBJECT.search(found["rest"])):
        return False
    # "The job that deletes logs failed yesterday" and "the log shows the job failed yesterday" tell what happened.
    told = (found["relative"] or found["says"]) and re.search(language.past, found["rest"] + after, re.IGNORECASE)
    return bool(_WHAT.search(found[0])) or not (told or re.match(rf"\s+(?:{language.past})", after, re.IGNORECASE))


def _tells_always(rule: _Rule, lead: str) -> bool:
    """Whether the words before the phrase, up to a verb in the present, say that it is always so.

    "Always ask what I did yesterday" does; "the build always failed yesterday" does not.
    """
    found = _ALWAYS.search(lead)
    if not found or ("," in lead[found.end() + 1 :] and rule.language != "de"):
        return False
    first_words = lead[: found.end()] + " ".join(lead[found.end() :].split(" ")[:2])
    return not re.search(_FORMS[rule.language].past, first_words, re.IGNORECASE)
