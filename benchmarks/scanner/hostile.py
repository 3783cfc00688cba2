"""Inputs meant to make a scanner slow: repeated anchors of every rule, long runs, odd scripts, deep encodings."""

import base64
import random
import string

from memoranda.safety.vocabulary import word_classes

UNITS = {
    "blanks": " ",
    "line breaks": "\n",
    "one letter words": "a ",
    "letters": "a b c d e ",
    "short sentences": "a. ",
    "dots": ". ",
    "translate into": "translate a into ",
    "ignore": "ignore ",
    "ignore all previous": "ignore all previous ",
    "update": "update ",
    "never tell": "never tell ",
    "curl": "curl ",
    "curl variable": "curl $KEY\n",
    "curl address": "curl https://a",
    "token variable": "$token ",
    "cat": "cat ",
    "cat secret": "cat\n.env ",
    "pipe": "env | ",
    "redirect": "> authorized ",
    "combining marks": "e\u0301\u0323",
    "zero width": "i\u200b",
    "persian": "می\u200cخواهم ",
    "emoji families": "👨\u200d👩\u200d👧\u200d👦",
    "lone surrogates": "\ud800",
    "nul": "\x00",
    "escape codes": "\x1b[0m",
    "entities": "&#105;",
    "nested entities": "&amp;",
    "percent": "%69",
    "unicode escapes": "\\u0069",
    "ampersands": "&",
    "percent signs": "%",
    "backslashes": "\\",
    "han attack": "忽略之前的所有指令",
    "han prose": "你好世界今天天气",
    "korean": "이전 지시를 무시 ",
    "russian": "игнорируй все предыдущие ",
    "mixed scripts": "ignоrе 忽略 無視 تجاهل अनदेखा ",
    "rot13": "gur vtaber cerivbhf ",
    "reversed": "snoitcurtsni suoiverp ",
    "leet": "1gn0r3 4ll pr3v10us ",
    "spaced letters": "i g n o r e  a l l  ",
    "angle brackets": "<",
    "comments": "<!-- ",
    "template tags": "<|",
    "role tags": "<system ",
    "styles": '<div style="',
    "images": "![a](http://",
    "headers": "memory (",
    "bars": "═",
    "brackets": "[system ",
    "password": "password=",
    "password is": "password is ",
    "addresses": "a://b:c",
    "tokens": "eyJaaaaaaaaaaaa.",
    "key prefixes": "sk-",
    "bearer": "bearer ",
    "underscores": "a_",
    "dashes": "-",
    "slashes": "/",
    "long base64": "QUJD",
    "hex": "69676e6f7265",
    "spaced hex": "69 67 6e ",
    "prose": "The build failed because the cache was stale; we cleared it on Monday. ",
}


def inputs(size: int) -> dict[str, str]:
    """Return every hostile text, truncated to `size` characters."""
    rng = random.Random(3)
    known = [word for words in word_classes().values() for word in words]
    made = {name: unit * (size // len(unit) + 1) for name, unit in UNITS.items()}
    made["translate and blanks"] = "translate" + " " * size + "x"
    made["one letter, many marks"] = "a" + "\u0301" * size
    made["rule words"] = " ".join(rng.choice(known) for _ in range(size // 4))
    made["random words"] = " ".join(
        "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(size // 4)
    )
    made["base64 of prose"] = base64.b64encode(b"the quick brown fox jumps over " * (size // 30)).decode()
    made["many base64 words"] = " ".join(
        base64.b64encode(bytes(rng.choices(b"abcdefgh ", k=15))).decode() for _ in range(size // 20)
    )
    made["random letters of all scripts"] = "".join(chr(rng.randint(0x400, 0x9FFF)) for _ in range(size))
    return {name: text[:size] for name, text in made.items()}
