"""What all vendors share, with a small vendor behind real sockets."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.loading.setup import fields_of, variables_of, write_settings
from memoranda.external.manager import MemoryManager
from memoranda.external.provider import own_members
from memoranda.external.settings import ProviderSettings
from memoranda.external.vendors.sent_record import providers_with_sessions
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import Turn
from tests.external.vendors.acme import AcmeDouble, AcmeProvider, AcmeVendor
from tests.external.vendors.vendor_contract import SECRET
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

QUICK = ProviderSettings(first_retry_seconds=0.02, max_retry_seconds=0.05, recall_seconds=GIVE_UP)


@pytest.fixture
def state() -> Iterator[AcmeDouble]:
    with AcmeDouble.start() as double:
        yield double


@pytest.fixture
def provider(state: AcmeDouble, tmp_path: Path) -> Iterator[AcmeProvider]:
    provider = AcmeProvider(tmp_path, {"url": state.url})
    provider.receive_secrets({"ACME_API_KEY": SECRET})
    yield provider
    provider.shutdown()


def start(provider: AcmeProvider, home: Path, **facts: Any) -> AcmeProvider:
    provider.initialize("s1", hermes_home=str(home), **facts)
    return provider


def settings_of(provider: AcmeProvider, *names: str) -> list[Any]:
    vendor = provider._vendor
    assert vendor is not None
    return [vendor.settings[name] for name in names]


def turn(provider: AcmeProvider, text: str, key: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


def test_recalled_items_are_labelled_with_vendor_time_and_score(provider: AcmeProvider, tmp_path: Path) -> None:
    """A line says where it is from, when it was said, and how well it matches."""
    start(provider, tmp_path)
    turn(provider, "The zebra is called Otto.", "k1", timestamp=1_700_000_000)
    assert provider.prefetch("zebra", session_id="s1") == (
        "- The zebra is called Otto. Noted. (Acme, 2023-11-14, score 0.50)"
    )


def test_recalled_text_has_the_size_that_the_turn_gets(provider: AcmeProvider, tmp_path: Path) -> None:
    """Whole items, as many as fit."""
    start(provider, tmp_path)
    for number in range(5):
        turn(provider, f"The zebra number {number} is called Otto.", f"k{number}")
    whole = provider.prefetch("zebra", session_id="s1", max_chars=10_000)
    assert len(whole.splitlines()) == 5
    assert provider.prefetch("zebra", session_id="s1", max_chars=200).splitlines() == whole.splitlines()[:2]


def test_a_turn_whose_answer_was_lost_is_stored_once(state: AcmeDouble, provider: AcmeProvider, tmp_path: Path) -> None:
    """The outbox repeats the delivery, and the vendor is asked for the key before it is sent again."""
    state.lose_next_answer()
    manager = MemoryManager(tmp_path, QUICK)
    assert manager.add_provider(provider)
    assert manager.initialize_all("s1")
    for number in range(3):
        assert manager.sync_all(f"question {number}", "answer", "s1")
    assert manager.drain(GIVE_UP)
    assert manager.shutdown_all()
    assert [memory["text"] for memory in state.memories] == [f"question {number} answer" for number in range(3)]


def test_a_delivery_says_whether_it_may_have_been_stored_before(
    state: AcmeDouble, provider: AcmeProvider, tmp_path: Path
) -> None:
    """Only a repeated one costs a second call."""
    start(provider, tmp_path)
    turn(provider, "one", "k1", attempt=1)
    assert [method for method, _ in state.requests] == ["POST"]
    turn(provider, "two", "k2", attempt=2)
    assert [method for method, _ in state.requests] == ["POST", "GET", "POST"]


def test_a_turn_in_the_record_is_not_sent_again(state: AcmeDouble, provider: AcmeProvider, tmp_path: Path) -> None:
    """Even by another process that does not know of the first delivery."""
    start(provider, tmp_path)
    turn(provider, "one", "k1")
    provider.shutdown()
    start(provider, tmp_path)
    turn(provider, "one", "k1")
    assert len(state.memories) == 1


def test_a_slow_search_is_given_up_and_repeated_after_the_turn(
    state: AcmeDouble, provider: AcmeProvider, tmp_path: Path
) -> None:
    """Its result is used in the next turn of the same session, once, and in no other session."""
    start(provider, tmp_path)
    turn(provider, "The zebra is called Otto.", "k1")
    provider.queue_prefetch("zebra", session_id="s1")
    state.search_seconds = 0.2
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("zebra", session_id="s1", seconds=0.05)
    provider.queue_prefetch("zebra", session_id="s1")
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("zebra", session_id="s2", seconds=0.05)
    provider.queue_prefetch("zebra", session_id="s1")
    assert "Otto" in provider.prefetch("zebra", session_id="s1", seconds=0.05)
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("zebra", session_id="s1", seconds=0.05)


def test_a_vendor_that_keeps_failing_is_not_asked_in_every_turn(
    state: AcmeDouble, provider: AcmeProvider, tmp_path: Path
) -> None:
    """The breaker is for recall only: a turn is sent all the same."""
    start(provider, tmp_path)
    state.fail(500)
    for _ in range(5):
        with pytest.raises(TemporaryProviderError):
            provider.prefetch("zebra", session_id="s1", seconds=0.1)
    asked = len(state.requests)
    with pytest.raises(TemporaryProviderError, match=r"keeps failing, .*: POST .* 500"):
        provider.prefetch("zebra", session_id="s1")
    assert len(state.requests) == asked
    state.fail(None)
    turn(provider, "one", "k1")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, "acme_search needs query"),
        ({"query": 5}, "query must be of the type string"),
        ({"query": "zebra", "limit": "many"}, "limit must be of the type integer"),
        ({"query": "zebra", "limit": "900"}, "Otto"),
        ({"query": "zebra", "unknown": 1}, "Otto"),
    ],
)
def test_arguments_of_tools_are_checked(
    args: dict[str, Any], expected: str, provider: AcmeProvider, tmp_path: Path
) -> None:
    """A model reads what is wrong; numbers outside the limits are moved into them."""
    start(provider, tmp_path)
    turn(provider, "The zebra is called Otto.", "k1")
    assert expected in json.dumps(json.loads(provider.handle_tool_call("acme_search", args)))


def test_an_error_of_the_service_is_the_answer_of_the_tool(provider: AcmeProvider, tmp_path: Path) -> None:
    """The model can say that memory does not answer."""
    provider.receive_secrets({"ACME_API_KEY": "wrong"})
    start(provider, tmp_path)
    assert "401" in json.loads(provider.handle_tool_call("acme_search", {"query": "zebra"}))["error"]


def test_settings_come_from_the_variable_then_the_file_then_the_default(tmp_path: Path) -> None:
    """A variable wins over what setup saved, and every field has a value."""
    write_settings(tmp_path, "acme", {"url": "https://file.example", "recall_limit": "7"})
    provider = AcmeProvider(tmp_path)
    provider.receive_secrets({"ACME_API_KEY": SECRET})
    start(provider, tmp_path)
    assert settings_of(provider, "url", "recall_limit") == ["https://file.example", 7]
    assert provider.limits() == {"mode": "hybrid"}
    start(provider, tmp_path, secrets={"ACME_URL": "https://variable.example"})
    assert settings_of(provider, "url", "timeout") == ["https://variable.example", 30.0]


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    """It is not available, and starting it says which variable to set."""
    provider = AcmeProvider(tmp_path, {"url": "https://acme.example"})
    assert not provider.is_available()
    with pytest.raises(PermanentProviderError, match=r"api_key \(ACME_API_KEY\) is not set"):
        start(provider, tmp_path)


def test_a_setting_outside_its_limits_is_refused(tmp_path: Path) -> None:
    """The error names the setting, its limits, and the command that sets it."""
    provider = AcmeProvider(tmp_path, {"url": "https://acme.example", "api_key": SECRET, "recall_limit": 900})
    with pytest.raises(ProviderError, match=r"recall_limit must be at most 50.*setup acme"):
        start(provider, tmp_path)


def test_the_schema_of_its_fields_is_read_back_unchanged(tmp_path: Path) -> None:
    """Setup sees what the vendor declares, and that only secrets go to `.env`."""
    expected = [field if field.secret else replace(field, in_env_file=False) for field in AcmeVendor.fields]
    assert fields_of(AcmeProvider(tmp_path)) == expected


def test_forget_deletes_what_was_sent(state: AcmeDouble, provider: AcmeProvider, tmp_path: Path) -> None:
    """Of one session or of all, and it can be repeated."""
    start(provider, tmp_path)
    turn(provider, "one", "k1")
    provider.sync_turn("two", "Noted.", session_id="s2", idempotency_key="k2")
    assert provider.forget(["s1"]) == {"deleted": ["1 turn"], "remaining": []}
    assert [memory["text"] for memory in state.memories] == ["two Noted."]
    state.memories.clear()
    assert provider.forget() == {"deleted": ["1 turn"], "remaining": []}
    assert provider.forget() == {"deleted": [], "remaining": []}


def test_names_at_the_vendor_are_visible(tmp_path: Path) -> None:
    """The status shows under which name the vendor knows the owner."""
    profile = tmp_path / "profiles" / "work"
    profile.mkdir(parents=True)
    assert AcmeProvider(profile).get_status_config({"url": "u"}) == {"url": "u", "user_at_vendor": "work"}


def test_opening_needs_no_service(tmp_path: Path) -> None:
    """A vendor that is down delays no start."""
    provider = AcmeProvider(tmp_path, {"url": "http://127.0.0.1:9", "api_key": SECRET})
    began = time.monotonic()
    start(provider, tmp_path)
    assert [schema["name"] for schema in provider.get_tool_schemas()] == ["acme_search", "acme_add"]
    assert time.monotonic() - began < GIVE_UP
    provider.shutdown()
    with pytest.raises(TemporaryProviderError):
        turn(provider, "one", "k1")


def test_the_manager_queues_nothing_that_a_vendor_does_not_have(tmp_path: Path) -> None:
    """A hook without a method of the vendor is the contract's default."""
    own = own_members(AcmeProvider(tmp_path))
    assert {"sync_turn", "on_memory_write", "on_session_switch", "test_connection", "forget"} <= own
    assert not {"on_session_end", "on_delegation", "on_pre_compress", "system_prompt_block", "check"} & own


