"""The phrases of known attacks, as data: one line per pattern, grouped by meaning.

A pattern is a sequence of words. `a|b` means either word, `NAME` a class of words from `vocabulary`, `~5` up to five
words of anything within the sentence, a trailing `?` makes a word optional, `!~5` followed by a word or class
means that it must not occur within the next five words, and `$` the end of the sentence. Patterns see folded
words without punctuation: `don't` is `dont`.
"""

from dataclasses import dataclass

from memoranda.safety.finding import Severity

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
