"""Honcho's provider deletes what it has sent, and nothing else."""

from tests.external.vendors.honcho.home import Home, call_tool, send_turn


def test_one_conversation_is_forgotten(home: Home) -> None:
    """With what was derived from it; others stay."""
    provider = home.start()
    send_turn(provider, "one", "k1", "s1")
    send_turn(provider, "two", "k2", "s2")
    report = provider.forget(["s1"])
    assert report["deleted"] == ["1 turn"]
    assert [row["content"] for row in home.workspace.messages] == ["two", "Noted."]
    assert all(row["session_id"].endswith("s2") for row in home.workspace.conclusions)


def test_everything_is_forgotten_except_what_other_programs_stored(home: Home) -> None:
    """Their sessions in the same workspace have no mark of ours; what remains is listed."""
    provider = home.start("ana")
    send_turn(provider, "one")
    provider.on_memory_write("add", "user", "Likes chess.", {}, idempotency_key="w1")
    call_tool(provider, "honcho_conclude", conclusion="Owns a bike.")
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    other = [{"content": "Another program", "peer_id": "default__ana", "created_at": "2026-11-16T08:00:00Z"}]
    home.workspace.answer("POST", ["sessions", "theirs", "messages"], {"messages": other}, {})
    report = provider.forget()
    assert sorted(report["deleted"]) == ["1 conclusion", "1 memory write", "1 turn"]
    assert report["remaining"] == [
        "the names of the peers default__ana and memoranda__for__default__ana: Honcho deletes no peers"
    ]
    assert home.workspace.stored_texts() == ["Another program"]
    assert not any(home.workspace.cards.values())


def test_a_shared_session_is_only_forgotten_as_a_whole(home: Home) -> None:
    """Honcho deletes no single messages, and the report says so."""
    provider = home.start(sessionStrategy="global")
    send_turn(provider, "one", "k1", "s1")
    send_turn(provider, "two", "k2", "s2")
    assert set(home.workspace.sessions) == {"default__sessions"}
    report = provider.forget(["s1"])
    assert report["deleted"] == [] and "share one session" in report["remaining"][0]
    assert provider.forget()["deleted"] == ["2 turns"]
    assert home.workspace.messages == []


def test_peers_of_other_programs_are_not_emptied(home: Home) -> None:
    """If the settings name the assistant of another program, its conclusions stay, and the report says so."""
    provider = home.start(peerName="ana", aiPeer="hermes")
    send_turn(provider, "one")
    home.workspace._conclude("From elsewhere.", "hermes", "ana", None)
    report = provider.forget()
    assert [row["content"] for row in home.workspace.conclusions] == ["From elsewhere."]
    assert [text.partition(",")[0] for text in report["remaining"][:2]] == [
        "what ana learned elsewhere",
        "what hermes learned elsewhere",
    ]


def test_cards_are_cleared_in_every_mode(home: Home) -> None:
    """Also the one that the user has of themselves, which the tools use in the mode unified."""
    provider = home.start(observationMode="unified")
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    assert provider.forget()["remaining"] == [
        "the names of the peers default and memoranda__for__default: Honcho deletes no peers"
    ]
    assert call_tool(provider, "honcho_profile")["card"] == []
