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
# What files take that have more to do than that, and a third of the time for which they wait: three processes share a
# core, so the other two use it then. An estimate that has become wrong costs time and nothing else.
_MEASURED = {
    "test_long_conversation.py": 34,
    "service/http/test_openapi.py": 26,
    "testing/test_store_contract_postgres.py": 25,
    "torture/test_torture.py": 22,
    "service/viewer/test_changes_in_browser.py": 20,
    "home/shards/test_fleet.py": 19,
    "service/viewer/test_browser.py": 19,
    "docs/test_docs.py": 18,
    "cli/hosts/test_hook_helper.py": 18,
    "home/shards/test_move.py": 17,
    "testing/test_store_contract.py": 17,
    "service/http/test_nodes_forget.py": 16,
    "integrations/mcp/test_stdio_server.py": 16,
    "cli/hosts/test_hook.py": 14,
    "test_packaging.py": 13,
    "cli/chat/test_piped.py": 13,
    "storage/postgres/test_search.py": 12,
    "external/test_attach.py": 12,
    "importers/test_importer_contract.py": 12,
    "test_external_memory.py": 12,
    "docs/test_site.py": 11,
    "service/compatible/test_hostile_requests.py": 11,
    "test_prompt_stability.py": 11,
    "service/viewer/test_accessibility.py": 10,
    "testing/test_concurrency_contract_postgres.py": 10,
    "service/viewer/test_live.py": 10,
    "safety/test_properties.py": 10,
    "search/index/test_damage.py": 10,
    "search/test_search.py": 10,
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


def sort_files(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files that take long first, or, with `--shuffle`, all files into a random order that the seed decides.

    A long file at the end would keep one process busy after all others are done. Tests of a file stay together.
    """
    seed = config.getoption("--shuffle")
    if seed is None:
        items.sort(key=lambda item: -_measured(item.path, is_everyday(config)))
    else:
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


def _measured(path: Path, everyday: bool) -> float:
    """The seconds in the table; 0 for a file that is not there."""
    table = _MEASURED_EVERYDAY if everyday else _MEASURED
    return table.get(path.relative_to(_TESTS).as_posix(), 0) if path.is_relative_to(_TESTS) else 0


def _seconds(path: Path, source: str, everyday: bool) -> float:
    """About how much CPU the tests of a file take."""
    tests = source.count(_TEST)
    slow = tests if is_slow(source) else source.count(_SLOW)
    measured = _measured(path, everyday)
    if everyday:
        return measured or (0.0 if is_slow(source) else _PER_CHARACTER * len(source) * (1 - slow / (tests + 1)))
    return measured or _PER_CHARACTER * len(source) + _PER_SLOW_TEST * slow
