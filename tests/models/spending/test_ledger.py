"""The ledger: every call is a row, and writing it delays no answer."""

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memoranda.errors import ModelOverloadedError, ModelReplyError
from memoranda.models.model import Usage
from memoranda.models.spending.ledger import Ledger
from tests.conftest import mode
from tests.models.spending.models import PRICED, QUESTION, Fixed
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow


def test_a_metered_model_is_the_model_itself(tmp_path: Path) -> None:
    """Name, provider, window, answer and every option are its own."""
    model = Fixed()
    metered = Ledger(tmp_path).metered(model, "chat")
    heard: list[str] = []
    reply = metered.reply("Be kind.", QUESTION, on_text=heard.append, max_tokens=7, deadline=9.0)
    assert (metered.name, metered.provider, metered.window) == (PRICED, "anthropic", 200_000)
    assert (reply.text, "".join(heard)) == ("yes, of course", "yes, of course")
    assert model.asked == [{"system": "Be kind.", "max_tokens": 7, "deadline": 9.0}]


def test_every_call_is_a_row_with_its_cost(tmp_path: Path, server_url: str) -> None:
    """Tokens as the provider counted them, money by the price table, per purpose, model, session and day."""
    ledger = Ledger(tmp_path, server_url=server_url)
    ledger.metered(Fixed(Usage(1_000_000, 0)), "chat", session_id="s1").reply("", QUESTION)
    ledger.metered(Fixed(Usage(0, 1_000_000)), "review", session_id="s2", background=True).reply("", QUESTION)
    assert [(each.name, each.calls, each.cost_usd) for each in ledger.totals("purpose")] == [
        ("review", 1, 15.0), ("chat", 1, 3.0)
    ]  # fmt: skip
    assert {each.name for each in ledger.totals("session")} == {"s1", "s2"}
    assert [(each.name, each.calls) for each in ledger.totals("model")] == [(PRICED, 2)]
    assert [each.cost_usd for each in ledger.totals("day")] == [18.0]
    ledger.close()


def test_cached_tokens_cost_what_the_cache_costs(tmp_path: Path, server_url: str) -> None:
    """The cached part is part of the input, and is not paid twice."""
    ledger = Ledger(tmp_path, server_url=server_url)
    used = Usage(1_000_000, 0, cache_read_tokens=800_000, cache_write_tokens=100_000)
    ledger.metered(Fixed(used), "chat").reply("", QUESTION)
    total = ledger.total()
    assert total.cost_usd == pytest.approx(0.1 * 3 + 0.8 * 0.3 + 0.1 * 3.75)
    assert total.cached == 0.8


def test_a_model_without_a_price_shows_tokens_and_no_amount(tmp_path: Path, server_url: str) -> None:
    """Unknown is not free: the total counts the calls without a price."""
    ledger = Ledger(tmp_path, server_url=server_url)
    ledger.metered(Fixed(name="llama-at-home", provider="openai"), "chat").reply("", QUESTION)
    total = ledger.total()
    assert (total.cost_usd, total.unpriced, total.input_tokens) == (0.0, 1, 1_000)


def test_calls_of_a_provider_without_usage_are_estimated(tmp_path: Path) -> None:
    """The ledger has numbers even if a server reports no usage."""
    ledger = Ledger(tmp_path)
    ledger.metered(Fixed(Usage()), "chat").reply("word " * 400, QUESTION)
    total = ledger.total()
    assert 300 < total.input_tokens < 900
    assert total.output_tokens > 0


def test_a_failed_call_is_a_row_too(tmp_path: Path) -> None:
    """Turned away costs nothing; an answer that made no sense was paid for."""
    ledger = Ledger(tmp_path)
    for error in (ModelOverloadedError("busy"), ModelReplyError("garbage")):
        with pytest.raises(type(error)):
            ledger.metered(Fixed(raises=error), type(error).__name__).reply("word " * 400, QUESTION)
    turned_away, garbage = sorted(ledger.totals("purpose"), key=lambda each: each.cost_usd)
    assert (turned_away.failed, turned_away.input_tokens, turned_away.cost_usd) == (1, 0, 0.0)
    assert garbage.failed == 1
    assert garbage.cost_usd > 0


def test_an_interrupted_answer_is_counted_as_far_as_it_came(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a stream: what was sent and heard was paid for."""
    ledger = Ledger(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        ledger.metered(Fixed(raises=KeyboardInterrupt()), "chat").reply("", QUESTION, on_text=lambda text: None)
    total = ledger.total()
    assert total.failed == 1
    assert total.input_tokens > 0
    assert total.output_tokens > 0


def test_one_users_spending_is_found_apart(tmp_path: Path, server_url: str) -> None:
    """For a gateway that wants to know who causes what."""
    ledger = Ledger(tmp_path, server_url=server_url)
    for user in ("ann", "ann", "bob"):
        ledger.metered(Fixed(), "chat", user_id=user).reply("", QUESTION)
    assert [ledger.total(user=user).calls for user in ("ann", "bob", "")] == [2, 1, 0]


def test_looking_leaves_no_trace(tmp_path: Path) -> None:
    """The file is made with the first call, and is private."""
    ledger = Ledger(tmp_path)
    assert (ledger.totals(), ledger.total().calls, ledger.today().tokens) == ([], 0, 0)
    assert list(tmp_path.iterdir()) == []
    ledger.metered(Fixed(), "chat").reply("", QUESTION)
    ledger.close()
    assert mode(tmp_path / "home.db") == 0o600


def test_an_answer_does_not_wait_for_a_ledger_that_is_locked(tmp_path: Path) -> None:
    """The row is written once the lock is released."""
    ledger = Ledger(tmp_path)
    ledger.metered(Fixed(), "chat").reply("", QUESTION)
    assert ledger.total().calls == 1
    other = Ledger(tmp_path)
    with other._file.open().writing():
        began = time.monotonic()
        ledger.metered(Fixed(), "chat").reply("", QUESTION)
        # A write waits ten seconds for the lock.
        assert time.monotonic() - began < 9
    assert ledger.total().calls == 2
    other.close()
    ledger.close()


def test_an_answer_does_not_fail_with_a_ledger_that_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says that calls are missing."""
    (tmp_path / "home.db").write_bytes(b"this is not a database at all" * 100)
    ledger = Ledger(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert ledger.metered(Fixed(), "chat").reply("", QUESTION).text == "yes, of course"
        ledger.close()
    assert "missing from the ledger" in caplog.text


_BRIEF = """
import sys
from pathlib import Path
from memoranda.models.spending.ledger import Ledger
from tests.models.spending.models import QUESTION, Fixed
ledger = Ledger(Path(sys.argv[1]))
for number in range(20):
    ledger.metered(Fixed(), "chat").reply("", QUESTION)
"""


def test_a_program_that_just_ends_leaves_its_rows(tmp_path: Path) -> None:
    """The caller does not have to close it, and the next program continues the count."""
    for _ in range(2):
        subprocess.run([sys.executable, "-c", _BRIEF, str(tmp_path)], check=True, timeout=GIVE_UP)
    assert Ledger(tmp_path).total().calls == 40


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    """No row is lost among many at once."""
    ledger = Ledger(tmp_path)
    metered = ledger.metered(Fixed(), "chat")
    threads = [threading.Thread(target=lambda: [metered.reply("", QUESTION) for _ in range(25)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.total().calls == 200
    ledger.close()
