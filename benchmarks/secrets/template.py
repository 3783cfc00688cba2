"""Generates values from templates such as `ghp_{36an}`: literal text, and counts of characters of a class."""

import base64
import random
import re
import string
import uuid
from collections.abc import Callable

_CLASSES = {
    "an": string.ascii_letters + string.digits,
    "lo": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "b32": string.ascii_lowercase + "234567",
    "B32": string.ascii_uppercase + "234567",
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "dig": string.digits,
    "let": string.ascii_letters,
    "url": string.ascii_letters + string.digits + "_-",
    "b64": string.ascii_letters + string.digits + "+/",
    "pw": string.ascii_letters + string.digits + "!#%&*+?@^",
}
_FIELD = re.compile(r"\{(\d*)([A-Za-z]\w*)\}")


def generate(template: str, rng: random.Random) -> str:
    """Fill the fields of a template; the same generator state gives the same value."""
    return _FIELD.sub(lambda field: _fill(field[2], int(field[1] or 1), rng), template)


def _fill(kind: str, count: int, rng: random.Random) -> str:
    if kind in _CLASSES:
        return "".join(rng.choices(_CLASSES[kind], k=count))
    makers: dict[str, Callable[[], str]] = {
        "uuid": lambda: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        # A number of 18 digits in base64, as the tokens of Discord begin.
        "snowflake": lambda: base64.b64encode(str(rng.randrange(2 * 10**17, 10**18)).encode()).decode(),
        "card": lambda: _card(rng),
        "cardgroups": lambda: _in_groups(_card(rng), " "),
        "cardhyphens": lambda: _in_groups(_card(rng), "-"),
        "ssn": lambda: f"{rng.randrange(100, 600)}-{rng.randrange(10, 99)}-{rng.randrange(1000, 9999)}",
        "iban": lambda: _iban(rng),
        "login": lambda: base64.b64encode(f"deploy:{_fill('an', count, rng)}".encode()).decode(),
        "word": lambda: " ".join(rng.choices(SEED_WORDS, k=count)),
        "password": lambda: _password(rng),
    }
    return makers[kind]()


def _in_groups(number: str, separator: str) -> str:
    return separator.join(number[start : start + 4] for start in range(0, len(number), 4))


def _card(rng: random.Random) -> str:
    digits = [int(digit) for digit in rng.choice(("4539", "4716", "5425", "5105", "2223", "6011"))]
    digits += [rng.randrange(10) for _ in range(11)]
    doubled = [digit if place % 2 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits)]
    return "".join(map(str, [*digits, -sum(doubled) % 10]))


def _iban(rng: random.Random) -> str:
    country, account = rng.choice(
        (
            ("DE", f"{rng.randrange(10**17, 10**18)}"),
            ("FR", f"{rng.randrange(10**22, 10**23)}"),
            ("GB", f"NWBK{rng.randrange(10**13, 10**14)}"),
            ("NL", f"ABNA{rng.randrange(10**9, 10**10)}"),
        )
    )
    number = int("".join(str(int(char, 36)) for char in f"{account}{country}00"))
    compact = f"{country}{98 - number % 97:02}{account}"
    return compact if rng.random() < 0.5 else _in_groups(compact, " ")


def _password(rng: random.Random) -> str:
    words = ("Sommer", "river", "Katze", "blue", "Delta", "winter", "Orion", "Paris", "tiger", "Milan")
    return f"{rng.choice(words)}{rng.choice('!#-_')}{rng.choice(words)}{rng.randrange(10, 9999)}"


# fmt: off
SEED_WORDS = (
    "abandon", "ability", "absent", "acoustic", "artist", "bamboo", "canvas", "clever", "debate", "dragon", "elephant",
    "fabric", "galaxy", "harvest", "immune", "jungle", "kitchen", "laundry", "mammal", "napkin", "oxygen", "pencil",
    "quantum", "rabbit", "sadness", "tackle", "umbrella", "vacuum", "wagon", "yellow", "zebra", "zone", "marble",
)
# fmt: on
