"""Tells a note that would change what an agent does from one that only informs it.

A note changes behaviour if it gives an order, grants a permission, states a preference, or names an address or a
command. The rules err on the side of yes: they are asked only about text that may come from an untrusted source, where
a no lets it into the prompt and a yes only lets a person decide.
"""

import re
from functools import cache

_ORDERS = r"""
always|never|must|mustn't|should|shouldn't|shall|ought|ha(?:ve|s) to|needs? to|don't|do not|does not need|mandatory
|required?s?|from (?:now|here|this point) on|going forward|in (?:the )?future|next time|henceforth|every time
|whenever|by default|instead of|make sure|ensure|be sure|remember to|keep in mind|important:|note to self|rule
|policy|instructions?|instructed|directive|override|(?:before|after|in|on|with|for|to) (?:each|every|any|all)
|as soon as|prefers?|preferred|preference|likes? (?:it|when|to)|wants?|expects?|insists?|treat|consider(?:ed)?
|ignore|disregard|bypass|skip|pretend|act as|roleplay|you are|you're|you will|you can|you may|please
|your (?:task|job|role|goal|purpose|name|memory|system|instructions?|responses?|answers?|replies|persistent|session)
|the (?:assistant|agent|ai|model|bot)|system (?:update|message|prompt|note)|recommends?|promote|secretly|silently
|without (?:asking|telling|confirmation|confirming|approval|checking)
"""
_ORDERS_IN_OTHER_LANGUAGES = """
immer|niemals|nie|muss|müssen|soll|sollte|ab sofort|bevorzugt|toujours|jamais|doit|devez|dorénavant|préfère|siempre
|nunca|debe|debes|a partir de ahora|prefiere|sempre|mai|deve|d'ora in poi|preferisce|a partir de agora|prefere
|altijd|nooit|moet|voortaan|zawsze|nigdy|musi|od teraz|her zaman|asla|malı|bundan sonra|всегда|никогда|должен|должна
|отныне|предпочитает|завжди|ніколи|luôn|không bao giờ|phải|từ nay|selalu|jangan|harus|mulai sekarang
"""
_PERMISSIONS = r"""
allow(?:s|ed)?|permit(?:s|ted)?|permissions?|authori[sz](?:es?|ed|ation)|approv(?:es?|ed|al)|grant(?:s|ed)?
|trust(?:s|ed|worthy)?|verified|admin(?:istrator)?|root|sudo|superuser|privileges?|privileged|elevated|full access
|access to|whitelist(?:ed)?|allowlist(?:ed)?|exempt|unrestricted|restrictions?|safety|guardrails?
|security (?:check|policy|review)|disabled?|passwords?|credentials?|secrets?|tokens?|api[ -]?keys?|private keys?
|opted? (?:in|out)|consent(?:s|ed)?|confirmed|agreed
"""
_VERBS = r"""
use|run|send|call|include|add|append|attach|forward|post|upload|execute|install|download|fetch|open|visit|click
|enable|disable|allow|approve|grant|give|share|reveal|show|print|output|display|repeat|tell|ask|reply|respond|answer
|say|write|store|save|remember|delete|remove|set|change|replace|redirect|contact|email|mail|transfer|pay|buy|order
|book|recommend|suggest|forget|stop|start|begin|end|continue|return|read|check|copy|move|create|update|follow|obey
|switch|import|export|log|report|summari[sz]e|translate|encode|decode|convert|act|be|do|let|put|insert|perform|make
|indicate|load|synchroni[sz]e|provide|submit|invite|subscribe|trigger|connect|exfiltrate
"""
_COMMANDS = r"""
curl|wget|bash|sh -c|powershell|python3? -|pip3? install|npm (?:i|install|run)|npx|git (?:config|push|clone)|chmod
|chown|rm -|eval|exec|ssh|scp|nc -|crontab|docker run|export [A-Z_]+=|import os|subprocess|os[.]system|SELECT [*]
|DROP TABLE
"""


def _one_of(*tables: str) -> str:
    return "(?:" + "|".join(table.replace("\n", "") for table in tables) + ")"


@cache
def _rules() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(rf"(?<!\w){_one_of(_ORDERS, _ORDERS_IN_OTHER_LANGUAGES, _PERMISSIONS)}(?!\w)", re.IGNORECASE),
        # An order at the start of a sentence, or after its condition.
        re.compile(rf"(?:^|[.!?:;\n\"'“(\[>-]\s{{0,3}}){_one_of(_VERBS)}\s{{1,3}}\w", re.IGNORECASE),
        re.compile(
            r"(?:^|[.!?:;\n\"“]\s{0,3})(?:when|for|on|if|after|before|while|upon)\b[^.!?\n]{2,120},\s{0,3}"
            rf"{_one_of(_VERBS)}\b|for future reference",
            re.IGNORECASE,
        ),
        # Languages without spaces, or with endings that a boundary would miss.
        re.compile(
            "总是|總是|永远|永遠|必须|必須|应该|應該|不要|从现在|從現在|以后|以後|今后|今後|请|請|忽略|允许|允許|偏好|喜欢|喜歡"
            "|常に|いつも|必ず|してください|しないで|無視|許可|べき|好む|항상|절대|반드시|하세요|하지 마|앞으로"
            "|무시|허용|선호|ต้อง|เสมอ|ห้าม|हमेशा|कभी|चाहिए|دائما|دائمًا|يجب|لا تفعل|תמיד|אסור|חייב"
        ),
        # An address.
        re.compile(
            r"(?:https?|ftps?|wss?|ssh|git)://|\bwww\.|\w@[\w-]{1,63}\.\w|\b(?:\d{1,3}\.){3}\d{1,3}\b|\b0x[0-9a-f]{40}\b"
            r"|\bbc1[a-z0-9]{20}|\+\d[\d ()-]{7}|[a-z0-9]\.(?:com|net|org|io|dev|ai|app|example|test|co|de|ru|cn|xyz"
            r"|info|sh|me|tv|uk|eu|internal|local)\b",
            re.IGNORECASE,
        ),
        # A command, or the path or option of one.
        re.compile(
            r"`|\$\(|&&|<script|\|\s{0,3}\w|(?:^|\s)(?:--?[a-z][\w-]|\$ \w)|[~.]/"
            rf"|(?:^|\s)/(?:etc|tmp|usr|var|home|bin|opt)\b|\b{_one_of(_COMMANDS)}",
            re.IGNORECASE | re.MULTILINE,
        ),
    )


def changes_behaviour(text: str) -> bool:
    """Whether a note gives an order, a permission or a preference, or names an address or a command."""
    return any(rule.search(text) for rule in _rules())
