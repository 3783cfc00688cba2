"""The ratchet on the everyday tests: one that takes over a second of CPU must be marked slow, or the run fails.

CPU seconds are those of the test and of the processes it waited for. A busy or slow machine makes them longer, so a
test over the limit is judged against a fixed piece of work that is timed right after it.
"""

import resource
import time
from collections.abc import Generator

import pytest

MAX_CPU_SECONDS = 1.0
# What the fixed piece of work takes on the machine that the limit was chosen on.
_REFERENCE_SECONDS = 0.05
_PROPERTY = "cpu_seconds_over_limit"

_offenders: list[str] = []


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _slowdown() -> float:
    """How much slower this machine is right now than the one the limit was chosen on; never below one."""
    started = time.process_time()
    sum(number * number % 7 for number in range(600_000))
    return max(1.0, (time.process_time() - started) / _REFERENCE_SECONDS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the test, and note what an unmarked one used beyond the limit."""
    before = _cpu_seconds()
    try:
        return (yield)
    finally:
        used = _cpu_seconds() - before
        if used > MAX_CPU_SECONDS and item.get_closest_marker("slow") is None:
            used /= _slowdown()
            if used > MAX_CPU_SECONDS:
                item.user_properties.append((_PROPERTY, f"{used:.1f}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the offenders; with several workers, their reports arrive in the main process."""
    if report.when == "call":
        _offenders.extend(f"{value} s  {report.nodeid}" for name, value in report.user_properties if name == _PROPERTY)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a test went over the limit, properties with all their examples excepted."""
    if _offenders and not session.config.getoption("--full") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def show_offenders(terminal: pytest.TerminalReporter) -> None:
    """Name the offenders and say what to do."""
    if _offenders and not terminal.config.getoption("--full"):
        terminal.section(f"over {MAX_CPU_SECONDS:.0f} s of CPU: mark these slow, or make them faster")
        terminal.write_line("\n".join(sorted(_offenders)))
