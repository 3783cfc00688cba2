"""A plugin for a run in which every test must run: `pytest -p tests.no_skips` fails when one is skipped."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run and name the tests, which pytest would only count."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return  # A worker, whose reports arrive in the main process.
    skipped = reporter.stats.get("skipped", [])
    for report in skipped:
        reporter.write_line(f"skipped, which this run does not allow: {report.nodeid}: {report.longrepr[-1]}")
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
