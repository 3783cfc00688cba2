"""Finds secrets that a list or a check digit tells from ordinary text: numbers of cards and accounts, seed phrases.

A number without its check digit is never taken for a card or an account. One in ten numbers has a right check digit by
chance, so a card also has the beginning and the length of its network, and no word before it that says otherwise.

A phrase of 12 to 24 words restores a wallet (BIP-39). All of its words are in a list of 2,048 words of three to eight
letters. It has few of the words that hold sentences together, so ordinary text has no twelve of them in a row. The
check word at the end is not tested: a phrase with a typing error is a secret too.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memoranda.safety.secrets.found_secret import FoundSecret
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later

_LONG_NUMBER = compile_later(r"[0-9](?:[0-9]{3}[ -]?[0-9]{4}|[0-9]{2}-[0-9]{2}-[0-9]{4})[0-9 -]{0,20}")
# The same in the kinds of its characters, which are searched faster, because every match begins with three zeros.
_LONG_NUMBER_KINDS = compile_later(rb"000(?:0[ a]?0000|a00a0000)")
# What of an IBAN may stand before the first long number in it, and after its last.
_MAX_IBAN_HEAD = 12
_MAX_NUMBER_CHARS = 24
# Not within a longer number, a decimal, an amount or an identifier.
_START, _END = r"(?<![\w.,/$€#-])", r"(?![\w%]|[ \-.,]\d)"
_CARD = compile_later(rf"{_START}(?:[2-6]\d{{3}}(?:[ -]?\d{{4}}){{3}}|3[47]\d{{2}}[ -]?\d{{6}}[ -]?\d{{5}}){_END}")
_NETWORK = compile_later(r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|3[47]|6011|64[4-9]|65|62|35(?:2[89]|[3-8])")
# The number of Stripe's examples; no bank issues it.
_EXAMPLE_CARD = "4242424242424242"
_CARD_WORDS = (
    "card", "visa", "master", "amex", "credit", "debit", "karte", "tarjeta", "carte", "cartão", "cvv",
    "卡", "카드", "カード",
)  # fmt: skip
_OTHER_NUMBERS = frozenset(
    ("order", "invoice", "tracking", "ticket", "ref", "account", "item", "sku", "id", "no", "nr", "number")
)
_WORDS = compile_later(r"[^\W\d]+")
_BEFORE_CHARS = 40
# Twice a digit, less nine if that is more than nine.
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")
_ZERO = ord("0")
_IBAN = compile_later(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_COUNTRIES_BY_CHARS = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT",
    26: "IS TR",
    27: "FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB PL",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
}
# A letter counts as a number from 10 to 35.
_IBAN_DIGITS = str.maketrans({chr(ord("A") + number): str(10 + number) for number in range(26)})
_IBAN_CHARS = {country: chars for chars, countries in _COUNTRIES_BY_CHARS.items() for country in countries.split()}
_SSN = compile_later(r"(?<![\w-])(?!000|666|9)\d{3}([- ]?)(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])")
_SSN_WORD = compile_later(r"\b(?:[Ss][Ss][Nn]s?\b|[Ss]ocial.[Ss]ecurity|SOCIAL.SECURITY)")


def find_checked_numbers(text: str, kinds: bytes) -> Iterator[FoundSecret]:
    """The numbers of cards, bank accounts (IBAN) and social security in a text.

    `kinds` has a `0` for each digit, an `a` for each letter, '_' and '-', and a space for white space.
    """
    done = position = 0
    while likely := _LONG_NUMBER_KINDS.search(kinds, position):
        position = likely.start() + 1
        if number := _LONG_NUMBER.match(text, likely.start()):
            start, end = max(done, number.start() - _MAX_IBAN_HEAD), number.end() + _MAX_NUMBER_CHARS
            done = number.end()
            for secret in _find_near(text, start, end):
                yield secret
                done = max(done, secret.end)
            position = done


def _find_near(text: str, start: int, end: int) -> Iterator[FoundSecret]:
    for match in _CARD.finditer(text, start, end):
        if _is_card(match[0], text[max(0, match.start() - _BEFORE_CHARS) : match.start()]):
            yield FoundSecret("card_number", *match.span())
    for match in _IBAN.finditer(text, start, end):
        if length := _iban_length(match[0]):
            yield FoundSecret("iban", match.start(), match.start() + length)
    for match in _SSN.finditer(text, start, end):
        if _SSN_WORD.search(text[max(0, match.start() - _BEFORE_CHARS) : match.start()]):
            yield FoundSecret("social_security_number", *match.span())


def _is_card(number: str, before: str) -> bool:
    """Whether a number is that of a card, by itself and by the text before it."""
    digits = number.replace(" ", "").replace("-", "")
    if not _NETWORK.match(digits) or digits == _EXAMPLE_CARD or not _passes_luhn(digits):
        return False
    before = before.lower()
    if "test" in before:
        return False
    return contains_any(_CARD_WORDS, before) or _OTHER_NUMBERS.isdisjoint(_WORDS.findall(before)[-2:])


def _passes_luhn(digits: str) -> bool:
    codes = digits.encode("ascii", "replace")
    return (sum(codes[-1::-2]) + sum(codes[-2::-2].translate(_DOUBLED)) - _ZERO * len(codes)) % 10 == 0


def _iban_length(candidate: str) -> int:
    """How many characters of a candidate are an IBAN, as words in capitals may follow it; 0 if it is none."""
    wanted = _IBAN_CHARS.get(candidate[:2], 0)
    compact = candidate.replace(" ", "")[:wanted]
    if not wanted or len(compact) < wanted:
        return 0
    if int((compact[4:] + compact[:4]).translate(_IBAN_DIGITS)) % 97 != 1:
        return 0
    if candidate.startswith(compact):
        return wanted
    length = 0
    while wanted:
        wanted -= candidate[length] != " "
        length += 1
    return length


_WORD = compile_later(r"[A-Za-z]+")
# Words may be numbered, quoted, or in lines of their own, which may be escaped.
_BETWEEN_WORDS = compile_later(r"(?:[\s,\"'\d.)]|\\n){1,8}")
_MIN_WORDS = 12
# Letters in lower case, and blanks in the place of everything else.
_LETTERS = bytes(ord(chr(byte).lower()) if chr(byte).isalpha() and byte < 128 else 32 for byte in range(256))
_ROW = b"\1" * _MIN_WORDS


def find_seed_phrases(text: str) -> Iterator[FoundSecret]:
    """The seed phrases in a text: every row of at least twelve words of the list."""
    words = _seed_words()
    # Most texts about phrases have no such row: this takes a tenth of the time of looking at what is between words.
    if _ROW not in bytes(map(words.__contains__, text.encode("ascii", "replace").translate(_LETTERS).decode().split())):
        return
    start = end = count = 0
    for word in _WORD.finditer(text):
        is_seed_word = word[0].lower() in words
        if not is_seed_word or not _BETWEEN_WORDS.fullmatch(text, end, word.start()):
            if count >= _MIN_WORDS:
                yield FoundSecret("seed_phrase", start, end)
            start, count = word.start(), 0
        if is_seed_word:
            count, end = count + 1, word.end()
    if count >= _MIN_WORDS:
        yield FoundSecret("seed_phrase", start, end)


@cache
def _seed_words() -> frozenset[str]:
    lines = Path(__file__).with_name("seed_words.txt").read_text("ascii").splitlines()
    return frozenset(" ".join(line for line in lines if not line.startswith("#")).split())
