"""The ratchet on the everyday tests: what one test and all tests together may take of CPU, or the run fails.

CPU seconds are those of the tests and of the processes they waited for; what collecting takes counts for all tests
together. A busy or slow machine makes them longer, so they are divided by how much longer a fixed piece of work takes
at the time.
"""

import resource
import time
from collections.abc import Generator
from statistics import mean
from typing import Any

import pytest

from tests.file_order import is_everyday

MAX_CPU_SECONDS = 1.0
"""For one test. Those that take over half of it are marked slow, so that no run fails by chance."""
MAX_TOTAL_CPU_SECONDS = 220.0
"""For all tests of `make test`, collecting too. They take 125 on idle cores and 170 beside eight busy processes, whose
share of the caches the fixed piece of work does not feel."""
# What a thousand rounds of the fixed piece of work take on the machine that the limits were chosen on.
_REFERENCE_SECONDS = 0.05 / 600
_TESTS_PER_SAMPLE = 50
_PROPERTY = "cpu_seconds_over_limit"
_OUTPUT = "cpu_seconds"

_offenders: list[str] = []
_totals: list[float] = []


class _Worker:
    """What this process has measured."""

    tests = 0
    slowdowns: list[float] = []  # noqa: RUF012 - one worker per process


def _cpu_seconds() -> float:
    """What this process has used, and the processes it waited for."""
    return time.process_time() + _of_children()


def _cpu_seconds_of_this_thread() -> float:
    """Without the other threads of this process: one that an earlier test left behind may be working."""
    return time.thread_time() + _of_children()


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _slowdown(thousand_rounds: int = 600) -> float:
    """How much slower this machine is right now than the one the limits were chosen on; never below one."""
    started = time.process_time()
    sum(number * number % 7 for number in range(thousand_rounds * 1000))
    return max(1.0, (time.process_time() - started) / (_REFERENCE_SECONDS * thousand_rounds))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the test, and note what an unmarked one used beyond the limit."""
    if _Worker.tests % _TESTS_PER_SAMPLE == 0:
        _Worker.slowdowns.append(_slowdown(60))
    _Worker.tests += 1
    before = _cpu_seconds_of_this_thread()
    try:
        return (yield)
    finally:
        used = _cpu_seconds_of_this_thread() - before
        if used > MAX_CPU_SECONDS and item.get_closest_marker("slow") is None:
            used /= _slowdown()
            if used > MAX_CPU_SECONDS:
                item.user_properties.append((_PROPERTY, f"{used:.1f}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the offenders; with several workers, their reports arrive in the main process."""
    if report.when == "call":
        _offenders.extend(f"{value} s  {report.nodeid}" for name, value in report.user_properties if name == _PROPERTY)


def add_total(node: Any) -> None:
    """Add what a worker used; one that crashed has not said it."""
    _totals.append(getattr(node, "workeroutput", {}).get(_OUTPUT, 0.0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that went over a limit, properties with all their examples excepted."""
    if _Worker.slowdowns:
        total = _cpu_seconds() / mean(_Worker.slowdowns)
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output[_OUTPUT] = total
            return
        _totals.append(total)
    if session.exitstatus == pytest.ExitCode.OK and _problems(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def show_offenders(terminal: pytest.TerminalReporter) -> None:
    """Say what the tests used, name the offenders and say what to do."""
    if _totals:
        limit = f" of {MAX_TOTAL_CPU_SECONDS:.0f}" if _has_total_limit(terminal.config) else ""
        terminal.write_line(f"The tests used {sum(_totals):.0f}{limit} seconds of CPU.")
    for title, lines in _problems(terminal.config).items():
        terminal.section(title)
        terminal.write_line("\n".join(lines))


def _has_total_limit(config: pytest.Config) -> bool:
    return is_everyday(config) and not config.getoption("--full")


def _problems(config: pytest.Config) -> dict[str, list[str]]:
    problems = {}
    if _offenders and not config.getoption("--full"):
        problems[f"over {MAX_CPU_SECONDS} s of CPU: mark these slow, or make them faster"] = sorted(_offenders)
    if _has_total_limit(config) and sum(_totals) > MAX_TOTAL_CPU_SECONDS:
        problems["the everyday tests take too long"] = ["Mark the most expensive ones slow, or make them faster."]
    return problems
