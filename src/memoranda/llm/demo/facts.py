"""What a person says about themselves or their work that is worth keeping, as a fact in the third person."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from memoranda.llm.demo.words import sentences

Target = Literal["memory", "user"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact; an entry that begins with the same `subject` is about the same thing, and this one takes its place."""

    target: Target
    text: str
    subject: str = ""


_ASKED = re.compile(
    r"(?:ok(?:ay)?,?\s+)?(?:please\s+|can you\s+|could you\s+)?"
    r"(?:remember|memori[sz]e|note|keep in mind|don['’]t forget|do not forget|save)\b"
    r"(?:\s+(?:this|that|down))?\s*[:,]?\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
# The same in a few other languages; what follows is kept as it stands.
_ASKED_ELSEWHERE = re.compile(
    r"(?i)(?:请|請)?(?:记住|記住|覚えて(?:おいて)?)[:：,，、]?\s*(?P<zh>.+)"
    r"|(?:bitte )?merk dir,?(?: bitte,?)?(?: dass)? (?P<de>.+)"
    r"|(?:retiens|souviens-toi|rappelle-toi) (?:que |qu['’])(?P<fr>.+)|(?:recuerda|lembra-te de) que (?P<es>.+)",
    re.DOTALL,
)
_CLAUSE = re.compile(r"(?:,|;|\band\b|\bbut\b)+\s+(?:and |but )?(?=(?:i|i['’]m|my|we|our|call me)\b)", re.IGNORECASE)
_NOT_A_FACT = re.compile(r"(?:when|how|what|where|why|who|if|me\b)", re.IGNORECASE)
# What will not be true next month is not kept unless somebody asks for it.
_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|right now|at the moment|this (?:morning|week|time)|currently|errors?|bugs?|fail\w*"
    r"|broken|trying|tried|problems?|issues?|wonder\w*|think|guess|going to|about to)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^(?:also|and|so|well|actually|by the way|btw|fyi|hi|hello|hey|oh)\b[,:!]?\s+", re.IGNORECASE)
_VERBS = (
    "prefer|like|love|hate|dislike|use|live|work|speak|drink|eat|own|drive|study|teach|avoid|write|play|need|have"
    "|deploy|run|release|test|build|store|keep|host|call|follow|review|ship|want"
)
_ALWAYS = "always|never|usually|only|mostly|really|currently|mainly"
_PROJECT = (
    r"(?:the|this) (?P<what>(?:[\w-]+ ){0,2}?(?:project|repo|repository|code ?base|app|api|server|database|service"
    r"|build|tests?|team|company))"
)


def facts_in(text: str) -> list[Fact]:
    """The facts of a message, in order; a sentence that begins with "remember" is always one."""
    found: list[Fact] = []
    for sentence in sentences(re.sub(r"```.*?```", " ", text, flags=re.DOTALL)):
        plain = sentence
        while (shorter := _LEAD.sub("", plain)) != plain:
            plain = shorter
        if plain.endswith(("?", "？")):
            continue
        asked = _ASKED.fullmatch(plain)
        if asked and not _NOT_A_FACT.match(asked["rest"]):
            found += [_stated(clause) or _as_it_is(clause) for clause in _clauses(asked["rest"])]
        elif elsewhere := _ASKED_ELSEWHERE.fullmatch(plain):
            found.append(Fact("memory", next(filter(None, elsewhere.groups())).strip()))
        elif not _PASSING.search(plain):
            found += filter(None, map(_stated, _clauses(plain)))
    return list(dict.fromkeys(found))


def in_second_person(entry: str) -> str:
    """A fact about the user as one says it to them."""
    said = entry
    for pattern, replacement in _TO_YOU:
        said, count = pattern.subn(replacement, said, count=1)
        if count:
            return _pronouns(said, {"their": "your", "them": "you", "they": "you"})
    return said


def _clauses(sentence: str) -> list[str]:
    """Its parts that speak of the user or their team, each by itself."""
    return [clause.strip() for clause in _CLAUSE.split(sentence) if clause.strip()]


def _stated(sentence: str) -> Fact | None:
    text = sentence.strip().rstrip(".!。！").strip()
    for pattern, make in _FORMS:
        if match := pattern.fullmatch(text):
            return make(match)
    return None


def _as_it_is(text: str) -> Fact:
    said = text.strip().rstrip(".!").strip()
    if said.lower().startswith("to "):
        return Fact("user", f"User wants to be reminded {_third(said)}.")
    about_user = bool(re.match(r"(?i)(?:i|i['’]m|my|me)\b", said))
    return Fact("user" if about_user else "memory", _sentence(re.sub(r"(?i)^i\b", "User", _third(said))))


def _mine(match: re.Match[str]) -> Fact:
    subject = f"User's {match['what']} {match['is'].lower()}"
    return Fact("user", f"{subject} {_third(match['rest'])}.", subject)


def _name(match: re.Match[str]) -> Fact:
    return Fact("user", f"User's name is {match['name']}.", "User's name is")


def _i_do(match: re.Match[str]) -> Fact:
    return Fact("user", f"User {_doing(match)} {_third(match['rest'])}.")


def _i_am(match: re.Match[str]) -> Fact:
    return Fact("user", f"User is {_third(match['rest'])}.")


def _we_do(match: re.Match[str]) -> Fact:
    return Fact("memory", f"The team {_doing(match)} {_third(match['rest'])}.")


def _ours(match: re.Match[str]) -> Fact:
    subject = f"The team's {match['what']} {match['is'].lower()}"
    return Fact("memory", f"{subject} {_third(match['rest'])}.", subject)


def _theirs(match: re.Match[str]) -> Fact:
    return Fact("memory", _sentence(_third(match[0])))


def _doing(match: re.Match[str]) -> str:
    how = (match["how"] or "").lower()
    return f"{how} {_with_s(match['verb'].lower())}".strip()


_FORMS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], Fact]]] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), make)
    for pattern, make in (
        (r"(?:my name is|(?:you can |please )?call me) (?P<name>\S+(?: \S+){0,3})", _name),
        (r"(?:i am|i['’]m) (?-i:(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?))", _name),
        (r"my (?P<what>.{2,60}?) (?P<is>is|are)(?: now)? (?P<rest>.+)", _mine),
        (rf"i (?:(?P<how>{_ALWAYS}) )?(?P<verb>{_VERBS}) (?P<rest>(?!to (?:know|see|ask)\b).+)", _i_do),
        (r"(?:i am|i['’]m) (?P<rest>(?:an? |from |based |allergic |vegetarian|vegan|left-handed|colou?r[- ]?blind).*)",
         _i_am),
        (rf"(?:we|our team) (?:(?P<how>{_ALWAYS}) )?(?P<verb>{_VERBS}) (?P<rest>.+)", _we_do),
        (r"our (?P<what>.{2,60}?) (?P<is>is|are)(?: now)? (?P<rest>.+)", _ours),
        (_PROJECT + r" (?:uses?|lives?|runs? on|(?:is|are) (?:written|deployed|called)|requires?|needs?) .+", _theirs),
    )
)  # fmt: skip

_TO_YOU = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^User's ", "Your "),
        (r"^User is ", "You are "),
        (r"^User has ", "You have "),
        (rf"^User ((?:{_ALWAYS}) )?(\w+?)s ", r"You \1\2 "),
    )
)


def _third(text: str) -> str:
    return _pronouns(text, {"my": "their", "me": "them", "i'm": "they are", "i am": "they are", "mine": "theirs"})


def _pronouns(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        text = re.sub(rf"(?i)(?<![\w'’]){re.escape(old)}(?![\w'’])", new, text)
    return text


def _with_s(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
