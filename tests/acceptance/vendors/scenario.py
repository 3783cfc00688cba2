"""The common scenario of `make vendors`: write, recall, tools, an attack, an outage, forget, on a vendor's real server.

The outage runs through sessions as an application has them, with the record, the outbox and the delivery thread. The
server is cut off for half of the turns, and answers are lost at intervals besides. Afterwards the server itself is
asked what it has.
"""

import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import memoranda
from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import discover
from memoranda.external.loading.loader import load
from memoranda.external.loading.setup import read_settings, write_settings
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.provider import MemoryProvider
from memoranda.home import config
from memoranda.support.home import Home
from tests.acceptance.vendors.attack import check_attack
from tests.acceptance.vendors.machine import megabytes_of, memory_of
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor
from tests.acceptance.vendors.tcp_gate import TcpGate

FACTS = (
    ("My bicycle is a green Brompton.", "Which bicycle do I ride?", "Brompton"),
    ("Our staging cluster is called heron.", "What is our staging cluster called?", "heron"),
    ("The dentist appointment is on Thursday.", "When is the dentist appointment?", "Thursday"),
    ("My sister Clara lives in Lisbon.", "Where does my sister Clara live?", "Lisbon"),
    ("The invoices are stored in the blue cabinet.", "Where are the invoices stored?", "cabinet"),
    ("I am allergic to walnuts.", "What am I allergic to?", "walnuts"),
    ("The deployment key expires in December.", "When does the deployment key expire?", "December"),
    ("Our parser is written in Rust.", "In which language is our parser written?", "Rust"),
    ("The zebra in the zoo is called Otto.", "What is the zebra in the zoo called?", "Otto"),
    ("The meeting room with the piano is Mozart.", "Which meeting room has the piano?", "Mozart"),
)
_LOSE_EVERY = 100
_RECALL_SECONDS = 30.0
_SECONDS_PER_TURN = 20.0
_FAILURE_SECONDS = 120.0
_SESSION = "memoranda-vendors"


@dataclass(slots=True)
class Report:
    """What one vendor did. `problems` are promises that did not hold; `reason` is why it could not run."""

    title: str
    reason: str = ""
    install_seconds: float = 0.0
    installed_megabytes: float = 0.0
    start_seconds: float = 0.0
    memory_megabytes: float = 0.0
    answer: str = ""
    write_seconds: float = 0.0
    recall_seconds: float = 0.0
    recalled: str = ""
    tools: str = ""
    attack: str = ""
    turns: int = 0
    turns_while_down: int = 0
    lost_answers: int = 0
    outage_seconds: float = 0.0
    slowest_turn_seconds: float = 0.0
    forgotten: str = ""
    problems: list[str] = field(default_factory=list)


def run_scenario(vendor: RealVendor, work: Path, turns: int) -> Report:
    """Run everything; a vendor that cannot run is a report with a reason. `work` is an empty folder for homes."""
    report = Report(vendor.title)
    try:
        show_progress(vendor, "installing")
        report.install_seconds = _timed(vendor.install)
        report.installed_megabytes = megabytes_of(vendor.folder)
        show_progress(vendor, "starting")
        report.start_seconds = _timed(vendor.start)
        report.memory_megabytes = memory_of(vendor.processes)
        gate = None if vendor.port is None else TcpGate(vendor.port)
        try:
            _check_provider(vendor, gate, work / "provider", report)
            _check_attack(vendor, gate, work / "attack", report)
            show_progress(vendor, f"{turns} turns, half of them without the server")
            _check_outage(vendor, gate, work / "outage", turns, report)
        finally:
            if gate is not None:
                gate.close()
    except CannotRun as error:
        report.reason = str(error)
    finally:
        vendor.stop()
    return report


