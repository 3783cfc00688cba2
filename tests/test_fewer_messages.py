"""A process that runs tests sends what a reader needs, and nothing else."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.fewer_messages import send_fewer_messages


class WorkerInteractor:
    """As the one of pytest-xdist: it sends all that it hears."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.sent.append(nodeid)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        self.sent.append((report.when, report.passed))


def test_of_a_test_that_passed_one_message_is_sent_and_of_one_that_failed_all_that_failed() -> None:
    """A fixture that takes long is reported, too, for the list of the slowest."""
    manager, worker = pytest.PytestPluginManager(), WorkerInteractor()
    manager.register(worker)
    send_fewer_messages(manager)
    manager.hook.pytest_runtest_logstart(nodeid="test", location=("", 0, ""))
    for when, passed, duration in (
        ("setup", True, 0.01),
        ("call", True, 0.01),
        ("teardown", True, 0.01),
        ("setup", False, 0.01),
        ("setup", True, 2.0),
    ):
        report = SimpleNamespace(when=when, passed=passed, duration=duration)
        manager.hook.pytest_runtest_logreport(report=report)
    assert worker.sent == [("call", True), ("setup", False), ("setup", True)]
