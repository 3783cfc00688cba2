"""Names of users at vendors."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import ProviderError
from memoranda.external.vendors.scope import peer_name, read_peer_name

pytestmark = pytest.mark.slow

NAMES = st.text(st.characters(exclude_categories=()), max_size=20)


@given(NAMES.filter(bool), NAMES)
def test_a_name_is_safe_and_can_be_read_back(profile: str, user: str) -> None:
    """Whatever the profile and the user are called; so two users never share a name."""
    name = peer_name(profile, user, max_chars=1_000)
    assert re.fullmatch("[A-Za-z0-9_-]+", name)
    assert read_peer_name(name) == (profile, user)


def test_names_stay_readable() -> None:
    """Most names are letters and digits anyway."""
    assert peer_name("default") == "default"
    assert peer_name("default", "alice-2") == "default__alice-2"
    assert peer_name("work", "alice@home") == "work__alice_40home"
    assert peer_name("work", "a-b", keep="") == "work__a_2db"


def test_long_names_stay_different_and_within_the_limit() -> None:
    """They end in a hash of the whole, and cannot be read back."""
    names = {peer_name("default", "x" * 300 + end, max_chars=64) for end in ("", "y", "z")}
    assert len(names) == 3
    assert {len(name) <= 64 for name in names} == {True}
    for name in names:
        with pytest.raises(ProviderError):
            read_peer_name(name)


@pytest.mark.parametrize("name", ["default__", "_zz", "a_4", "a__b__c", "_ff"])
def test_other_names_are_refused(name: str) -> None:
    """Not every name at a vendor is ours."""
    with pytest.raises(ProviderError):
        read_peer_name(name)
