"""Finds passwords that a person states in a sentence or a list, in some twenty languages.

The word for a password, a verb or a sign, and a value that mixes letters with digits or signs as no word does. What
follows such a word is usually not a password ("das Passwort ist abgelaufen"), so a value that could be a word stays.
"""

import re
from collections.abc import Iterator

from memoranda.safety.secrets.found_secret import FoundSecret
from memoranda.safety.secrets.value_checks import is_password, is_reference

# The beginnings of the words for a password, in lower case: in ASCII text, and in text with other letters.
_PASS_HINTS = ("passwor", "mot de passe")
OTHER_PASSWORD_WORDS = ("kennwort", "wachtwoord", "senha", "heslo", "kata sandi")
_OTHER_HINTS = (
    "парол", "密码", "密碼", "パスワード", "비밀번호", "contraseña", "hasło", "şifre", "parola", "lösenord",
    "adgangskode", "mật khẩu", "κωδικός", "סיסמ", "รหัสผ่าน", "口令", "كلمة المرور", "كلمة السر", "पासवर्ड",
)  # fmt: skip
# What follows `password` in an assignment, which is no sentence.
_ASSIGNS = ("=", ":", '"', "'")
_WORDS_BETWEEN = r"(?:\s(?:[^\W\d]|-){1,12}){0,3}?"
_SIGN = r"\s{0,2}[:：=]{1,2}\s{0,2}|\s?(?:[–—]|->|-\s)\s?"
_VERB = r"\s(?:is|was|ist|lautet|war|est|es|é|è|jest|to|är|je|là|er|adalah)\s{1,2}:?\s?"
_PARTICLE = r"\s{0,2}(?:是|为|為|は|が|는|은|가|है|είναι|היא|คือ|هي)\s{0,2}[:：]?\s{0,2}"
# From the end of the hint to the value. A value that follows the word at once has to begin like a password.
_UP_TO_VALUE = re.compile(
    rf"[^\W\d]{{0,6}}?(?:{_WORDS_BETWEEN}(?:{_SIGN}|{_VERB}|{_PARTICLE})|\s(?=[a-z]{{1,12}}(?:[-_!#%&+?@^][a-z]{{0,12}})?\d))"
    r"[\"'`«„“「]?"
).match
_VALUE = re.compile(r"[!#-&*-:=?-Z^-z~]{6,64}").match


def find_stated_passwords(text: str, lower: str, *, has_pass: bool) -> Iterator[FoundSecret]:
    """The passwords that a sentence states.

    `lower` is the text in lower case, with the same offsets, and `has_pass` whether it contains "pass".
    """
    hints = (*_PASS_HINTS, *OTHER_PASSWORD_WORDS) if has_pass else OTHER_PASSWORD_WORDS
    for hint in hints if text.isascii() else (*hints, *_OTHER_HINTS):
        position = lower.find(hint)
        while position >= 0:
            position += len(hint)
            if hint != "passwor" or lower[position + 1 : position + 2] not in _ASSIGNS:
                yield from _read_password(text, lower, position)
            position = lower.find(hint, position)


def _read_password(text: str, lower: str, position: int) -> Iterator[FoundSecret]:
    """The password after a word for one that ends at or after a position, if there is one."""
    before = _UP_TO_VALUE(lower, position)
    value = _VALUE(text, before.end()) if before else None
    if value is not None:
        password = value[0].rstrip(".,:;!?")
        if is_password(password) and not is_reference(password):
            yield FoundSecret("password", value.start(), value.start() + len(password))
