"""Which test files a process runs, and in which order.

With `--dist each` every process runs all that it collects, so each collects only its share. The shares are about equal:
one after the other, the file with most to run goes to the process that has least so far. What a file has to run is
estimated by its size and by the number of its slow tests; a few files take longer. Files that load the SDKs of model
vendors or of frameworks, which takes seconds, go to one process together.
"""

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

_TESTS = Path(__file__).parent
_MODELS = _TESTS / "models"
_FRAMEWORKS = _TESTS / "integrations" / "frameworks"
_SDKS = "model_sdks"
# In these, tests or the pages that they run load an SDK.
_WITH_SDKS = {
    "api/test_search_summaries.py",
    "cli/test_evaluation.py",
    "docs/test_docs.py",
    "search/meaning/test_passage_rescorer.py",
    "service/compatible/test_official_clients.py",
    "upkeep/curator/test_wordings.py",
}
_SHARE = "share"
# Seconds of CPU, measured: a file takes about so much for its text and for each of its slow tests.
_PER_CHARACTER = 0.12 / 1000
_PER_SLOW_TEST = 0.3
# What files take that have more to do than that. An estimate that has become wrong costs time and nothing else.
_MEASURED = {
    "test_long_conversation.py": 23,
    "docs/test_docs.py": 22,
    "service/http/test_openapi.py": 15,
    "cli/hosts/test_hook_helper.py": 20,
    "docs/test_python_reference.py": 18,
    "test_packaging.py": 13,
    "torture/test_torture.py": 18,
    "service/viewer/test_browser.py": 17,
    "service/viewer/test_changes_in_browser.py": 15,
    "test_external_memory.py": 12,
    "cli/chat/test_piped.py": 12,
    "test_prompt_stability.py": 12,
    "docs/test_site.py": 11,
    "search/test_search.py": 11,
}
# The same for the everyday tests: contracts, whose tests run for many programs or are defined elsewhere.
_MEASURED_EVERYDAY = {
    "testing/test_store_contract.py": 17,
    "importers/test_importer_contract.py": 12,
    "cli/test_sessions.py": 6,
    "memory/record/test_marker.py": 5,
    "api/client/test_contract.py": 4,
    "external/vendors/test_vendor_contract.py": 4,
    "external/vendors/zep/test_contract.py": 3,
    "testing/test_concurrency_contract.py": 3,
}
_CRASHED: list[int] = []
_ALL_SLOW = ("\npytestmark = pytest.mark.slow", "\npytestmark = [pytest.mark.slow")
_SLOW = "@pytest.mark.slow\n"
_TEST = "def test_"


def is_in_share(path: Path, config: pytest.Config) -> bool:
    """Whether this process runs the tests of a file."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    own: int | None = worker.get(_SHARE)
    return own is None or _shares(int(worker["workercount"]), is_everyday(config)).get(path, own) == own


def is_everyday(config: pytest.Config) -> bool:
    """Whether slow tests are left out."""
    return bool(config.getoption("markexpr") == "not slow")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a process the number of its share; one that replaces a crashed process gets the share of that one."""
    if node.config.getoption("dist") == "each":
        number = int(node.workerinput["workerid"].removeprefix("gw"))
        node.workerinput[_SHARE] = _CRASHED.pop() if _CRASHED else number


def release_share(node: Any, error: object) -> None:
    """Leave the share of a process that crashed to the one that will replace it."""
    if error and _SHARE in node.workerinput:
        _CRASHED.append(node.workerinput[_SHARE])


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
    return any(line in source for line in _ALL_SLOW)


@cache
def _shares(count: int, everyday: bool) -> dict[Path, int]:
    """The number of the process that runs each file."""
    sources = {path: path.read_text("utf-8") for path in sorted(_TESTS.rglob("test_*.py"))}
    seconds = {path: _seconds(path, source, everyday) for path, source in sources.items()}
    with_sdks = {
        path
        for path, source in sources.items()
        if path.is_relative_to(_MODELS) or path.is_relative_to(_FRAMEWORKS) or _SDKS in source
    } | {_TESTS / name for name in _WITH_SDKS}
    totals = [0.0] * count
    shares = {}
    for path in sorted(sources, key=lambda path: (path in with_sdks, seconds[path]), reverse=True):
        share = 0 if path in with_sdks else totals.index(min(totals))
        totals[share] += seconds[path]
        shares[path] = share
    return shares


def _seconds(path: Path, source: str, everyday: bool) -> float:
    """About how much CPU the tests of a file take."""
    tests = source.count(_TEST)
    slow = tests if is_slow(source) else source.count(_SLOW)
    measured = (_MEASURED_EVERYDAY if everyday else _MEASURED).get(path.relative_to(_TESTS).as_posix())
    if everyday:
        return measured or (0.0 if is_slow(source) else _PER_CHARACTER * len(source) * (1 - slow / (tests + 1)))
    return measured or _PER_CHARACTER * len(source) + _PER_SLOW_TEST * slow
