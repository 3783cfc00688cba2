"""The scenario of `make vendors`, with a small vendor instead of a real one."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.external.loading import discovery
from memoranda.external.loading.discovery import DiscoveredProvider
from memoranda.external.vendors.vendor import Turn
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor
from tests.acceptance.vendors.run import find_vendors, format_report
from tests.acceptance.vendors.scenario import FACTS, compare_turns, run_scenario, wait_for_deliveries
from tests.external.diary import diary_home
from tests.external.vendors.acme import AcmeDouble, AcmeProvider, AcmeVendor
from tests.external.vendors.vendor_contract import SECRET

pytestmark = pytest.mark.slow

TURNS = 40


class RepeatingVendor(AcmeVendor):
    """Does not look before it repeats."""

    def store_turn(self, turn: Turn) -> str:
        return super().store_turn(Turn(turn.key, 1, turn.time, turn.session_id, turn.user, turn.assistant))


class RepeatingProvider(AcmeProvider):
    vendor_class = RepeatingVendor


class RunningAcme(RealVendor):
    """The double as a real vendor."""

    name = "acme"
    title = "Acme, double"

    def __init__(self, cache: Path, double: AcmeDouble) -> None:
        super().__init__(cache)
        self._double = double

    def install(self) -> None:
        (self.folder / "program").write_bytes(b"x" * 2_000_000)

    def start(self) -> None:
        assert self._double.url

    def stop(self) -> None:
        self._double.fail("down")

    @property
    def port(self) -> int:
        return int(self._double.service.server_address[1])

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url}

    def variables(self) -> Mapping[str, str]:
        return {"ACME_API_KEY": SECRET}

    def stored_texts(self) -> list[str]:
        return self._double.stored_texts()

    def tool_calls(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [("acme_add", {"content": "x"}), ("acme_search", {"query": "x"})]


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[RunningAcme]:
    with AcmeDouble.start() as double:
        yield RunningAcme(tmp_path / "cache", double)


def bundle(monkeypatch: pytest.MonkeyPatch, provider: type[AcmeProvider]) -> None:
    found = DiscoveredProvider("acme", "bundled", f"{provider.__module__}:{provider.__name__}")
    monkeypatch.setattr(discovery, "BUNDLED", (found,))


def test_the_scenario_passes_for_a_vendor_that_keeps_its_promises(
    acme: RunningAcme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is measured, and the server has every turn once and in order."""
    bundle(monkeypatch, AcmeProvider)
    report = run_scenario(acme, tmp_path / "work", TURNS)
    assert (report.problems, report.reason) == ([], "")
    assert (report.turns, report.turns_while_down, report.lost_answers) == (TURNS, TURNS // 2, 1)
    assert report.tools == "2 of 2 called, 0 failed"
    assert report.recalled in {f"{found}/{len(FACTS)}" for found in range(1, len(FACTS) + 1)}
    assert report.attack == "stored; asked recall, acme_search; withheld from recall, acme_search"
    assert report.installed_megabytes == pytest.approx(2.0)
    assert "every turn once and in order" in format_report(report)


def test_the_scenario_notices_a_vendor_that_repeats_turns(
    acme: RunningAcme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost answer makes it store a turn twice."""
    bundle(monkeypatch, RepeatingProvider)
    report = run_scenario(acme, tmp_path / "work", TURNS)
    assert report.problems == ["1 turns are stored more than once, the first is 0"]


def test_a_vendor_that_cannot_run_is_reported_with_the_reason(
    acme: RunningAcme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not end the run of the others."""

    def refuse() -> None:
        raise CannotRun("npm is not installed")

    monkeypatch.setattr(acme, "install", refuse)
    assert "not run    npm is not installed" in format_report(run_scenario(acme, tmp_path / "work", TURNS))


@pytest.mark.parametrize(
    ("arrived", "problem"),
    [
        ([0, 1, 2], []),
        ([0, 2], ["1 turns are missing, the first is 1"]),
        ([0, 1, 1, 2], ["1 turns are stored more than once, the first is 1"]),
        ([1, 0, 2], ["turns are out of order"]),
    ],
)
def test_turns_are_compared(arrived: list[int], problem: list[str]) -> None:
    """Missing, repeated and moved ones are named."""
    assert compare_turns(arrived, 3) == problem


def test_every_module_of_a_vendor_can_be_run() -> None:
    """Each lists its ways to run, for a provider that exists."""
    names = {provider.name for provider in discovery.BUNDLED}
    for kinds in find_vendors([]).values():
        assert kinds
        assert {kind.name for kind in kinds} <= names


def test_waiting_counts_turns_that_are_recorded_and_not_queued(tmp_path: Path) -> None:
    """The delivery thread of a busy machine reads the record later than the check looks at the outbox."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session() as session:
        # Closed before the turn: nothing reads the record until the next session.
        session.external.close()
        with session.turn("a turn that is only recorded") as turn:
            turn.done("yes")
        began = time.monotonic()
        wait_for_deliveries(home, "diary", 0.5)
        assert time.monotonic() - began >= 0.5
