"""The daily budget: background work stops at it, in however many processes it runs."""

import random
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import BudgetSpentError, ModelOverloadedError
from memoranda.models.model import Usage
from memoranda.models.spending.budget import BackgroundSpending
from memoranda.models.spending.call_record import CallRecord, store_calls
from memoranda.models.spending.ledger import Ledger
from memoranda.models.spending.settings import BudgetSettings
from tests.models.spending.models import QUESTION, Fixed
from tests.timing import GIVE_UP

NOON = datetime(2026, 11, 15, 12).timestamp()


def _spend(ledger: Ledger, model: Fixed, calls: int) -> int:
    """How many of so many background calls were made."""
    metered = ledger.metered(model, "review", background=True)
    for made in range(calls):
        try:
            metered.reply("", QUESTION)
        except BudgetSpentError:
            return made
    return calls


@pytest.mark.slow
def test_background_work_stops_when_its_money_is_spent(tmp_path: Path, server_url: str) -> None:
    """The call that exceeds the limit is the last one; calls for a user continue."""
    ledger = Ledger(tmp_path, BudgetSettings(daily_usd=0.10, daily_tokens=None), server_url=server_url)
    model = Fixed(Usage(10_000, 0))
    assert _spend(ledger, model, 10) == 4
    assert ledger.today().usd == pytest.approx(0.12)
    assert ledger.metered(model, "chat").reply("", QUESTION).text
    ledger.close()


@pytest.mark.slow
def test_background_work_stops_when_its_tokens_are_spent(tmp_path: Path, server_url: str) -> None:
    """Which is the limit for models whose price is unknown."""
    ledger = Ledger(tmp_path, BudgetSettings(daily_usd=0.10, daily_tokens=5_000), server_url=server_url)
    assert _spend(ledger, Fixed(Usage(1_900, 100), name="at-home"), 10) == 3
    ledger.close()


def test_none_means_no_limit_and_zero_allows_nothing(tmp_path: Path) -> None:
    """In words that cannot be mistaken for each other."""
    assert _spend(Ledger(tmp_path / "a", BudgetSettings(None, None)), Fixed(Usage(10**9, 0)), 3) == 3
    for settings in (BudgetSettings(0, None), BudgetSettings(None, 0)):
        model = Fixed(name="at-home")
        assert _spend(Ledger(tmp_path / "b", settings), model, 3) == 0
        assert model.asked == []


def test_the_budget_starts_again_the_next_day(tmp_path: Path, server_url: str) -> None:
    """The local calendar counts."""
    now = [NOON]
    ledger = Ledger(tmp_path, BudgetSettings(0.01, None), server_url=server_url, clock=lambda: now[0])
    assert _spend(ledger, Fixed(Usage(10_000, 0)), 5) == 1
    now[0] += 86_400
    assert _spend(ledger, Fixed(Usage(10_000, 0)), 5) == 1
    ledger.close()


def test_what_was_spent_is_known_after_a_restart(tmp_path: Path, server_url: str) -> None:
    """A program that is started often does not get a new budget each time."""
    made = 0
    for _ in range(6):
        ledger = Ledger(tmp_path, BudgetSettings(0.10, None), server_url=server_url)
        made += _spend(ledger, Fixed(Usage(10_000, 0)), 1)
        ledger.close()
    assert made == 4


def test_a_background_call_has_limits_even_if_its_caller_gives_none(tmp_path: Path) -> None:
    """What it may use at most is known before it begins."""
    model = Fixed()
    Ledger(tmp_path).metered(model, "review", background=True).reply("", QUESTION)
    assert model.asked[0]["max_tokens"]
    assert model.asked[0]["deadline"]


def test_a_call_that_was_turned_away_uses_nothing_of_the_budget(tmp_path: Path, server_url: str) -> None:
    """An overloaded service must not use up the day."""
    ledger = Ledger(tmp_path, BudgetSettings(0.01, None), server_url=server_url)
    for _ in range(5):
        with pytest.raises(ModelOverloadedError):
            ledger.metered(Fixed(raises=ModelOverloadedError("busy")), "review", background=True).reply("x", QUESTION)
    assert ledger.today() == BackgroundSpending()
    ledger.close()


def test_a_call_of_a_dead_process_counts_with_its_estimate(tmp_path: Path) -> None:
    """It may have been billed; after its deadline no other call waits for it."""
    now = [NOON]
    ledger = Ledger(tmp_path, BudgetSettings(0.01, None), clock=lambda: now[0])
    store_calls(
        ledger._file,
        [
            CallRecord(
                "review", NOON, True, outcome="running", cost_usd=0.02, most_usd=5.0, until=NOON + 60, input_tokens=9
            )
        ],
    )
    assert ledger.today().running == 1
    now[0] += 61
    assert ledger.today() == BackgroundSpending(9, 0.02)
    assert _spend(ledger, Fixed(), 1) == 0
    ledger.close()


def test_without_a_ledger_background_work_does_not_begin(tmp_path: Path) -> None:
    """The total of the day would be unknown."""
    (tmp_path / "home.db").write_bytes(b"this is not a database at all" * 100)
    model = Fixed()
    with pytest.raises(BudgetSpentError, match="unknown"):
        Ledger(tmp_path).metered(model, "review", background=True).reply("", QUESTION)
    assert model.asked == []


