"""Tells a note that would change what an agent does from one that only informs it.

Orders cannot be listed: every language has its own, and every list misses some. So the rule is the other way round. A
note only informs if every sentence of it is a plain English statement: it begins with its subject, a verb from a closed
list follows, its words are English, and nothing in it is a norm, a permission, a preference, an address or a command.
Everything else may change behaviour, whatever language it is in.

The rule is asked only about text that may come from an untrusted source, where a no lets it into the prompt, and a yes
only lets a person decide.
"""

import re
from functools import cache

from memoranda.support.lazy_pattern import compile_later

# No noun, adjective or order has the form of one of these.
_CLEAR_VERBS = """
is are was were has had contains consists includes lives belongs depends comes came begins began becomes became went
gave took wrote grew keeps speaks owns weighs teaches exists existed differs appears believes enjoys appreciates feels
finds thinks says said makes made got seems knows knew remains
"""
_OTHER_VERBS = """
have uses use used runs run ran lived lies stands supports supported stores stored lists shows means holds starts
started ends ended takes opens opened closes closed works worked plays played meets met costs kept builds built ships
shipped moved changed appeared replaced dates reads studies studied follows followed happened failed passed serves
served joined bought attended lost mentioned finished helped plans values told loves learned traveled visited
"""
# With one of these a sentence begins with its subject.
_BEGINNING_WORDS = """
the a an this that these those it its they their there he his she her we our both each one two three user users
project
"""
_FUNCTION_WORDS = """
and or but not no of in on at by for with from to into over under after before between since until than as about
around near per all some most more less many much four five first second last new old same other also only still
already now then today here been being be will would
"""
_VERBS = frozenset(_CLEAR_VERBS.split())
_STATES = _VERBS.union(_OTHER_VERBS.split())
_BEGINNINGS = frozenset(_BEGINNING_WORDS.split())
_ENGLISH = _STATES.union(_BEGINNINGS, _FUNCTION_WORDS.split())
# What a sentence needs at least of these words, so that an order in another language does not pass among a few of them.
_MIN_ENGLISH = 0.25
_SENTENCE_END = compile_later(r"(?<=[.!?])\s|[:;\n\r\v\f\x1c-\x1e\x85\u2028\u2029。！？：；]+|\s[-–—]\s")
_WORD = compile_later(r"[^\W_]+")
# After "the user" or the like, a word of this form is a verb or belongs to the subject: "the user drinks tea".
_VERB_OF_SUBJECT = compile_later(r"[a-z]{2,}(?:[^su]s|ed)")
# A verb after one of these does not belong to the subject of the sentence: "Pay for all that is left".
_NO_SUBJECT = compile_later(r"[,，、]|\b(?:wh\w+|that|if|as|how|unless|once|because|until)\b", re.IGNORECASE)

_NORMS = r"""
always|never|must|should|shall|ought|(?:has|have|had|need|needs|is|are|was|were) to|do|does|don't|please|let|may|can
|could|mandatory|require[sd]?|in future|in the future|next time|every time|whenever|by default|instead|make sure
|ensure|remember|important|rules?|polic(?:y|ies)|instruct(?:s|ed|ions?)?|directives?|override[sn]?|expect(?:s|ed)?
|prefer(?:s|red|ence|ences)?|likes?|wants?|wishes|wish|insists?|treat(?:s|ed)?|consider(?:s|ed)?|ignore[ds]?|disregard(?:s|ed)?
|bypass(?:es|ed)?|skip(?:s|ped)?|you|your|yours|assistants?|agents?|ai|models?|bots?|system|recommend(?:s|ed)?|secretly
|silently|without|correct|official|valid|current|standard|rather|best
"""
_PERMISSIONS = r"""
allow(?:s|ed)?|permit(?:s|ted)?|permissions?|authori[sz](?:es?|ed|ation)|approv(?:es?|ed|al)|grant(?:s|ed)?
|trust(?:s|ed|worthy)?|verified|safe|admin(?:istrators?)?|root|sudo|superusers?|privileges?|privileged|elevated|access
|whitelist(?:ed)?|allowlist(?:ed)?|exempt|unrestricted|restrict(?:ed|ions?)|safety|guardrails?|security|disabled?|enabled?
|passwords?|credentials?|secrets?|tokens?|keys?|accounts?|pay|pays|paid|payments?|invoices?|opted|consent(?:s|ed)?|confirmed|agreed
"""
_COMMANDS = r"""
curl|wget|bash|sh|powershell|pip3?|npm|npx|git|chmod|chown|eval|exec|ssh|scp|crontab|docker|export|import|subprocess
"""


@cache
def _changing() -> tuple[re.Pattern[str], ...]:
    words = "|".join(table.replace("\n", "") for table in (_NORMS, _PERMISSIONS, _COMMANDS))
    return (
        re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE),
        # An address.
        re.compile(
            r"\w://|\bwww\.|\w@[\w-]{1,63}\.\w|\b(?:\d{1,3}\.){3}\d{1,3}\b|\b0x[0-9a-f]{40}\b|\bbc1[a-z0-9]{20}"
            r"|\+\d[\d ()-]{7}|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3}|[a-z0-9]\.[a-z]{2,}\b",
            re.IGNORECASE,
        ),
        # The path or the option of a command, or code.
        re.compile(r"[`$|&<>{}=\\]|(?:^|\s)--?[a-z]|[~.]?/\w"),
    )


def changes_behaviour(text: str) -> bool:
    """Whether a note may be more than a statement: an order, a permission, a preference, an address or a command."""
    if any(rule.search(text) for rule in _changing()):
        return True
    return not all(map(_states, filter(_WORD.search, _SENTENCE_END.split(text))))


def _states(sentence: str) -> bool:
    """Whether a sentence is an English statement: it begins with its subject, and a verb that states follows.

    A name is a subject if such a verb comes right after it. The subject may be missing: "Lives in Oslo".
    """
    words = [word.lower() for word in _WORD.findall(sentence)]
    has_subject = words[0] in _BEGINNINGS
    verb = next(
        (
            match
            for number, match in enumerate(_WORD.finditer(sentence))
            if match[0].lower() in _STATES or (has_subject and number > 0 and _VERB_OF_SUBJECT.fullmatch(match[0]))
        ),
        None,
    )
    if verb is None or _NO_SUBJECT.search(sentence, 0, verb.start()):
        return False
    begins = has_subject or words[1:2] == ["s"] or not _VERBS.isdisjoint(words[:2])
    return begins and sum(word in _ENGLISH for word in words) >= _MIN_ENGLISH * len(words)
