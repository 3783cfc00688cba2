"""Which test files a process runs, and in which order.

With `--dist each` every process runs all that it collects, so each collects only its share. The shares are about equal:
one after the other, the file with most to run goes to the process that has least so far. What a file has to run is
estimated by its size, without the slow tests. Files that load the SDKs of model vendors or of frameworks, which takes
seconds, go to one process together.
"""

import re
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

_TESTS = Path(__file__).parent
_MODELS = _TESTS / "models"
_FRAMEWORKS = _TESTS / "integrations" / "frameworks"
_SDKS = "model_sdks"
_HAS_SHARE = "has_share"
_ALL_SLOW = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)
_SLOW = re.compile(r"^ *@pytest\.mark\.slow$", re.MULTILINE)
_TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)


def is_in_share(path: Path, config: pytest.Config) -> bool:
    """Whether this process runs the tests of a file."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker.get(_HAS_SHARE):
        return True
    own = int(worker["workerid"].removeprefix("gw"))
    return _shares(int(worker["workercount"])).get(path, own) == own


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


def is_slow(source: str) -> bool:
    """Whether all tests of a file are slow, by its text."""
    return _ALL_SLOW.search(source) is not None


@cache
def _shares(count: int) -> dict[Path, int]:
    """The number of the process that runs each file."""
    sources = {path: path.read_text("utf-8") for path in sorted(_TESTS.rglob("test_*.py"))}
    everyday = {path: source for path, source in sources.items() if not is_slow(source)}
    with_sdks = [
        path
        for path, source in everyday.items()
        if path.is_relative_to(_MODELS) or path.is_relative_to(_FRAMEWORKS) or _SDKS in source
    ]
    totals = [0.0] * count
    shares = {}
    for path in sorted(everyday, key=lambda path: (path in with_sdks, _size(everyday[path])), reverse=True):
        share = 0 if path in with_sdks else totals.index(min(totals))
        totals[share] += _size(everyday[path])
        shares[path] = share
    return shares


def _size(source: str) -> float:
    """The characters of a file, in proportion to its tests that are not slow."""
    tests = len(_TEST.findall(source))
    return len(source) * (1 - len(_SLOW.findall(source)) / (tests + 1))
