"""What is true of redaction whatever the text is."""

import random
import sys
import time
import tracemalloc
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.secrets import formats, situations
from benchmarks.secrets.lookalikes import written_lines
from benchmarks.secrets.template import generate
from memoranda.safety import redaction
from memoranda.safety.redaction import Redactor
from memoranda.safety.secrets import FoundSecret, find_secrets, finder
from memoranda.safety.secrets.checked_numbers import find_checked_numbers
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

ORDINARY = [line for line in written_lines() if not line.endswith(("\\", '"', "'", "=", ":"))]
RNG = random.Random(3)


def _unmarked(template: str) -> str:
    return generate(template, RNG).replace("<<", "").replace(">>", "")


SECRETS = [
    *(f"{variable}={_unmarked(template)}" for _, template, variable in (*formats.COMMON, *formats.NEWER)),
    *map(_unmarked, (*situations.FILES_AND_HEADERS.values(), *situations.SENTENCES.values())),
]
TEXTS = st.lists(st.sampled_from([*ORDINARY, *SECRETS]), min_size=1, max_size=8)


@given(TEXTS, st.sampled_from([" ", "\n", "\n\n", ", "]))
def test_redacting_twice_changes_nothing_more(lines: list[str], between: str) -> None:
    """What stands in for a credential is not taken for one."""
    redacted, _ = Redactor().text(between.join(lines))
    assert Redactor().text(redacted) == (redacted, 0)


@given(st.sampled_from(SECRETS), st.lists(st.sampled_from(ORDINARY), max_size=60), st.integers(0, 60))
def test_a_credential_is_found_wherever_it_stands(secret: str, lines: list[str], place: int) -> None:
    """At the beginning, in the middle or at the end of a text of any length."""
    alone = find_secrets(secret)
    before, after = lines[:place], lines[place:]
    text = "\n\n\n".join([*before, secret, *after])
    offset = len("\n\n\n".join([*before, ""])) if before else 0
    found = {(each.start - offset, each.end - offset) for each in find_secrets(text)}
    assert {(each.start, each.end) for each in alone} <= found


@given(st.text(alphabet="0123456789 -DE", max_size=60))
def test_a_number_of_a_card_or_an_account_has_two_groups_of_digits(text: str) -> None:
    """A text with neither eight digits in groups nor the groups of a social security number has none."""
    kinds = "".join("0" if char.isdigit() else " " if char.isspace() else "a" for char in text)
    has_groups = any(groups in kinds for groups in ("00000000", "0000 0000", "0000a0000", "000a00a0000"))
    assert has_groups or list(find_checked_numbers(text, kinds.encode())) == []


@given(TEXTS)
def test_texts_that_are_searched_together_hide_nothing(lines: list[str]) -> None:
    """A value is clean only if each of its texts is, and each is redacted as if it were alone."""
    redactor = Redactor()
    assert not redactor.is_clean(lines) or all(find_secrets(line) == [] for line in lines)
    assert redactor.value(lines)[0] == [redactor.text(line)[0] for line in lines]


@given(st.uuids())
def test_an_id_in_the_form_of_a_uuid_is_not_searched_and_hides_nothing(id: uuid.UUID) -> None:
    """Only one that begins like the number of a card is searched; a known value is found in this form, too."""
    name = str(id)
    assert not find_secrets(name) or name[:18].replace("-", "").isdigit()
    assert Redactor().is_clean([name]) == (not find_secrets(name))
    assert not Redactor([name]).is_clean([{"external_id": name}])


def test_an_id_in_the_form_of_a_card_number_is_searched() -> None:
    """A text that consists of such an id is redacted as before."""
    name = "41111111-1111-1111-a111-111111111111"
    assert not Redactor().is_clean([name])


@given(st.from_regex(r"(?:toolu|call)_[A-Za-z0-9]{8,32}", fullmatch=True))
def test_the_id_of_a_tool_call_is_not_searched_and_hides_nothing(name: str) -> None:
    """No credential has its form; a known value is found in this form, too."""
    assert find_secrets(name) == []
    assert Redactor().is_clean([{"tool_call_id": name}])
    assert not Redactor([name]).is_clean([{"tool_call_id": name}])


