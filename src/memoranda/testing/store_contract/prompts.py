"""Contract of system prompts: equal prompts of a user are stored once, and leave with their last session."""

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.shared_prompts import SharedPrompts
from memoranda.memory.record.store import SessionStore
from memoranda.support.text_matcher import TextMatcher
from memoranda.testing.store_contract.assertions import say

_PROMPT = "You are the assistant of a bakery.\n" * 40


class PromptContract:
    def test_equal_prompts_of_a_user_are_stored_once(self, store: SessionStore) -> None:
        """Each session returns its prompt, and other users never share it."""
        for name, user in (("a", None), ("b", None), ("c", "anna"), ("d", "anna"), ("e", "ben")):
            store.sessions.create_session(name, "cli", user_id=user, system_prompt=_PROMPT)
        store.sessions.create_session("without", "cli")
        assert _prompts(store) == [(None, _PROMPT), ("anna", _PROMPT), ("ben", _PROMPT)]
        assert {_prompt(store, name) for name in "abcde"} == {_PROMPT}
        assert _prompt(store, "without") is None
        assert [row["system_prompt"] for row in store.listing.list_sessions_rich(source="cli")].count(_PROMPT) == 5
        assert "system_prompt_id" not in (store.sessions.get_session("a") or {})
        anna = store.scoped(Scope.of("anna"))
        assert _prompt(anna, "c") == _PROMPT
        assert SharedPrompts(store.engine, store.scope, None).check().damaged == []

    def test_a_prompt_leaves_with_its_last_session(self, store: SessionStore) -> None:
        """Deleting one of two sessions keeps the prompt of the other; replacing a prompt removes the old one."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=_PROMPT)
        store.deletion.delete_session("a")
        assert _prompt(store, "b") == _PROMPT
        store.sessions.update_session("b", system_prompt="Another one.", model="m")
        assert _prompts(store) == [(None, "Another one.")]
        store.sessions.update_session("b", system_prompt=None)
        assert (_prompts(store), _prompt(store, "b")) == ([], None)
        store.sessions.create_session("b", "cli", system_prompt="filled")
        store.sessions.create_session("b", "cli", system_prompt="ignored")
        assert (_prompts(store), _prompt(store, "b")) == ([(None, "filled")], "filled")
        store.deletion.delete_session("b")
        assert _prompts(store) == []

    def test_a_branch_and_a_continuation_share_the_prompt(self, store: SessionStore) -> None:
        """A branch has the prompt of its session, and a continuation the one that it was built with."""
        store.sessions.create_session("a", "cli", system_prompt=_PROMPT)
        (last,) = say(store, "a", "hello")
        store.rotation.branch_session("a", "branch")
        store.rotation.rotate_session("a", "next", [], last_seen=last, system_prompt="new")
        assert [_prompt(store, name) for name in ("a", "branch", "next")] == [_PROMPT, _PROMPT, "new"]
        assert _prompts(store) == [(None, _PROMPT), (None, "new")]

    def test_a_session_that_gets_a_user_takes_its_prompt_along(self, store: SessionStore) -> None:
        """An import may learn later whose session it is."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=_PROMPT)
        store.imported_rows.set_columns("a", {"user_id": "anna"}, {})
        assert _prompts(store) == [(None, _PROMPT), ("anna", _PROMPT)]
        assert _prompt(store.scoped(Scope.of("anna")), "a") == _PROMPT

    def test_a_text_is_forgotten_in_shared_prompts(self, store: SessionStore) -> None:
        """Every session that has the prompt is named, and the text is in no row afterwards."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt="The zebra is called Otto.")
        matcher = TextMatcher(["Otto"])
        assert [(each.kind, each.session_id) for each in store.passages.find(matcher)] == [
            ("prompt", "a"),
            ("prompt", "b"),
        ]
        store.passages.replace(matcher)
        assert store.passages.find(matcher) == []
        ((_, text),) = _prompts(store)
        assert "Otto" not in text and _prompt(store, "b") == text

    def test_prompts_are_exported_and_imported(self, store: SessionStore, other: SessionStore) -> None:
        """An export has the text in each session; the other store shares it again."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=_PROMPT)
        exported = store.transfer.export_all()
        assert [session["system_prompt"] for session in exported] == [_PROMPT, _PROMPT]
        assert all("system_prompt_id" not in session for session in exported)
        other.transfer.import_sessions(exported)
        assert (_prompts(other), _prompt(other, "b")) == ([(None, _PROMPT)], _PROMPT)


def _prompt(store: SessionStore, session_id: str) -> str | None:
    row = store.sessions.get_session(session_id)
    assert row is not None
    prompt: str | None = row["system_prompt"]
    return prompt


def _prompts(store: SessionStore) -> list[tuple[str | None, str]]:
    with store.engine.reading() as connection:
        rows = connection.execute("SELECT user_id, text FROM system_prompts").fetchall()
    return sorted([(user, text) for user, text in rows], key=lambda row: (row[0] or "", row[1]))
