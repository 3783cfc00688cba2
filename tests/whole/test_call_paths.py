"""Limits on how many of our own files a call passes through, because a reader has to follow them."""

import pytest

from benchmarks.call_paths import count_in_process


@pytest.mark.slow
def test_a_warm_search_passes_through_few_files() -> None:
    """The limit may only shrink. Ten of the files do what a full-text engine in C did before."""
    counted = count_in_process("search")
    # Two of them let a search on a server read all of its evidence in a few round trips; one counts the
    # terms of messages as bits, which the ranking and what it is fed by did each for themselves; one
    # is the answer itself, without which a session describes the tool.
    assert counted["files"] <= 33, "\n".join(counted["paths"])


@pytest.mark.slow
def test_a_search_by_a_model_passes_through_few_files() -> None:
    """The limit may only shrink. Ten of the files filter what a model reads; it loads no curated memory.

    Texts that were never shown before are scanned, by up to a dozen files with a subject of rules each.
    """
    counted = count_in_process("model-search")
    assert counted["files"] <= 41, "\n".join(counted["paths"])
    assert not [path for path in counted["paths"] if path.startswith("memory/curated")]


@pytest.mark.slow
def test_a_first_import_passes_through_few_files() -> None:
    """It loads neither the index nor the search.

    It is 61 files. A lock that is waited for adds one, and so do a random id with a long number, which is checked for
    a card's, and one with the beginning of a credential.
    """
    counted = count_in_process("import")
    # Two of them say where the record is, and what an undo of the import would remove; three open the log of imports
    # wherever it is, keep its proposals, and store the prompt of a session once; one is a lock that is free in forks;
    # two open parts of a home when they are used, and read no link that leads out of the folder; one generates the
    # methods of classes when they are used.
    assert counted["files"] <= 64, "\n".join(counted["paths"])
