"""The day of writing, shown after a text that means another day later: "Deploys moved yesterday [2026-11-18]".

The text itself is never changed. The words are those of all languages together: where one of them means something else
("hier" in German), a date is shown that was not needed, and that is all.
"""

from datetime import date

from memoranda.support.lazy_pattern import compile_later

_TIMES = r"(?:day|night|week|weekend|month|quarter|year|spring|summer|autumn|fall|winter|morning|evening|\w+day)s?"
_WORDS = (
    r"today|tonight|tomorrow|yesterday|now|nowadays|currently|recently|soon|ago|these days"
    rf"|(?:this|last|next|past|coming) (?:\w+ )?{_TIMES}"
    r"|heute|morgen|übermorgen|gestern|vorgestern|jetzt|derzeit|momentan|zurzeit|bald|kürzlich|neulich"
    r"|vor \w+ (?:tag|woche|monat|jahr)\w*|(?:letzt|nächst|diese|kommend|vergangen)\w* (?:woche|monat|jahr|\w+tag)\w*"
    r"|aujourd['’]hui|demain|hier|maintenant|actuellement|bientôt|récemment|il y a \w+"
    r"|(?:semaine|mois|année|an) (?:proch|derni|passé)\w*"
    r"|hoy|mañana|ayer|anteayer|ahora|actualmente|pronto|hace \w+ \w+|(?:semana|mes|año) (?:pasad|próxim|que viene)\w*"
    r"|hoje|amanhã|ontem|anteontem|agora|atualmente|há \w+ \w+|(?:semana|mês|ano) (?:passad|que vem)\w*"
    r"|oggi|domani|ieri|adesso|attualmente|presto|(?:giorn|settiman|mes|ann)\w+ (?:fa|scors\w|prossim\w)"
    r"|vandaag|gisteren|nu|dziś|dzisiaj|jutro|wczoraj|teraz|bugün|yarın|dün|şimdi"
    r"|сегодня|завтра|вчера|позавчера|сейчас|недавно|скоро|назад|(?:прошл|следующ)\w+ \w+"
)
_UNSPACED = (
    "今天|明天|昨天|前天|后天|今日|明日|昨日|一昨日|明後日|现在|現在|目前|最近|刚刚|上周|下周|本周|上个月|下个月|本月|今年|去年|明年"
    "|今週|先週|来週|今月|先月|来月|来年|[天周月年]前|[日間]前|오늘|내일|어제|지금|최근|지난|다음"
)
_RELATIVE = compile_later(rf"(?i)\b(?:{_WORDS})\b|{_UNSPACED}")
_DAY = compile_later(r"(?<!\s)\s*\[\d{4}-\d\d-\d\d\]\s*$")


def names_relative_time(text: str) -> bool:
    """Whether a text has a word of relative time, and does not end with its day as `with_day` shows it."""
    return bool(_RELATIVE.search(text)) and not _DAY.search(text)


def with_day(text: str, written: float) -> str:
    """The text as it is shown, with the day on which it was written (seconds since 1970) if its words need that."""
    return f"{text} [{date.fromtimestamp(written).isoformat()}]" if names_relative_time(text) else text


def without_day(text: str) -> str:
    """A text without the day that is shown after it: a model or a person may copy both."""
    return _DAY.sub("", text)
