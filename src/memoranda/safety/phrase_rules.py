"""The phrases of known attacks, one line per pattern, and their search in a list of words in linear time.

A pattern is a sequence of words. `a|b` means either word, `NAME` a class of words from `vocabulary`, `~5` up to five
words of anything within the sentence, a trailing `?` makes a word optional, `!~5` followed by a word or class
means that it must not occur within the next five words, and `$` the end of the sentence. Patterns see folded
words without punctuation: `don't` is `dont`.

Each word that a rule uses gets a symbol, and all other words share the symbol of a filler. A text is then a short
string with one symbol per word, and a rule is a regular expression over symbols whose gaps are bounded, so no text can
make it slow. A rule is only tried when all its required words are present.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice, repeat
from typing import NamedTuple

from memoranda.safety import vocabulary
from memoranda.safety.concepts import UNSPACED_CONCEPTS, fold_words
from memoranda.safety.finding import Severity
from memoranda.safety.normalization import STOP
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_once

HIGH, MEDIUM = Severity.HIGH, Severity.MEDIUM


@dataclass(frozen=True, slots=True)
class PhraseRule:
    """A kind of attack and the phrases that express it."""

    id: str
    severity: Severity
    message: str
    patterns: tuple[str, ...]


RULES = (
    PhraseRule(
        "prompt_injection",
        HIGH,
        "The text orders the reader to abandon its earlier instructions.",
        (
            "OVERRIDE ~12 PREVIOUS ~4 INSTRUCTIONS",
            "OVERRIDE ~4 INSTRUCTIONS ~3 PREVIOUS",
            "OVERRIDE ~3 your ~3 INSTRUCTIONS|RULES",
            "OVERRIDE ~2 all|any|every ~2 INSTRUCTIONS",
            "OVERRIDE ~1 all|any|every ~1 PREVIOUS ~2 orders|commands|constraints|rules|restrictions",
            "OVERRIDE ~3 system prompt|prompts|message|instructions",
            "OVERRIDE ~1 all|everything|anything|whatever ~3 above|previously|prior|earlier|told|said|taught",
            "OVERRIDE ~1 all|everything|anything before this|that|now",
            "OVERRIDE ~1 the above|preceding !~2 NOISE",
            (
                "disregard|forget|overrule ~1 all|any|every|your ~1 rules|guidelines|restrictions|safeguards"
                "|training|policies"
            ),
            "forget ~2 everything ~3 told|know|learned|learnt|said|taught|instructed",
            "FOREIGN_OVERRIDE ~6 PREVIOUS ~4 INSTRUCTIONS",
            "FOREIGN_OVERRIDE ~6 INSTRUCTIONS ~4 PREVIOUS",
            "FOREIGN_OVERRIDE ~3 FOREIGN_YOUR ~3 INSTRUCTIONS|RULES",
            "PREVIOUS ~6 INSTRUCTIONS ~5 FOREIGN_OVERRIDE",
            "INSTRUCTIONS ~3 PREVIOUS ~5 FOREIGN_OVERRIDE",
            (
                "PREVIOUS ~2 INSTRUCTIONS ~3 are|is|be|must|should|can ~3 ignored|void|invalid|obsolete|overridden"
                "|disregarded|cancelled"
            ),
            (
                "instructions ~4 takes|take|override|overrides|supersede|supersedes|replace"
                "|replaces ~5 PREVIOUS ~3 INSTRUCTIONS"
            ),
            "stop following ~3 PREVIOUS|your|all ~3 INSTRUCTIONS|RULES",
            "do not follow ~3 previous|prior|your|system ~3 INSTRUCTIONS",
            "regardless|irrespective of ~3 PREVIOUS|your ~3 INSTRUCTIONS|RULES|input|guidelines",
            "strictly adhere|follow|obey ~2 the following instruction|instructions|command",
            "follow|obey ~2 only my INSTRUCTIONS|commands|orders",
            "now ignore|disregard|forget all|every ~2 RULES|INSTRUCTIONS",
            "OVERRIDE ~2 everything ~3 discussed|wrote|written|beforehand|else",
            "stop everything ~6 just|only print|say|write|output",
        ),
    ),
    PhraseRule(
        "prompt_override",
        HIGH,
        "The text poses as a change of the system prompt or of the rules the reader works by.",
        (
            "system prompt override|overrides|overwrite",
            (
                "system|admin|administrator|developer|priority|directive|instruction override mode|activated"
                "|enabled|engaged|directive|protocol|follows|authorized|accepted|code"
            ),
            (
                "you have been ~2 updated|upgraded|patched|reprogrammed|reconfigured|jailbroken|unlocked|freed"
                "|liberated to|with|by|from"
            ),
            "your ~2 INSTRUCTIONS|restrictions|filters|guardrails|guidelines has|have|are|is ~2 CHANGED",
            "here are your new INSTRUCTIONS",
            "your new INSTRUCTIONS|RULES is|are",
            "new INSTRUCTIONS|RULES for you",
            "these instructions|rules ~3 override|overrides|supersede|replace ~4 PREVIOUS|other|your|system",
        ),
    ),
    PhraseRule(
        "role_hijack",
        HIGH,
        "The text tries to give the reader another identity or to lift its limits.",
        (
            "you are now a|an|the !~6 HARMLESS_ROLE",
            "you are now ~3 UNBOUND",
            "youre now a|an|the !~6 HARMLESS_ROLE",
            "you are no longer ~3 assistant|ai|chatgpt|claude|restricted|limited|model",
            "name yourself ~1",
            (
                "pretend ~1 you ~1 are|have|had|were ~3 no|not|without|unrestricted|unfiltered|evil|hacker|admin"
                "|root|dan|jailbroken"
            ),
            "pretend to be ~2 admin|administrator|root|system|developer|owner|evil|hacker|unrestricted|dan",
            "act|behave|respond|answer|operate|roleplay as if|though|an|a ~2 you ~4 no|without|arent|not ~3 LIMITS",
            "act|behave|respond|answer|reply|operate|work|speak|function|run without ~3 LIMITS",
            "do anything now",
            "dan|jailbreak|god|unrestricted|unfiltered|uncensored mode",
            "enter|enable|activate|engage ~2 dan|jailbreak|jailbroken|unrestricted|unfiltered|evil",
            (
                "you are ~1 now|currently ~1 in|operating|running ~2 developer|debug|maintenance|god|admin|root"
                "|unrestricted mode"
            ),
            "you are operating ~1 in|under ~2 developer|debug|maintenance|god|admin|root|unrestricted|no mode",
            "bypass|disable|override|remove|drop|circumvent|deactivate ~2 your ~3 LIMITS|RULES",
            "has|have no ~3 ethical|moral|safety ~2 LIMITS|RULES",
            "jailbreak yourself|chatgpt|claude",
        ),
    ),
    PhraseRule(
        "deception",
        HIGH,
        "The text asks to keep something from the user.",
        (
            "NEVER ~4 tell|inform|alert ~2 the|your user|users|human|owner|operator !~3 HOW_TO_TELL",
            (
                "NEVER ~3 mention|reveal|disclose|say|report|show ~1 this|that|it|these|any ~5 to ~1 the|your user"
                "|users|human|owner|anyone|operator"
            ),
            "NEVER ~2 let ~1 the|your user|human|owner|operator know|see|notice|find|suspect",
            (
                "NEVER ~3 mention|reveal|disclose|acknowledge ~2 this|these|that instruction|instructions|message"
                "|directive|prompt|note|step"
            ),
            "without ~1 telling|informing|alerting the|your user|human|owner",
            "without ~1 the|your users|user|human|owner knowledge|knowing|noticing|consent",
            "hide|conceal|keep|withhold this|that|it|these|your ~5 from ~1 the|your user|human|owner|operator",
            "keep ~3 secret|hidden from ~1 the|your user|human|owner",
            "NEGATION ~4 TELL ~4 THE_USER",
            "TELL ~4 THE_USER ~2 NEGATION",
            "NEGATION ~4 THE_USER ~3 TELL",
            "THE_USER ~4 NEGATION ~3 TELL",
            "THE_USER ~4 TELL ~3 NEGATION",
        ),
    ),
    PhraseRule(
        "prompt_extraction",
        MEDIUM,
        "The text asks the reader to give away its instructions.",
        (
            (
                "REVEAL ~4 your ~3 system|initial|original|hidden|secret|full|first|internal ~2 prompt|prompts"
                "|instructions|instruction|message|configuration"
            ),
            "REVEAL ~1 me|us ~2 the|your system|initial|hidden prompt|instructions|message",
            "REVEAL ~2 the|your system|initial|hidden prompt|instructions $",
            "REVEAL ~6 prompt|instructions ~4 verbatim|exactly",
            "REVEAL ~6 prompt|instructions ~4 word for word",
            (
                "repeat|recite|print|output ~3 everything|words|text|all|instructions|sentences|prompt"
                "|lines ~2 above|previously|previous"
            ),
            "repeat ~3 instructions you were|are|have",
            (
                "repeat|recite|reveal|print|output|translate ~2 above|previous|preceding|initial ~1 instructions"
                "|prompt|prompts"
            ),
            "repeat ~2 everything|words|text ~4 prompt|section ~2 above|previous|so|starting|without",
            "what are|were|is|was your ~1 system|initial|original|hidden|secret|exact ~2 prompt|instructions|message",
            "FOREIGN_REVEAL|TELL ~5 SYSTEM_PROMPT",
            "SYSTEM_PROMPT ~4 FOREIGN_REVEAL|TELL",
        ),
    ),
    PhraseRule(
        "exfiltration_order",
        HIGH,
        "The text orders private data to be sent away.",
        (
            (
                "SEND ~3 all|every|any|users|your|full|entire|complete|whole|their|the ~4 PRIVATE ~8 to ~3 http"
                "|https|webhook|attacker|url"
            ),
            "exfiltrate ~8 to|via|through",
            "SEND ~3 contents|content of ~8 ssh|env|credentials|passwd|shadow|id|netrc ~8 to",
            "encode ~8 conversation|history|credentials|secrets|keys ~8 in|into ~3 url|image|link",
            "include|insert|append|add ~2 in|to your response|answer|reply|output the|this following|string|link|image",
            "message from ~6 to you ~1 ai|assistant|agent",
            (
                "before ~2 you ~2 solve|continue|complete|answer|respond ~8 you must|should|need|have"
                "|do ~2 following|first|read|send|call|access"
            ),
            "translate ~8 into|to ~8 and|then execute|run|eval it|this|that|them|result",
        ),
    ),
    PhraseRule(
        "ssh_backdoor",
        HIGH,
        "The text plants a key that lets another person log in.",
        ("append|write|insert|put|echo|plant ~9 authorized keys", "add !~4 your ~9 authorized keys"),
    ),
    PhraseRule(
        "memory_poisoning",
        HIGH,
        "The text plants a standing order that would work against the user.",
        (
            (
                "STORE ~5 bypass|skip|disable|ignore ~3 security|safety|authentication|authorization|verification"
                "|approval|restrictions"
            ),
            (
                "STANDING ~6 bypass|skip|disable|ignore|omit ~3 security|safety|authentication|authorization"
                "|verification|restrictions|filters"
            ),
            "STANDING ~6 SEND|include|append ~8 PRIVATE !~4 header|headers|request|requests|cookie|subject",
            "STANDING ~8 without ~2 confirmation|approval|verification|restrictions|authorization",
            "STORE ~8 unrestricted|unfiltered|jailbroken|uncensored",
        ),
    ),
)


_FILLER = "-"
_BREAK = "\n"
_FIRST_SYMBOL = 0x4E00
_MAX_PER_RULE = 3
# How many words are searched together at least.
_GROUP = 60
# This many matches are enough; a text of nothing but rule words would otherwise try every rule.
_MAX_MATCHES = 64
# Begins with a single character, so that `re` skips fast to it.
_STACCATO = r"\n.(?:\n.){2,}\n?"
_UNSPACED_SCRIPTS = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"


class PhraseMatch(NamedTuple):
    """The words that a rule matched: `first` up to but not including `last`."""

    rule: PhraseRule
    first: int
    last: int


class _Pattern(NamedTuple):
    rule: PhraseRule
    expression: str
    needs: tuple[frozenset[str], ...]
    first: frozenset[str]


class _RuleBook:
    """All rules as expressions over symbols, and the symbols of the words they use."""

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {STOP: _BREAK}
        self._classes = vocabulary.word_classes()
        self._symbols_of_names: dict[str, set[str]] = {}
        self._by_symbol: dict[str, list[_Pattern]] = {}
        for rule in RULES:
            for text in rule.patterns:
                self._add(rule, text)

    def candidates(self, present: frozenset[str]) -> Iterator[_Pattern]:
        """The patterns all of whose required words are present."""
        for symbol in sorted(self._by_symbol.keys() & present):
            for pattern in self._by_symbol[symbol]:
                if not any(map(present.isdisjoint, pattern.needs)):
                    yield pattern

    def first_symbols(self, rule_id: str) -> frozenset[str]:
        """The symbols with which the patterns of a rule begin."""
        patterns = chain.from_iterable(self._by_symbol.values())
        return frozenset().union(*(pattern.first for pattern in patterns if pattern.rule.id == rule_id))

    def _add(self, rule: PhraseRule, text: str) -> None:
        """Add a pattern under its rarest required words; every rule has some."""
        needs: list[frozenset[str]] = []
        expression = self._compile_pattern(text, needs)
        key = min(needs, key=len)
        others = sorted((need for need in needs if need is not key), key=len)
        pattern = _Pattern(rule, expression, tuple(others), needs[0])
        for symbol in key:
            self._by_symbol.setdefault(symbol, []).append(pattern)

    def _compile_pattern(self, pattern: str, needs: list[frozenset[str]] | None) -> str:
        parts: list[str] = []
        forbidden = ""
        for item in pattern.split():
            if item.startswith("!~"):
                forbidden = item[2:]
            elif item.startswith("~"):
                parts.append(f".{{0,{item[1:]}}}?")
            elif item == "$":
                parts.append(rf"(?={_BREAK}|\Z)")
            elif forbidden:
                parts.append(f"(?!.{{0,{forbidden}}}{self._compile_item(item, None)})")
                forbidden = ""
            else:
                parts.append(self._compile_item(item, needs))
        return "".join(parts)

    def _compile_item(self, item: str, needs: list[frozenset[str]] | None) -> str:
        if item == "SYSTEM_PROMPT":
            pairs = "|".join(self._compile_pattern(pair, None) for pair in vocabulary.PAIRS)
            return f"(?:{pairs}|{self._symbol_set(item)})"
        symbols = self._symbol_set(item)
        if needs is not None:
            needs.append(frozenset(symbols[1:-1]))
        return symbols

    def _symbol_set(self, item: str) -> str:
        return "[" + "".join(sorted(set().union(*map(self._symbols_of, item.split("|"))))) + "]"

    def _symbols_of(self, name: str) -> set[str]:
        """The symbols of a word, or of all words of a class, which many patterns share."""
        if name not in self._symbols_of_names:
            words = fold_words(" ".join(self._classes.get(name, [name])))
            self._symbols_of_names[name] = {
                self.symbols.setdefault(word, chr(_FIRST_SYMBOL + len(self.symbols))) for word in words
            }
        return self._symbols_of_names[name]


@cache
def _rule_book() -> _RuleBook:
    return _RuleBook()


@cache
def _unspaced_words() -> str:
    return f"({_alternatives([*vocabulary.UNSPACED.values(), *UNSPACED_CONCEPTS.values()])})"


def separate_unspaced(spaced: str) -> str:
    """Put blanks around the words that rules use, in scripts that are written without blanks."""
    if spaced.isascii() or not re.search(_UNSPACED_SCRIPTS, spaced):
        return spaced
    return " ".join(compile_once(_unspaced_words()).split(spaced))


def _alternatives(classes: list[str]) -> str:
    """All words, longest first, grouped by their first letter so that `re` can skip letters that begin none."""
    groups: dict[str, list[str]] = {}
    for word in sorted({word for words in classes for word in fold_words(words)}, key=lambda word: (-len(word), word)):
        groups.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in sorted(groups.items()))


@cache
def _first_symbols(rule_id: str) -> frozenset[str]:
    return _rule_book().first_symbols(rule_id)


def can_begin_phrase(words: Iterable[str], rule_id: str) -> bool:
    """Whether one of these words can be the first of a phrase that a rule forbids."""
    return not _first_symbols(rule_id).isdisjoint(map(_rule_book().symbols.get, words, repeat(_FILLER)))


def can_form_phrase(words: Iterable[str]) -> bool:
    """Whether these words, in any order, could form a phrase that any rule forbids."""
    return can_form_from(phrase_symbols(words))


def phrase_symbols(words: Iterable[str]) -> frozenset[str]:
    """What the rules know of words; texts that share no word with a rule have the same symbols."""
    return frozenset(map(_rule_book().symbols.get, words, repeat(_FILLER)))


def can_form_from(symbols: frozenset[str], rule_id: str = "") -> bool:
    """`can_form_phrase` for the symbols of words, and for the rule with this id if one is given."""
    return any(rule_id in ("", pattern.rule.id) for pattern in _rule_book().candidates(symbols))


def find_phrases(words: list[str]) -> list[PhraseMatch]:
    """Find every rule's phrases in a list of folded words; of those of one kind that overlap, the first."""
    kept: list[PhraseMatch] = []
    ends: dict[str, int] = {}
    counts: Counter[str] = Counter()
    # Several words may lead to the same pattern; a set contains each of its matches once.
    found = set(islice(_find_matches(words), _MAX_MATCHES))
    for phrase in sorted(found, key=lambda phrase: (phrase.first, phrase.rule.id, phrase.last)):
        if phrase.first >= ends.get(phrase.rule.id, 0) and counts[phrase.rule.id] < _MAX_PER_RULE:
            counts[phrase.rule.id] += 1
            ends[phrase.rule.id] = phrase.last
            kept.append(phrase)
    return kept


def _find_matches(words: list[str]) -> Iterator[PhraseMatch]:
    book = _rule_book()
    symbols = "".join(map(book.symbols.get, words, repeat(_FILLER)))
    if _BREAK in symbols:  # "Ignore. All. Previous. Instructions." is one phrase
        symbols = re.sub(_STACCATO, lambda match: match[0].replace(_BREAK, _FILLER), symbols)
    start = 0
    while start < len(symbols):
        # Phrases do not reach over the end of a sentence, and a few sentences have the words of few rules.
        end = symbols.find(_BREAK, start + _GROUP) + 1 or len(symbols)
        for pattern in book.candidates(frozenset(symbols[start:end])):
            for match in islice(compile_once(pattern.expression).finditer(symbols, start, end), _MAX_PER_RULE):
                yield PhraseMatch(pattern.rule, match.start(), match.end())
        start = end
