"""Names at Honcho are one to one: users, profiles and assistants never share a peer or a session.

Turns become messages that the server accepts.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import PermanentProviderError
from memoranda.external.vendors.honcho.client import HonchoNames
from memoranda.external.vendors.scope import VendorScope

pytestmark = pytest.mark.slow

_DEFAULTS = {
    "workspace": "memoranda",
    "peerName": "",
    "aiPeer": "",
    "observationMode": "directional",
    "sessionStrategy": "per-session",
}
_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def _names(profile: str = "default", user_id: str = "", **settings: Any) -> HonchoNames:
    return HonchoNames.resolve(VendorScope(Path("/home"), profile, user_id), _DEFAULTS | settings)


@given(_NAMES, _NAMES, _NAMES, _NAMES, _NAMES)
def test_two_users_share_no_name(profile: str, user: str, other_profile: str, other_user: str, session: str) -> None:
    """Whatever they are called: neither a peer nor a session."""
    one, two = _names(profile, user), _names(other_profile, other_user)
    same = (profile, user) == (other_profile, other_user)
    assert ({one.user, one.assistant} & {two.user, two.assistant} != set()) is same
    assert (one.session(session) == two.session(session)) is same
    assert one.user != one.assistant


@given(st.text(min_size=1, max_size=100), st.text(min_size=1, max_size=100))
def test_the_session_of_a_conversation_can_be_read_back(session_id: str, other: str) -> None:
    """Different conversations have different sessions, with characters that Honcho accepts."""
    names = _names(user_id="ana")
    session = names.session(session_id)
    assert session.replace("_", "").replace("-", "").isalnum() and session.isascii() and len(session) <= 512
    assert (session == names.session(other)) is (session_id == other)
    if len(session) < 200:
        assert names.local_session(session) == session_id


def test_the_owner_may_use_peers_that_exist() -> None:
    """Under exactly the names of the settings; other users of the home get their own."""
    assert _names(peerName="ana", aiPeer="hermes").both == ("ana", "hermes")
    assert _names(user_id="ben", peerName="ana", aiPeer="hermes").both == ("default__ben", "hermes__for__default__ben")


@pytest.mark.parametrize(
    "settings",
    [{"workspace": "a b"}, {"peerName": "a__b"}, {"aiPeer": "ü"}, {"peerName": "x", "aiPeer": "x"}, {"aiPeer": "_"}],
)
def test_names_that_could_be_mistaken_are_refused(settings: dict[str, str]) -> None:
    """And the error says which setting it is."""
    with pytest.raises(PermanentProviderError, match=next(iter(settings))):
        _names(**settings)


def test_what_is_observed_depends_on_the_mode() -> None:
    """directional: both from both views; unified: only the user, by themselves."""
    names = _names()
    assert (names.observer, set(map(tuple, (row.values() for row in names.session_peers().values())))) == (
        names.assistant,
        {(True, True)},
    )
    unified = _names(observationMode="unified")
    assert unified.observer == unified.user
    assert unified.session_peers()[unified.assistant] == {"observe_me": False, "observe_others": False}
