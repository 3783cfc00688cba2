"""How errors are read: what a service asks to wait, and how long its words are quoted."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from memoranda.errors import ContextTooLongError, ModelOverloadedError, ModelReplyError
from memoranda.models.model_call import failure_from_status, quote, retry_after

pytestmark = pytest.mark.slow


def test_the_wait_is_read_in_every_form() -> None:
    """It may be milliseconds, seconds or a date; an invalid value counts as none."""
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "2"}) == 2
    soon = retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)})
    assert soon is not None
    assert 25 < soon <= 30
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    "said",
    [
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Please reduce the length of the messages or completion.",
        "input is too long for requested model",
        "context window exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "Trying to keep the first 5000 tokens when context the overflows.",
    ],
)
def test_many_words_mean_that_the_context_is_too_long(said: str) -> None:
    """Each service has its own."""
    assert isinstance(failure_from_status("m", 400, said).error, ContextTooLongError)


def test_a_rate_limit_on_tokens_is_not_a_context_that_is_too_long() -> None:
    """Waiting helps, compressing does not."""
    failure = failure_from_status(
        "m", 429, "Rate limit reached: tokens per min (TPM): Limit 30000, Requested 31000", after=3.0
    )
    assert isinstance(failure.error, ModelOverloadedError)
    assert (failure.retry, failure.retry_after) == (True, 3.0)


def test_an_unknown_refusal_is_quoted_in_one_line() -> None:
    """Shortened to what a person reads."""
    failure = failure_from_status("m", 422, "first\nsecond " + "x" * 1_000)
    assert isinstance(failure.error, ModelReplyError)
    assert "first second" in str(failure.error)
    assert len(quote("y" * 1_000)) < 310