def test_only_secrets_are_written_to_the_env_file(provider: AcmeProvider) -> None:
    """The record hides whatever is in `.env`, and an address or a name is no secret; a variable there stays current."""
    fields, values = fields_of(provider), {"url": "http://127.0.0.1", "api_key": SECRET}
    assert variables_of(fields, values) == {"ACME_API_KEY": SECRET}
    assert variables_of(fields, values, {"ACME_URL"}) == {"ACME_API_KEY": SECRET, "ACME_URL": "http://127.0.0.1"}


def test_a_turn_that_a_vendor_does_not_store_is_not_recorded_as_sent(tmp_path: Path, state: AcmeDouble) -> None:
    """Otherwise `forget` would report the deletion of turns that the vendor never had."""

    class Unstored(AcmeVendor):
        def store_turn(self, turn: Turn) -> str | None:  # type: ignore[override]
            return None

    class Provider(AcmeProvider):
        vendor_class = Unstored

    provider = start(Provider(tmp_path, {"url": state.url, "api_key": SECRET}), tmp_path)
    turn(provider, "one", "k1")
    assert providers_with_sessions(tmp_path, ["s1"]) == []
    assert provider.forget() == {"deleted": [], "remaining": []}
    provider.shutdown()


def test_an_error_of_a_tool_contains_no_key(tmp_path: Path, state: AcmeDouble) -> None:
    """A library behind a vendor may quote the key that it was given; a model never reads it."""

    class Quoting(AcmeVendor):
        def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
            raise PermanentProviderError(f"Incorrect API key provided: {self.settings['api_key']}.")

    class Provider(AcmeProvider):
        vendor_class = Quoting

    provider = start(Provider(tmp_path, {"url": state.url, "api_key": SECRET}), tmp_path)
    answer = provider.handle_tool_call("acme_search", {"query": "zebra"})
    assert "Incorrect API key" in answer and SECRET not in answer
    provider.shutdown()
