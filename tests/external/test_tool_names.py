"""Tools of several providers have names that are unique, predictable and stay."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memoranda.external.provider_group import ToolNames, ToolOwner, find_owner, prefixed_name

A, B = ToolOwner("alpha", "search"), ToolOwner("beta", "search")
OWNERS = st.lists(st.tuples(st.sampled_from(["a", "b", "a_b"]), st.sampled_from(["s", "b_s", "a_s", "t"])), unique=True)


def given_names(names: ToolNames, *offered: ToolOwner) -> list[str]:
    return list(names.assign(offered).values())


def test_a_name_that_only_one_provider_has_stays() -> None:
    """As the provider gave it."""
    assert given_names(ToolNames(), A, ToolOwner("beta", "add")) == ["search", "add"]


def test_tools_of_the_same_name_both_get_their_provider_in_front() -> None:
    """Whichever comes first."""
    assert given_names(ToolNames(), A, B) == ["alpha_search", "beta_search"]
    assert given_names(ToolNames(), B, A) == ["beta_search", "alpha_search"]


def test_a_name_that_was_given_stays_when_a_late_provider_brings_it_too() -> None:
    """The late one gets its provider in front, and comes after the others."""
    names = ToolNames()
    assert given_names(names, A) == ["search"]
    assert given_names(names, B, A) == ["search", "beta_search"]
    assert given_names(names, B) == ["beta_search"]
    assert (names.owner("search"), names.owner("beta_search"), names.owner("x")) == (A, B, None)


def test_no_name_is_one_of_the_agents_own() -> None:
    """A provider called "read" with a tool "file" does not become read_file."""
    names = ToolNames({"read_file"})
    assert given_names(names, ToolOwner("read", "file"), ToolOwner("b", "file")) == ["read_file_2", "b_file"]


@given(OWNERS, OWNERS)
def test_names_are_unique_and_never_change(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    """Whatever providers offer, and in whatever order they become ready."""
    names = ToolNames()
    before = names.assign([ToolOwner(*each) for each in first])
    after = names.assign([ToolOwner(*each) for each in dict.fromkeys([*second, *first])])
    assert len(set(after.values())) == len({*first, *second})
    assert list(after.items())[: len(before)] == list(before.items())


def test_a_name_is_usable_and_short() -> None:
    """Two long ones stay different."""
    long = [prefixed_name(ToolOwner("my provider/é", "t" * 70 + end)) for end in "ab"]
    assert long[0] != long[1]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in long)


def test_a_name_of_an_earlier_session_is_found() -> None:
    """By its provider where that was recorded, and else by the first that has it."""
    assert find_owner("search", "beta", [A, B]) == B
    assert find_owner("beta_search", "beta", [B]) == B
    assert find_owner("search", "", [A, B]) == A
    assert find_owner("beta_search", "", [A, B]) == B
    assert find_owner("search", "gone", [A, B]) is None
