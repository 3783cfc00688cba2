"""The provider for Hindsight, against answers that a real server gave."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import PermanentProviderError
from memoranda.external.loading.setup import fields_of, resolve_values, write_settings
from memoranda.external.vendors.hindsight.client import FIELDS, bank_name
from memoranda.external.vendors.hindsight.vendor import HindsightProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.vendor import resolve_settings
from memoranda.home import config
from memoranda.support.home import Home
from tests.external.vendors.hindsight.double import HindsightDouble
from tests.external.vendors.vendor_contract import SECRET, VendorContract
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

BANK = "memoranda-default"


@pytest.fixture
def double() -> Iterator[HindsightDouble]:
    with HindsightDouble.start() as double:
        yield double


def make(double: HindsightDouble, home: Path, **settings: Any) -> HindsightProvider:
    given = {"mode": "local_external", "api_url": double.url, "timeout": 1, **settings}
    provider = HindsightProvider(home, given)
    provider.receive_secrets({"HINDSIGHT_API_KEY": SECRET})
    return provider


@pytest.fixture
def start(double: HindsightDouble, tmp_path: Path) -> Iterator[Any]:
    """Start a provider with settings and facts; it is shut down after the test."""
    providers: list[HindsightProvider] = []

    def start_provider(settings: dict[str, Any] | None = None, **facts: Any) -> HindsightProvider:
        provider = make(double, tmp_path, **{"timeout": GIVE_UP, **(settings or {})})
        provider.initialize("s1", hermes_home=str(tmp_path), **facts)
        providers.append(provider)
        return provider

    yield start_provider
    for provider in providers:
        provider.shutdown()


def sync(provider: HindsightProvider, text: str, key: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


def call(provider: HindsightProvider, tool: str, **args: Any) -> Any:
    return json.loads(provider.handle_tool_call(tool, args, session_id="s1"))


# The contract runs every day against Acme and Zep.
class TestHindsight(VendorContract):
    """Hindsight keeps the contract of all vendors."""

    tool_that_searches = ("hindsight_recall", {"query": "zebra"})

    @pytest.fixture
    def double(self, double: HindsightDouble) -> HindsightDouble:
        return double

    def make_provider(self, double: HindsightDouble, home: Path) -> HindsightProvider:
        return make(double, home)


def test_a_turn_is_one_document_with_its_time_and_session(start: Any, double: HindsightDouble) -> None:
    """Hindsight can order, tag and delete turns one by one, and consolidates those of all sessions together."""
    sync(start(), "My cat is called Miso.", "k1", timestamp=1_700_000_000)
    (item,) = double.banks[BANK].values()
    assert item["content"] == "User: My cat is called Miso.\nAssistant: Noted."
    assert item["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert (item["tags"], item["observation_scopes"]) == (["session:s1"], "shared")
    assert item["document_id"].startswith("memoranda:")
    assert item["metadata"] == {"source": "memoranda", "session_id": "s1"}


def test_every_n_turns_are_one_document_and_none_is_lost(double: HindsightDouble, tmp_path: Path) -> None:
    """The rest follows when the session ends, or from the next process if it was killed."""
    home = Home.at(tmp_path)
    config.set_value(home, "memory.provider", "hindsight")
    settings = {"mode": "local_external", "api_url": double.url, "retain_every_n_turns": 3}
    write_settings(tmp_path, "hindsight", settings)
    config.set_secret(home, "HINDSIGHT_API_KEY", SECRET)
    with memoranda.open(tmp_path) as memory:
        with memory.session(session_id="s1") as session:
            wait_until(lambda: session.external.find_tool("hindsight_retain", "hindsight") is not None)
            for number in range(7):
                with session.turn(f"Question {number}.") as turn:
                    turn.done(f"Answer {number}.")
                # Turns that come faster than they are delivered may be fewer in one.
                documents = (number + 1) // 3
                wait_until(lambda documents=documents: len(double.stored_texts()) == documents)  # type: ignore[misc]
        wait_until(lambda: len(double.stored_texts()) == 3)
    texts = double.stored_texts()
    assert texts[0] == "\n".join(f"User: Question {n}.\nAssistant: Answer {n}." for n in range(3))
    assert [text.count("User:") for text in texts] == [3, 3, 1]


def test_an_item_that_failed_after_it_was_accepted_is_retried(start: Any, double: HindsightDouble) -> None:
    """Sending it again would store nothing; the next delivery has Hindsight process it again."""
    double.model_works = False
    sync(start(), "My cat is called Miso.", "k1")
    assert double.stored_texts() == []
    double.model_works = True
    sync(start(), "My dog is called Kiwi.", "k2")
    assert len(double.stored_texts()) == 2


def test_an_item_that_keeps_failing_is_reported(start: Any, double: HindsightDouble) -> None:
    """It is retried three times; the test of the connection then says what is wrong, and retries everything."""
    double.model_works = False
    for number in range(6):
        sync(start(), "My cat is called Miso.", f"k{number}")
    retries = [path for method, path in double.requests if path.endswith("/retry")]
    first = next(operation for operation in double.operations)
    assert sum(first in path for path in retries) == 3
    report = start().test_connection()
    assert "accepted 6 item(s) and could not process them" in report
    assert "APIConnectionError" in report
    double.model_works = True
    assert "They are processed again now" in start().test_connection()
    assert len(double.stored_texts()) == 6
    assert "could not process" not in start().test_connection()


def test_all_failures_are_found_however_many_there_are(start: Any, double: HindsightDouble) -> None:
    """The server lists them in pages."""
    double.model_works = False
    provider = start()
    sync(provider, "My cat is called Miso.", "k1")
    (failed,) = double.operations.values()
    for number in range(119):
        item = failed["item"] | {"document_id": f"memoranda:{number}"}
        double.operations[f"o{number}"] = failed | {"id": f"o{number}", "item": item}
    double.model_works = True
    assert "accepted 120 item(s)" in provider.test_connection()
    assert len(double.stored_texts()) == 120
    assert provider.forget()["deleted"] == ["1 turn"]
    assert double.stored_texts() == []


def test_a_provider_that_waits_stores_before_it_returns(start: Any, double: HindsightDouble) -> None:
    """With `retain_async` off no operation can fail later, and a repeated turn replaces its document."""
    provider = start({"retain_async": False})
    sync(provider, "My cat is called Miso.", "k1")
    provider.shutdown()
    assert double.operations == {}
    assert len(double.stored_texts()) == 1


def test_curated_memory_is_mirrored(start: Any, double: HindsightDouble) -> None:
    """A replaced or removed entry disappears, so that recall does not contradict curated memory."""
    provider = start()
    provider.on_memory_write("add", "user", "Ana prefers tea.", {}, idempotency_key="k1")
    assert double.stored_texts() == ["Ana prefers tea."]
    provider.on_memory_write("replace", "user", "Ana prefers coffee.", {"old_text": "Ana prefers tea."}, attempt=1)
    assert double.stored_texts() == ["Ana prefers coffee."]
    provider.on_memory_write("remove", "user", "", {"old_text": "Ana prefers coffee."})
    assert double.stored_texts() == []


def test_the_tools_answer_under_their_names(start: Any, double: HindsightDouble) -> None:
    """Each has the arguments and the `result` that users of Hindsight know."""
    provider = start()
    schemas = {schema["name"]: list(schema["parameters"]["properties"]) for schema in provider.get_tool_schemas()}
    assert schemas == {
        "hindsight_retain": ["content", "context", "tags"],
        "hindsight_recall": ["query"],
        "hindsight_reflect": ["query"],
    }
    assert "Accepted" in call(provider, "hindsight_retain", content="The cat is Miso.", tags=["project:x"])["result"]
    assert call(provider, "hindsight_recall", query="cat")["result"].startswith("1. The cat is Miso. (observation, ")
    assert call(provider, "hindsight_recall", query="?!") == {"result": "No memories match."}
    assert call(provider, "hindsight_reflect", query="cat") == {"result": "A reflected answer."}
    (item,) = double.banks[BANK].values()
    assert item["tags"] == ["session:s1", "project:x"]


@pytest.mark.parametrize(
    ("memory_mode", "auto_recall", "mode"), [("context", True, "context"), ("hybrid", False, "tools")]
)
def test_modes_are_those_of_hindsight(start: Any, memory_mode: str, auto_recall: bool, mode: str) -> None:
    """`memory_mode` chooses recall, tools or both; without `auto_recall` only tools remain."""
    assert start({"memory_mode": memory_mode, "auto_recall": auto_recall}).limits()["mode"] == mode


def test_a_reflection_joins_the_next_turn(start: Any, double: HindsightDouble) -> None:
    """It is written after a turn, because it takes longer than a turn waits."""
    provider = start({"recall_prefetch_method": "reflect"})
    sync(provider, "My cat is called Miso.", "k1")
    provider.queue_prefetch("cat", session_id="s1")
    recalled = provider.prefetch("cat", session_id="s1", seconds=GIVE_UP)
    assert "A reflected answer. (Hindsight, reflection)" in recalled
    assert "Miso" in recalled


def test_turns_are_not_stored_without_auto_retain(start: Any, double: HindsightDouble) -> None:
    """Curated memory and the tool still write."""
    provider = start({"auto_retain": False})
    sync(provider, "My cat is called Miso.", "k1")
    assert double.stored_texts() == []


def test_missions_reach_the_bank_before_the_first_turn(start: Any, double: HindsightDouble) -> None:
    """They say what to extract, and what reflect should consider."""
    provider = start({"bank_mission": "Help Ana.", "bank_retain_mission": "Decisions."})
    sync(provider, "My cat is called Miso.", "k1")
    sync(provider, "My dog is called Kiwi.", "k2")
    assert double.missions == {BANK: {"reflect_mission": "Help Ana.", "retain_mission": "Decisions."}}
    assert [method for method, _ in double.requests].count("PUT") == 1


def test_forget_deletes_the_documents_of_a_session(start: Any, double: HindsightDouble) -> None:
    """Operations contain the text as well; other sessions keep theirs."""
    provider = start()
    sync(provider, "My cat is called Miso.", "k1")
    provider.sync_turn("My dog is called Kiwi.", "Noted.", session_id="s2", idempotency_key="k2")
    report = provider.forget(["s1"])
    assert report["deleted"] == ["1 turn"]
    assert len(report["remaining"]) == 1
    assert double.stored_texts() == ["User: My dog is called Kiwi.\nAssistant: Noted."]
    assert len(double.operations) == 1


def test_forget_leaves_what_others_have_stored(start: Any, double: HindsightDouble) -> None:
    """A bank that is shared is not deleted; the report names the documents that remain."""
    provider = start()
    sync(provider, "My cat is called Miso.", "k1")
    other = {"document_id": "report", "content": "Quarterly report.", "timestamp": "2026"}
    double.banks[BANK]["report"] = other
    assert "1 documents" in provider.forget()["remaining"][0]
    assert double.stored_texts() == ["Quarterly report."]
    assert double.operations == {}


def test_banks_of_users_and_profiles_differ(tmp_path: Path) -> None:
    """The default name, and each template, give one bank to one user of one profile."""
    people = [("default", ""), ("default", "a"), ("default", "a-b"), ("a", "b"), ("a-b", ""), ("default", "owner")]
    for template in ("", "{profile}-{user}", "x-{user}-{profile}", "team"):
        settings = _settings(bank_id_template=template)
        names = [bank_name(VendorScope(tmp_path, profile, user), settings) for profile, user in people]
        # A template without {profile} was chosen by the owner of the profile.
        expected = 6 if template != "team" else 5
        assert len(set(names)) == expected, template


@pytest.mark.parametrize("template", ["{session}", "{profile}{user}", "{profile}x{user}", "a/b", "x" * 200])
def test_an_ambiguous_bank_is_refused(template: str, tmp_path: Path) -> None:
    """With a message that names the setting or the bank."""
    with pytest.raises(PermanentProviderError, match="hindsight: "):
        bank_name(VendorScope(tmp_path), _settings(bank_id_template=template))


def test_a_type_that_does_not_exist_is_refused(start: Any) -> None:
    """At the start, because the server would refuse every recall."""
    with pytest.raises(PermanentProviderError, match="recall_types has 'opinion'"):
        start({"recall_types": "world, opinion"})


def test_the_cloud_needs_a_key(tmp_path: Path) -> None:
    """Without one the provider is not available, and says what to do; a server of one's own needs none."""
    assert not HindsightProvider(tmp_path).is_available()
    assert HindsightProvider(tmp_path, {"mode": "local_external"}).is_available()
    with pytest.raises(PermanentProviderError, match="provider setup hindsight"):
        HindsightProvider(tmp_path).initialize("s1", hermes_home=str(tmp_path))


def test_setup_asks_for_the_address_of_the_mode(tmp_path: Path) -> None:
    """The address follows the mode unless it is set, and a list may be written with commas."""
    fields = fields_of(HindsightProvider(tmp_path))
    assert resolve_values(fields, {})["api_url"] == "https://api.hindsight.vectorize.io"
    assert resolve_values(fields, {"mode": "local_external"})["api_url"] == "http://localhost:8888"


def _settings(**given: Any) -> dict[str, Any]:
    return resolve_settings(FIELDS, "hindsight", None, given, {})
