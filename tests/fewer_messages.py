"""Fewer messages from a process that runs tests to the one that prints: one per test that passed, instead of five.

pytest-xdist also sends that a test starts, that it is over, and that its fixtures were made and torn down. No report
needs that, and it takes both processes together as long as a small test.
"""

from typing import Any

import pytest

_WORKER = "WorkerInteractor"
# Fixtures that take longer are in the list of `--durations`.
_SHORT_SECONDS = 0.1


def send_fewer_messages(manager: pytest.PytestPluginManager) -> None:
    """Replace the hooks of pytest-xdist that send; it loads its class under no name that could be imported."""
    for worker in [plugin for plugin in manager.get_plugins() if type(plugin).__name__ == _WORKER]:
        manager.unregister(worker)
        worker.__class__ = _quieter(type(worker))
        manager.register(worker)


def _quieter(sending: Any) -> Any:
    class QuietWorker(sending):  # type: ignore[misc]
        @pytest.hookimpl
        def pytest_runtest_logstart(self) -> None:
            """Send nothing."""

        @pytest.hookimpl
        def pytest_runtest_logfinish(self) -> None:
            """Send nothing."""

        @pytest.hookimpl
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            """Send what a test did; of its fixtures, what failed or took long."""
            if report.when == "call" or not report.passed or report.duration > _SHORT_SECONDS:
                super().pytest_runtest_logreport(report)

    return QuietWorker
