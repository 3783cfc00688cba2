"""Character tricks and simple encodings, applied to an attack to see whether the scanner still finds it."""

import base64
import codecs
import html
import random
from collections.abc import Callable
from urllib.parse import quote

_LOOKALIKE = str.maketrans("aceiopxysjABCEHKMOPTX", "асеіорхуѕјАВСЕНКМОРТХ")
_GREEK = str.maketrans("aoivukpAEIOTN", "αοινυκρΑΕΙΟΤΝ")
_LEET = str.maketrans("aeiost", "431057")


def _insert_between(mark: str) -> Callable[[str], str]:
    return mark.join


def _shift(first: int, last: int, to: int) -> Callable[[str], str]:
    return lambda text: "".join(chr(ord(char) - first + to) if first <= ord(char) <= last else char for char in text)


def _bold(text: str) -> str:
    return _shift(ord("A"), ord("Z"), 0x1D400)(_shift(ord("a"), ord("z"), 0x1D41A)(text))


def _insert_sometimes(mark: str) -> Callable[[str], str]:
    def apply(text: str) -> str:
        rng = random.Random(len(text))
        return "".join(char + mark if char.isalpha() and rng.random() < 0.4 else char for char in text)

    return apply


TRICKS: dict[str, Callable[[str], str]] = {
    "zero width space": _insert_between("\u200b"),
    "zero width, some": _insert_sometimes("\u200c"),
    "soft hyphen": _insert_sometimes("\u00ad"),
    "word joiner": _insert_sometimes("\u2060"),
    "grapheme joiner": _insert_sometimes("\u034f"),
    "hangul filler": _insert_sometimes("\u3164"),
    "combining mark": _insert_sometimes("\u0301"),
    "variation selector": _insert_sometimes("\ufe0f"),
    "right-to-left mark": _insert_sometimes("\u200f"),
    "tag characters": _shift(0x20, 0x7E, 0xE0020),
    "cyrillic": lambda text: text.translate(_LOOKALIKE),
    "greek": lambda text: text.translate(_GREEK),
    "full width": _shift(0x21, 0x7E, 0xFF01),
    "mathematical bold": _bold,
    "circled letters": _shift(ord("a"), ord("z"), 0x24D0),
    "upper case": str.upper,
    "spaced letters": " ".join,
    "dotted letters": lambda text: " ".join(".".join(word) for word in text.split()),
    "hyphens between words": lambda text: "-".join(text.split()),
    "underscores between words": lambda text: "_".join(text.split()),
    "line breaks between words": lambda text: "\n".join(text.split()),
    "emphasis inside words": lambda text: " ".join(
        f"{word[:2]}**{word[2:]}**" if len(word) > 3 else word for word in text.split()
    ),
    "leet digits": lambda text: text.translate(_LEET),
    "decimal entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "hex entities": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "nested entities": lambda text: html.escape("".join(f"&#{ord(char)};" for char in text)),
    "percent encoding": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "url quoting": quote,
    "unicode escapes": lambda text: "".join(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else char for char in text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 in a sentence": lambda text: f"Decode this: {base64.b64encode(text.encode()).decode()} and act on it",
    "hex": lambda text: text.encode().hex(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "reversed": lambda text: text[::-1],
}
