"""What the benchmark of redaction promises, with values that no rule has seen."""

import pytest

from benchmarks.secrets import carriers, formats, situations
from benchmarks.secrets.evaluate import changed_lines, missed_formats, missed_situations
from benchmarks.secrets.lookalikes import generated_lines, written_lines

SEED = 20260301


@pytest.mark.slow
@pytest.mark.parametrize("group", ["COMMON", "NEWER"])
@pytest.mark.parametrize("texts", ["USUAL", "OTHER"])
def test_at_most_five_formats_stay_in_clear(group: str, texts: str) -> None:
    """Each format in a sentence, an env file, quotes, JSON and YAML; and in nine other texts."""
    missed = missed_formats(getattr(formats, group), getattr(carriers, texts), SEED, 1)
    assert len({name for name, _, _ in missed}) <= 5, missed


def test_the_groups_have_the_size_that_the_figures_are_given_for() -> None:
    """So no figure becomes better because a format was left out."""
    assert (len(formats.COMMON), len(formats.NEWER), len(formats.UNTUNED)) >= (77, 70, 18)


def test_a_credential_in_a_file_or_header_is_found() -> None:
    """Cookies, signed addresses, `.netrc`, `.pgpass`, Docker's file, cards, accounts, seed phrases."""
    for name in situations.FILES_AND_HEADERS:
        assert missed_situations({name: situations.FILES_AND_HEADERS[name]}, SEED, 2) == []


def test_a_password_in_a_sentence_is_found() -> None:
    """In English and twenty other languages."""
    for name in [name for name in situations.SENTENCES if name != "English, login"]:
        assert missed_situations({name: situations.SENTENCES[name]}, SEED, 2) == []


def test_no_ordinary_line_is_changed() -> None:
    """Some eight hundred lines with hashes, ids, placeholders, code, numbers and sentences about passwords."""
    assert changed_lines(written_lines()) == []
    assert changed_lines(generated_lines(SEED)) == []
