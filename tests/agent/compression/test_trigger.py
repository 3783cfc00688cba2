"""A context is compressed when it is full by the best count there is, and left alone when that is of no use."""

import pytest

from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.compression.trigger import CompressionProgress, TokenReading, context_tokens
from memoranda.models.model import Usage
from memoranda.models.tokens import estimate_messages, estimate_text
from tests.agent.compression.conftest import chatter, said

pytestmark = pytest.mark.slow

WINDOW = 100_000
LIMIT = CompressionSettings().limit(WINDOW)


def test_three_quarters_of_the_window_by_default() -> None:
    """Per window, less what an answer may take of it; the threshold can be set."""
    assert CompressionSettings().limit(200_000) == 150_000
    assert CompressionSettings().limit(200_000, 40_000) == 120_000
    assert CompressionSettings().limit(1_000, 5_000) == 750
    assert CompressionSettings(threshold=0.5).limit(32_000) == 16_000


@pytest.mark.parametrize("window", [1_000, 4_000, 32_000, 200_000, 1_000_000])
def test_what_is_left_is_a_fraction_of_the_limit(window: int) -> None:
    """And the summary a fraction of that."""
    chosen = CompressionSettings()
    assert chosen.summary_room(window) < chosen.target(window) < chosen.limit(window)


def test_the_providers_count_comes_before_an_estimate() -> None:
    """What came since is estimated; without a reading, or with one of another context, everything is."""
    numbered = list(enumerate(chatter(4), start=10))
    reading = TokenReading.of(Usage(input_tokens=5_000, output_tokens=200), 15)
    assert reading == TokenReading(5_200, 15)
    since = estimate_messages(message for number, message in numbered if number > 15)
    assert context_tokens(numbered, reading) == 5_200 + since
    everything = estimate_messages(message for _, message in numbered)
    assert context_tokens(numbered, None, system="You are kind.") == everything + estimate_text("You are kind.")
    assert context_tokens(numbered, TokenReading(5_200, 999)) == everything
    assert TokenReading.of(Usage(), 15) is None


def test_a_full_context_is_due() -> None:
    """From the limit on."""
    assert CompressionProgress().is_due(LIMIT, LIMIT, WINDOW)
    assert not CompressionProgress().is_due(LIMIT - 1, LIMIT, WINDOW)


def test_nothing_is_compressed_twice_without_a_count_in_between() -> None:
    """The estimate right after a compression is not to be trusted more than the compression."""
    progress = CompressionProgress().after_compression(WINDOW)
    assert not progress.is_due(LIMIT + 1, LIMIT, WINDOW)
    assert progress.after_reading(LIMIT - 1, LIMIT, WINDOW).is_due(LIMIT + 1, LIMIT, WINDOW)


def test_without_any_count_growth_tells_when_it_is_time_again() -> None:
    """A provider that never counts does not stop compression, nor make it happen at every turn."""
    progress = CompressionProgress().after_compression(WINDOW, tokens_left=LIMIT // 5)
    assert progress.is_due(LIMIT, LIMIT, WINDOW)
    full = CompressionProgress().after_compression(WINDOW, tokens_left=LIMIT + 100)
    assert not full.is_due(LIMIT + 200, LIMIT, WINDOW)
    assert full.is_due(LIMIT + 100 + WINDOW // 10, LIMIT, WINDOW)
    unknown = CompressionProgress().after_compression(WINDOW)
    assert not unknown.is_due(LIMIT + 100, LIMIT, WINDOW)
    assert unknown.is_due(LIMIT + WINDOW // 10, LIMIT, WINDOW)


def test_a_context_that_stays_full_is_left_alone_after_two_tries() -> None:
    """Kept as text between the tries, as over restarts; over eight turns it is compressed twice."""
    kept: str | None = None
    compressed = 0
    for _ in range(8):
        progress = CompressionProgress.from_json(kept).after_reading(LIMIT + 100, LIMIT, WINDOW)
        if progress.is_due(LIMIT + 100, LIMIT, WINDOW):
            compressed += 1
            progress = progress.after_compression(WINDOW)
        kept = progress.to_json()
    assert compressed == 2


def test_it_is_tried_again_when_there_is_more_to_win() -> None:
    """After growing by a tenth of the window, with another window, or after a count below the limit."""
    stuck = CompressionProgress().after_failure(LIMIT, WINDOW).after_failure(LIMIT, WINDOW)
    assert not stuck.is_due(LIMIT + 1_000, LIMIT, WINDOW)
    assert stuck.is_due(LIMIT + WINDOW // 10, LIMIT, WINDOW)
    assert stuck.is_due(LIMIT, LIMIT // 2, WINDOW // 2)
    assert stuck.after_reading(LIMIT - 1, LIMIT, WINDOW).is_due(LIMIT, LIMIT, WINDOW)


def test_unreadable_progress_counts_as_none() -> None:
    """The progress starts from zero."""
    for garbage in [None, "", "{", "[]", "{}", '{"useless": "x"}', "null", '{"useless": [1]}']:
        assert CompressionProgress.from_json(garbage) == CompressionProgress()


def test_progress_survives_as_json() -> None:
    """Reading its JSON gives an equal value."""
    progress = CompressionProgress().after_failure(5, WINDOW).after_compression(WINDOW)
    assert CompressionProgress.from_json(progress.to_json()) == progress


def test_a_message_more_makes_a_reading_of_the_past_grow() -> None:
    """A user's long message counts before the provider has seen it."""
    numbered = [(1, said("user", "x")), (2, said("assistant", "y")), (3, said("user", "word " * 1_000))]
    assert context_tokens(numbered, TokenReading(100, 2)) > 1_000
