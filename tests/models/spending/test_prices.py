"""Prices: the table that comes with the program, and the person's own, which wins."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import ConfigError
from memoranda.models.model import Usage
from memoranda.models.spending.prices import FREE, Price, Prices

pytestmark = pytest.mark.slow


def test_well_known_models_have_a_price(tmp_path: Path) -> None:
    """By the beginning of their names, with or without a vendor before it."""
    for model, per_million in [
        ("claude-sonnet-4-5-20250929", 3),
        ("anthropic/claude-sonnet-4.5", 3),
        ("claude-opus-4-1-20250805", 15),
        ("claude-opus-4-5", 5),
        ("claude-opus-5-5", 4),
        ("claude-sonnet-5-5", 2),
        ("gpt-5", 1.25),
        ("gpt-5-mini-2025-08-07", 0.25),
        ("GPT-4.1-nano", 0.10),
        ("gpt-4o-2024-11-20", 2.50),
    ]:
        price = Prices(tmp_path).of("openai", model)
        assert price is not None
        assert price.input == per_million


@pytest.mark.parametrize("model", ["", "llama3.2", "gpt-5-turbo-something", "claude", "gpt-4o-audio-preview"])
def test_an_unknown_model_has_no_price(tmp_path: Path, model: str) -> None:
    """A guess would be worse."""
    assert Prices(tmp_path).of("openai", model) is None


def test_a_scripted_model_costs_nothing(tmp_path: Path) -> None:
    """Nor does one that plays from a script."""
    assert Prices(tmp_path).of("scripted", "scripted-model") == FREE
    assert Prices(tmp_path).of("scripted", "claude-opus-5") == FREE


def test_a_persons_own_prices_win_and_count_at_once(tmp_path: Path) -> None:
    """By pattern, by provider and pattern, and again when the file has changed."""
    prices = Prices(tmp_path)
    file = tmp_path / "prices.yaml"
    file.write_text('"llama*": 0\n"anthropic/claude-sonnet-4*": {input: 1, output: 2, cache_read: 0.5}\n')
    assert prices.of("openai", "llama3.2") == FREE
    assert prices.of("anthropic", "claude-sonnet-4-5") == Price(1, 2, 0.5)
    assert prices.of("bedrock", "claude-sonnet-4-5") != Price(1, 2, 0.5)
    file.write_text("claude-sonnet-4*: {input: 7, output: 8}\n")
    os.utime(file, ns=(1, 1))
    assert prices.of("anthropic", "claude-sonnet-4-5") == Price(7, 8)
    file.unlink()
    assert prices.of("anthropic", "claude-sonnet-4-5") == Price(3, 15, 0.3, 3.75)


@pytest.mark.parametrize(
    "text",
    [
        "just words", "- a\n- b", "m: {input: 1}", "m: {input: -1, output: 1}", "m: {input: yes, output: 1}",
        "m: {input: .inf, output: 1}", "m: {input: 1, output: 1, per: 2}", "m: 3", "a: b: c", "\x00", "m: false",
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    """It is not passed over."""
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.yaml"):
        Prices(tmp_path).of("openai", "gpt-5")


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    """Nor does one of comments alone."""
    (tmp_path / "prices.yaml").write_text("# my prices\n")
    assert Prices(tmp_path).of("openai", "gpt-5") == Prices(tmp_path / "elsewhere").of("openai", "gpt-5")


def test_long_prompts_can_have_a_separate_price(tmp_path: Path) -> None:
    """Some vendors charge more for them."""
    price = Prices(tmp_path).of("anthropic", "claude-haiku-5-5")
    assert price is not None
    assert price.cost(Usage(100_000, 0)) == pytest.approx(0.01)
    assert price.cost(Usage(100_001, 0)) == pytest.approx(0.0500005)


_PRICES = st.builds(
    Price, st.floats(0, 100), st.floats(0, 100), st.none() | st.floats(0, 100), st.none() | st.floats(0, 100)
)


@given(_PRICES, st.integers(0, 10**6), st.integers(0, 10**6), st.data())
def test_no_call_costs_more_than_the_most_it_can(price: Price, sent: int, output: int, data: st.DataObject) -> None:
    """Whatever part of the input is cached."""
    read = data.draw(st.integers(0, sent))
    written = data.draw(st.integers(0, sent - read))
    cost = price.cost(Usage(sent, output, read, written))
    assert 0 <= cost <= price.max_cost(sent, output) * (1 + 1e-9)
