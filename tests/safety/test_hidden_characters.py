"""Invisible and direction-changing characters, and the places where scripts and emoji need them."""

from memoranda.safety import scan

INVISIBLE = (
    "\u034f \u115f \u180e \u200b \u200c \u200d \u2060 \u2061 \u2063 \u3164 \ufe0f \ufeff \uffa0 \U000e0041 \U000e0101"
)
DIRECTION = "\u202a \u202b \u202d \u202e \u2066 \u2068 \u200e \u200f \u061c"
CONTROL = ("\x00", "\x07", "\x1b", "\x7f", "\x85", "\r", "\ud800")


def test_an_invisible_character_between_latin_letters_is_found() -> None:
    """Whatever shows nothing and joins nothing is reported where it stands."""
    for char in INVISIBLE.split(" "):
        findings = scan(f"note{char}book", learned=False)
        assert [(finding.id, finding.span) for finding in findings] == [("invisible_character", (4, 5))]


def test_a_direction_change_is_found() -> None:
    """Overrides, isolates and stray marks are reported in left-to-right text."""
    for char in DIRECTION.split(" "):
        assert [finding.id for finding in scan(f"note{char}book", learned=False)] == ["direction_override"]


def test_a_control_character_is_found() -> None:
    """NUL, escapes, a lone carriage return and lone surrogates are reported."""
    for char in CONTROL:
        assert [finding.id for finding in scan(f"note{char}book", learned=False)] == ["control_character"]


def test_joiners_where_writing_needs_them_pass() -> None:
    """Emoji sequences, joining scripts, ideographic variants and soft hyphens are clean."""
    for text in [
        "👨\u200d👩\u200d👧\u200d👦 on holiday",
        "🏳\ufe0f\u200d🌈 and ❤\ufe0f\u200d🔥",
        "5\ufe0f\u20e3 of 7",
        "👍🏽 ☀\ufe0f ✔\ufe0e",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f won",
        "می\u200cخواهم کتاب\u200cها",
        "न्\u200d और क्\u200dष",
        "শ্\u200cরী",
        "வண\u200dக்கம்",
        "ശ്രീ\u200dകല",
        "ශ්\u200dරී ලංකා",
        "\ufeffStarts with a byte order mark",
        "שלום\u200f! 5",
        "葛\U000e0100城",
        "ภาษา\u200bไทย",
        "line\r\nline\tcell\fpage",
        "co\u00adoperate",
    ]:
        assert scan(text) == ()


def test_an_emoji_flag_cannot_carry_a_message() -> None:
    """Tag characters beyond a real subdivision flag are found."""
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "ignore")
    assert "invisible_character" in {finding.id for finding in scan(f"🏴{hidden}")}


def test_joiners_do_not_pile_up() -> None:
    """Several joiners in a row hide data even between letters that may be joined."""
    assert scan("می\u200c\u200d\u200cخ")
