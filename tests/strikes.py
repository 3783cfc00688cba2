"""How often a test strikes: an eighth of its full number in `make test-all`, all of it in `make torture`.

A test that kills, or does the same thing very often, takes the fixture `strikes` and asks it for its number.
`pytest --torture` runs just these tests, with their full numbers, and prints the numbers.
"""

import os

import pytest

_SHARE = 8


class Strikes:
    """Gives each test its number, and remembers what it gave."""

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self.given: dict[str, int] = {}

    def __call__(self, full: int) -> int:
        """Return `full` in a torture run, otherwise an eighth of it."""
        number = full if self._full else max(1, full // _SHARE)
        # "path::name (call)": the name of the test that runs now.
        self.given[os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]] = number
        return number


_KEY = pytest.StashKey[Strikes]()


@pytest.fixture(scope="session")
def strikes(pytestconfig: pytest.Config) -> Strikes:
    """Ask it for the number of times that a test strikes: `strikes(200)`."""
    return pytestconfig.stash.setdefault(_KEY, Strikes(full=pytestconfig.getoption("--torture")))


def select_strikes(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a torture run, keep only the tests that strike; leave those marked `torture` to a full run."""
    kept = items
    if config.getoption("--torture"):
        kept = [item for item in kept if "strikes" in getattr(item, "fixturenames", ())]
    if not config.getoption("--full"):
        kept = [item for item in kept if item.get_closest_marker("torture") is None]
    if len(kept) < len(items):
        left_out = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept


def print_strikes(terminal: pytest.TerminalReporter) -> None:
    """Print how often each test struck, after a torture run."""
    if terminal.config.getoption("--torture"):
        given = terminal.config.stash.get(_KEY, Strikes(full=True)).given
        terminal.section(f"{sum(given.values()):,} strikes in {len(given)} tests")
        terminal.write_line("\n".join(f"{number:>6,}  {name}" for name, number in sorted(given.items())))