def test_with_prices_that_cannot_be_read_background_work_does_not_begin(tmp_path: Path) -> None:
    """A person's own prices are not passed over in silence."""
    (tmp_path / "prices.yaml").write_text("claude-*: dear\n")
    with pytest.raises(BudgetSpentError, match=r"prices\.yaml"):
        Ledger(tmp_path).metered(Fixed(), "review", background=True).reply("", QUESTION)


def test_a_second_call_waits_for_one_that_may_use_up_the_rest(tmp_path: Path) -> None:
    """And begins when there is something left after all."""
    ledger = Ledger(tmp_path, BudgetSettings(0.30, None))
    first_began = threading.Event()
    order: list[str] = []

    def dawdle() -> None:
        first_began.set()
        # Long enough for a second call that does not wait to begin before this one ends.
        time.sleep(0.4)
        order.append("first ends")

    thread = threading.Thread(target=lambda: _spend(ledger, Fixed(before=dawdle), 1))
    thread.start()
    assert first_began.wait(GIVE_UP)
    assert _spend(ledger, Fixed(before=lambda: order.append("second begins")), 1) == 1
    thread.join()
    assert order == ["first ends", "second begins"]
    ledger.close()


@given(
    limit=st.integers(1, 2_000),
    calls=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.booleans()), max_size=60),
)
def test_however_calls_overlap_the_limit_is_exceeded_by_one_call_at_most(
    limit: int, calls: list[tuple[int, int, bool]]
) -> None:
    """Each call uses at most what was reserved for it; they begin and end in any order."""
    settings = BudgetSettings(None, limit)
    used, under_way, largest = 0, list[tuple[int, int]](), 0
    for most, really, ends in calls:
        found = BackgroundSpending(used, 0.0, len(under_way), sum(each for each, _ in under_way))
        wanted = CallRecord("review", 0.0, True, most_tokens=most)
        if not found.is_over(settings) and found.has_room_for(wanted, settings):
            under_way.append((most, min(most, really)))
        if ends and under_way:
            _, cost = under_way.pop(random.Random(most).randrange(len(under_way)))
            used, largest = used + cost, max(largest, cost)
    for _, cost in under_way:
        used, largest = used + cost, max(largest, cost)
    assert used <= limit + largest


def test_nodes_with_one_server_share_one_budget(tmp_path: Path, postgres_url: str) -> None:
    """Two homes spend in turns, and together no more than one home would."""
    budget = BudgetSettings(0.10, None)
    nodes = [Ledger(tmp_path / name, budget, server_url=postgres_url) for name in "ab"]
    made = sum(_spend(nodes[number % 2], Fixed(Usage(10_000, 0)), 1) for number in range(10))
    assert made == 4
    assert [node.total().calls for node in nodes] == [4, 4]
    for node in nodes:
        node.close()


_HAMMER = """
import random, sys, time
from pathlib import Path
from memoranda.errors import BudgetSpentError
from memoranda.models.model import Usage
from memoranda.models.spending.ledger import Ledger
from memoranda.models.spending.call_record import store_calls
from memoranda.models.spending.settings import BudgetSettings
from tests.models.spending.models import QUESTION, Fixed
ledger = Ledger(Path(sys.argv[1]), BudgetSettings(float(sys.argv[2]), None))
chance = random.Random(int(sys.argv[3]))
made = 0
while True:
    model = Fixed(Usage(chance.randrange(1_000, 4_000), 10), before=lambda: time.sleep(chance.uniform(0, 0.01)))
    try:
        ledger.metered(model, "review", background=True).reply("", QUESTION, max_tokens=100)
    except BudgetSpentError:
        break
    made += 1
print(made)
"""


@pytest.mark.slow
def test_processes_that_hammer_a_budget_exceed_it_by_one_call_at_most(tmp_path: Path) -> None:
    """Three of them at once, each as fast as it can."""
    limit, dearest = 1.0, 4_000 * 3 / 1e6 + 10 * 15 / 1e6
    commands = [[sys.executable, "-c", _HAMMER, str(tmp_path), str(limit), str(seed)] for seed in range(3)]
    processes = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    made = [int(process.communicate(timeout=GIVE_UP)[0]) for process in processes]
    ledger = Ledger(tmp_path)
    assert sum(made) == ledger.total().calls
    assert limit <= ledger.today().usd <= limit + dearest
    assert all(made)


_DYING = """
import os, sys
from pathlib import Path
from memoranda.models.spending.ledger import Ledger
from memoranda.models.spending.call_record import store_calls
from tests.models.spending.models import QUESTION, Fixed
ledger = Ledger(Path(sys.argv[1]))
ledger.metered(Fixed(before=lambda: os.kill(os.getpid(), 9)), "review", background=True).reply("word " * 1000, QUESTION)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_in_a_call_leaves_it_in_the_ledger(tmp_path: Path) -> None:
    """Under way for those who look at once, with its estimate for those who add up."""
    died = subprocess.run([sys.executable, "-c", _DYING, str(tmp_path)], check=False, timeout=GIVE_UP)
    assert died.returncode == -9
    ledger = Ledger(tmp_path)
    assert ledger.today().running == 1
    assert ledger.total().input_tokens > 500
