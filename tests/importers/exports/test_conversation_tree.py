"""Trees of messages are split into branches: every node once, the visible branch first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.exports.conversation_tree import Branch, split_branches

pytestmark = pytest.mark.slow


def test_the_visible_branch_comes_first_and_others_have_only_their_own() -> None:
    """A branch forks from the branch that contains its parent."""
    tree = {"a": None, "b": "a", "c": "b", "b2": "a", "c2": "b2", "c3": "b2"}
    assert split_branches(tree, "c2") == [
        Branch(("a", "b2", "c2"), None), Branch(("b", "c"), 0), Branch(("c3",), 0)
    ]  # fmt: skip


def test_without_a_current_node_the_last_end_is_the_visible_one() -> None:
    """As in exports that do not name it."""
    assert split_branches({"a": None, "b": "a", "b2": "a"}, None)[0] == Branch(("a", "b2"), None)
    assert split_branches({"a": None, "b": "a"}, "missing") == [Branch(("a", "b"), None)]
    assert split_branches({}, None) == []


_names = st.sampled_from("abcdefgh")


@given(tree=st.dictionaries(_names, st.none() | _names | st.just("elsewhere")), current=st.none() | _names)
def test_every_node_is_in_one_branch(tree: dict[str, str | None], current: str | None) -> None:
    """For any tree, even with cycles; a branch forks from an earlier one, and is a path of the tree."""
    found = split_branches(tree, current)
    assert sorted(node for strand in found for node in strand.nodes) == sorted(tree)
    for number, strand in enumerate(found):
        assert strand.forks_from is None or strand.forks_from < number
        assert all(tree[after] == before for before, after in zip(strand.nodes, strand.nodes[1:], strict=False))
    if current in tree:
        assert found[0].nodes[-1] == current
