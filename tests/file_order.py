"""Which test files a process runs, and in which order.

With `--dist each` every process runs all that it collects, so each collects only its share: every n-th file of the
list. Neighbours in the list are in one folder and take about as long, so the shares are about equal.
"""

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

_TESTS = Path(__file__).parent
_HAS_SHARE = "has_share"


def is_in_share(path: Path, config: pytest.Config) -> bool:
    """Whether this process runs the tests of a file."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker.get(_HAS_SHARE) or path not in _positions():
        return True
    return _positions()[path] % int(worker["workercount"]) == int(worker["workerid"].removeprefix("gw"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Say to a process that it runs a share: it is not given the option itself."""
    node.workerinput[_HAS_SHARE] = node.config.getoption("dist") == "each"


def shuffle_files(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--shuffle`, put the files into a random order that the seed decides; tests of a file stay together."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        files = sorted({item.path for item in items})
        Random(seed).shuffle(files)
        place = {path: number for number, path in enumerate(files)}
        items.sort(key=lambda item: place[item.path])


@cache
def _positions() -> dict[Path, int]:
    return {path: number for number, path in enumerate(sorted(_TESTS.rglob("test_*.py")))}