def _check_provider(vendor: RealVendor, gate: TcpGate | None, home: Path, report: Report) -> None:
    """Write, recall, tools and forget, by calling the provider's hooks."""
    set_up_home(vendor, gate, home)
    with start_provider(vendor, home) as provider:
        report.answer = provider.test_connection()
        show_progress(vendor, "writing and recalling")
        report.write_seconds = statistics.median(
            _timed(lambda number=number, fact=fact: _write(provider, number, fact))  # type: ignore[misc]
            for number, (fact, _, _) in enumerate(FACTS)
        )
        vendor.settle()
        _check_recall(vendor, provider, report)
        _check_tools(vendor, provider, report)
        show_progress(vendor, "forgetting")
        told = provider.forget()
        report.forgotten = (
            f"{', '.join(told['deleted']) or 'nothing'}; remaining: {', '.join(told['remaining']) or '-'}"
        )
        vendor.settle()
        left = [fact for fact, _, _ in FACTS if fact in "\n".join(vendor.stored_texts())]
        if left and not told["remaining"]:
            report.problems.append(f"{len(left)} of {len(FACTS)} turns are still stored after forget, and it says none")


def _check_recall(vendor: RealVendor, provider: MemoryProvider, report: Report) -> None:
    found, seconds = 0, []
    for _, question, word in FACTS:
        began = time.monotonic()
        try:
            provider.queue_prefetch(question, session_id=_SESSION)
            recalled = provider.prefetch(question, session_id=_SESSION, seconds=_RECALL_SECONDS)
        except ProviderError as error:
            report.problems.append(f"recall failed: {error}")
            return
        seconds.append(time.monotonic() - began)
        found += word in recalled
    report.recall_seconds = statistics.median(seconds)
    report.recalled = f"{found}/{len(FACTS)}"
    if vendor.recalls_facts and not found:
        report.problems.append("recall found none of the facts")


def _check_tools(vendor: RealVendor, provider: MemoryProvider, report: Report) -> None:
    """Call the tools; a call without an error counts."""
    calls = vendor.tool_calls()
    answers = [(name, provider.handle_tool_call(name, dict(args), session_id=_SESSION)) for name, args in calls]
    failed = [f"{name}: {answer[:200]}" for name, answer in answers if '"error"' in answer]
    offered = {schema["name"] for schema in provider.get_tool_schemas()}
    report.tools = f"{len({name for name, _ in calls} & offered)} of {len(offered)} called, {len(failed)} failed"
    report.problems += [f"a tool failed: {failure}" for failure in failed]


def _check_attack(vendor: RealVendor, gate: TcpGate | None, home: Path, report: Report) -> None:
    show_progress(vendor, "asking for an attack in its memory")
    set_up_home(vendor, gate, home)
    report.attack, problems = check_attack(
        vendor, home, lambda: wait_for_deliveries(home, vendor.name, _FAILURE_SECONDS)
    )
    report.problems += problems


def _check_outage(vendor: RealVendor, gate: TcpGate | None, home: Path, turns: int, report: Report) -> None:
    """Run turns while the server is down for half of them, and compare what it has with what was said."""
    set_up_home(vendor, gate, home)
    # Recall is measured elsewhere, and would take most of the time.
    config.set_value(Home.at(home), "provider.mode", "tools")
    first_down, first_up = turns // 4, turns // 4 + turns // 2
    began = time.monotonic()
    with memoranda.open(home) as memory, memory.session(source="cli") as session:
        for number in range(turns):
            if number == first_down:
                wait_for_deliveries(home, vendor.name, _SECONDS_PER_TURN * turns)
                vendor.begin_outage() if gate is None else gate.close()
            if number == first_up:
                _wait_for_failure(home, vendor.name)
                vendor.end_outage() if gate is None else gate.open()
            if gate is not None and number % _LOSE_EVERY == 0:
                gate.lose_next_answer()
            turn_began = time.monotonic()
            with session.turn(f"This is turn-{number:04}-of-many in our conversation.") as turn:
                turn.done("Noted.")
            report.slowest_turn_seconds = max(report.slowest_turn_seconds, time.monotonic() - turn_began)
        wait_for_deliveries(home, vendor.name, _SECONDS_PER_TURN * turns)
    report.outage_seconds = time.monotonic() - began
    report.turns, report.turns_while_down = turns, first_up - first_down
    report.lost_answers = 0 if gate is None else gate.lost_answers
    vendor.settle()
    arrived = [int(number) for number in re.findall(r"turn-(\d{4})-of-many", "\n".join(vendor.stored_texts()))]
    report.problems += compare_turns(arrived, turns)
    report.problems += _undelivered(home, vendor.name)


