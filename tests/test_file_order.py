"""Each process of a run has its share of the test files, and the shares are about equal."""

from types import SimpleNamespace
from typing import Any

from tests import file_order
from tests.cases import cases


def _node(worker: str) -> Any:
    """A process as pytest-xdist describes it."""
    config = SimpleNamespace(getoption={"dist": "each"}.get)
    return SimpleNamespace(config=config, workerinput={"workerid": worker})


@cases(("everyday", "processes"), [(True, 4), (False, 6)])
def test_shares_are_about_equal(everyday: bool, processes: int) -> None:
    """So that no process is left alone with a tenth of the work."""
    shares, totals = file_order._shares(processes, everyday), [0.0] * processes
    for path, share in shares.items():
        totals[share] += file_order._seconds(path, path.read_text("utf-8"), everyday)
    assert max(totals) < 1.1 * min(totals)


def test_the_files_that_take_longest_run_first() -> None:
    """At the end one would keep its process busy while the others have nothing left to do; the rest keeps its order."""
    config: Any = SimpleNamespace(getoption={"markexpr": "", "--shuffle": None}.get)
    names = ["agent/test_b.py", "agent/test_a.py", "test_packaging.py", "test_long_conversation.py"]
    items: list[Any] = [SimpleNamespace(path=file_order._TESTS / name) for name in names]
    file_order.sort_files(config, items)
    assert [item.path.name for item in items] == [
        "test_long_conversation.py",
        "test_packaging.py",
        "test_b.py",
        "test_a.py",
    ]


@cases("name", [*file_order._MEASURED, *file_order._MEASURED_EVERYDAY, *file_order._WITH_SDKS])
def test_every_file_with_a_row_of_its_own_exists(name: str) -> None:
    """One that was renamed has its row under the new name."""
    assert (file_order._TESTS / name).is_file()


def test_the_share_of_a_crashed_process_goes_to_the_one_that_replaces_it() -> None:
    """Another share would be other tests, and pytest-xdist would wait forever for the rest of the first."""
    first = [_node("gw0"), _node("gw1")]
    for node in first:
        file_order.pytest_configure_node(node)
    file_order.release_share(first[0], error="Not properly terminated")
    file_order.release_share(first[1], error=None)
    third = _node("gw2")
    file_order.pytest_configure_node(third)
    assert [node.workerinput["share"] for node in (*first, third)] == [0, 1, 0]