def test_keys_that_were_clean_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """They recur in every message; a key that is new is searched."""
    searched: list[str] = []

    def find(text: str) -> list[FoundSecret]:
        searched.append(text)
        return find_secrets(text)

    monkeypatch.setattr(redaction, "find_secrets", find)
    redactor = Redactor(["correct-horse-battery"])
    for _ in range(2):
        assert redactor.is_clean([{"finish_reason": "An ordinary sentence."}])
    assert ["finish_reason" in text for text in searched] == [True, False]
    assert not redactor.is_clean([{"finish_reason": "x", "password=Tr0ub4dor&3x": "y"}])
    assert not redactor.is_clean([{"finish_reason": "x", "correct-horse-battery": "y"}])


def test_a_name_is_searched_only_in_the_text_of_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id with digits does not cause the messages before it to be searched."""
    searched: list[str] = []

    def find_named(text: str) -> list[FoundSecret]:
        searched.append(text)
        return []

    monkeypatch.setattr(finder, "_find_named", find_named)
    assert Redactor().is_clean(["An ordinary sentence. " * 20, "item_4f1d22b9a0"])
    assert [text.strip("\n\0") for text in searched] == ["item_4f1d22b9a0"]


# The worst of some thousand combinations of parts that the rules look for.
HOSTILE = [
    "password=previous ", "password=Abc123xy! ", "密码是password=Abc123xy! ", "pwd=a1b2c3d4 ", "1:*:<password>whsec_",
    '"4539 1488 0343 6467 ', "#1", "pa-?sig=abcdefghijk1234567890пароль: 密码是", "MTk4NjIyNDgzNDcxOTI1MjQ4.",
    "\ncurl -u a:123-45-6789 pwd=a1b2c3d4 ", "aaaaaaaaaaaaaaaaaaaa.", "Bearer abcdefgh1234567890abcd ",
    "curl -u a:1-----BEGIN PRIVATE KEY-----`\\\\\\\"", "DE00as-sk-1234567890abcdef1234567890abcdef ENV A_TOKEN ",
]  # fmt: skip


def _cpu(text: str) -> float:
    """The least CPU time of three searches, in seconds."""
    times = []
    for _ in range(3):
        start = time.process_time()
        find_secrets(text)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    """Eight times the text takes about eight times as long; a rule that tries again and again would take 64 times."""
    short, long = (unit * 25_000)[:25_000], (unit * 200_000)[:200_000]
    assert _cpu(long) < max(24 * _cpu(short), 0.02) < GIVE_UP


@pytest.mark.parametrize(
    "unit",
    [
        "card 4539578763621486\n",
        "4539 5787 6362 1486 ",
        "GB82WEST12345698765432 ",
        "1:*:<password>whsec_",
        "pwd=a1b2c3d4 ",
        "h:5432:db:u:pw1A9x\n",
        "536-90-4399 ",
        "phrase abandon ability ",
        "token: a1b2c3d4e5f6a7b8\n",
    ],
)
def test_a_text_full_of_secrets_takes_little_work(unit: str) -> None:
    """The calls for each character, counted: 100 kB of the worst take about 260,000 calls, tens of milliseconds."""
    text = (unit * 100_000)[:100_000]
    find_secrets(text)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        find_secrets(text)
    finally:
        sys.setprofile(None)
    assert calls < 2.75 * len(text)


def test_a_credential_is_found_at_the_place_where_a_very_long_text_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long text is searched in parts, which share enough for a credential and its name."""
    monkeypatch.setattr(redaction, "_PART_CHARS", 1000)
    monkeypatch.setattr(redaction, "_SHARED_CHARS", 4000)
    before, after = "word " * 300, "\n" + "word " * 900
    missed = []
    for secret in SECRETS:
        text = f"{before[: 1000 - len(secret) // 2]}\n{secret}{after}"
        if Redactor().is_clean(text) and find_secrets(text):
            missed.append(secret)
    assert not missed


def test_searching_a_very_long_text_copies_a_part_of_it_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search makes several copies of what it searches."""
    monkeypatch.setattr(redaction, "_PART_CHARS", 20_000)
    monkeypatch.setattr(redaction, "_SHARED_CHARS", 1000)
    text = "word " * 60_000
    redactor = Redactor()
    redactor.is_clean(text[:1000])
    tracemalloc.start()
    try:
        assert redactor.is_clean(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(text)