def compare_turns(arrived: list[int], turns: int) -> list[str]:
    """What is wrong with the turns that arrived; empty if each of them did, once and in order."""
    problems = []
    if missing := sorted(set(range(turns)) - set(arrived)):
        problems.append(f"{len(missing)} turns are missing, the first is {missing[0]}")
    if repeated := sorted({number for number in arrived if arrived.count(number) > 1}):
        problems.append(f"{len(repeated)} turns are stored more than once, the first is {repeated[0]}")
    firsts = list(dict.fromkeys(arrived))
    if firsts != sorted(firsts):
        problems.append("turns are out of order")
    return problems


def wait_for_deliveries(home: Path, provider: str, seconds: float) -> None:
    """Wait until nothing waits, turns included that the record has and the delivery thread has not read yet."""
    deadline = time.monotonic() + seconds
    with closing(Outbox(home)) as outbox:
        while _count_waiting(outbox, provider) and time.monotonic() < deadline:
            time.sleep(0.2)


def _count_waiting(outbox: Outbox, provider: str) -> int:
    """How many deliveries wait; the backlog alone does not count turns that are recorded and not queued."""
    outbox.catch_up(provider)
    return outbox.backlog(provider).waiting


def _wait_for_failure(home: Path, provider: str) -> None:
    """Wait until the outage was noticed, or the run would prove nothing."""
    deadline = time.monotonic() + _FAILURE_SECONDS
    with closing(Outbox(home)) as outbox:
        while not outbox.backlog(provider).failing:
            if time.monotonic() > deadline:
                raise CannotRun(f"no delivery failed within {_FAILURE_SECONDS:g} s, although the server was cut off")
            time.sleep(0.2)


def _undelivered(home: Path, provider: str) -> list[str]:
    with closing(Outbox(home)) as outbox:
        outbox.catch_up(provider)
        backlog = outbox.backlog(provider)
    if not backlog:
        return []
    return [f"{backlog.waiting} deliveries wait and {backlog.parked} are parked: {backlog.last_error}"]


def set_up_home(vendor: RealVendor, gate: TcpGate | None, root: Path) -> None:
    """Make a home that uses the vendor."""
    root.mkdir(parents=True)
    home = Home.at(root)
    config.set_value(home, "memory.provider", vendor.name)
    write_settings(root, vendor.name, vendor.settings("" if gate is None else gate.url))
    for variable, value in vendor.variables().items():
        config.set_secret(home, variable, value)


@contextmanager
def start_provider(vendor: RealVendor, home: Path) -> Iterator[MemoryProvider]:
    provider = load(discover(home)[vendor.name], home, read_settings(home, vendor.name))
    provider.receive_secrets(vendor.variables())
    provider.initialize(_SESSION, hermes_home=str(home), platform="cli", agent_context="primary", user_id="")
    try:
        yield provider
    finally:
        provider.shutdown()


def _write(provider: MemoryProvider, number: int, fact: str) -> None:
    provider.sync_turn(fact, "Noted.", session_id=_SESSION, idempotency_key=f"fact:{number}", attempt=1)


def show_progress(vendor: RealVendor, step: str) -> None:
    """Show progress: a step may take minutes."""
    print(f"{vendor.title}: {step} …", file=sys.stderr, flush=True)


def _timed(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began
