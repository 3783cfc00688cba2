"""The provider for Supermemory, against both interfaces of the service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, ProviderError
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.supermemory.client import FIELDS, container_name
from memoranda.external.vendors.supermemory.vendor import SupermemoryProvider
from memoranda.external.vendors.vendor import resolve_settings
from tests.external.vendors.supermemory.double import NamespaceDouble, SupermemoryDouble, V4Double
from tests.external.vendors.vendor_contract import SECRET, VendorContract
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

CONTAINER = "memoranda_default"


@pytest.fixture(params=[V4Double, NamespaceDouble], ids=["v4", "v5"])
def double(request: pytest.FixtureRequest) -> Iterator[SupermemoryDouble]:
    with request.param.start() as double:
        yield double


def make(double: SupermemoryDouble, home: Path, **settings: Any) -> SupermemoryProvider:
    provider = SupermemoryProvider(home, {"base_url": double.url, "api_timeout": 1, **settings})
    provider.receive_secrets({"SUPERMEMORY_API_KEY": SECRET})
    return provider


@pytest.fixture
def start(double: SupermemoryDouble, tmp_path: Path) -> Iterator[Any]:
    """Start a provider with settings and facts; it is shut down after the test."""
    providers: list[SupermemoryProvider] = []

    def start_provider(settings: dict[str, Any] | None = None, **facts: Any) -> SupermemoryProvider:
        provider = make(double, tmp_path, **{"api_timeout": GIVE_UP, **(settings or {})})
        provider.initialize("s1", hermes_home=str(tmp_path), **facts)
        providers.append(provider)
        return provider

    yield start_provider
    for provider in providers:
        provider.shutdown()


def sync(provider: SupermemoryProvider, text: str, key: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


def call(provider: SupermemoryProvider, tool: str, **args: Any) -> Any:
    return json.loads(provider.handle_tool_call(tool, args, session_id="s1"))


# The contract runs every day against Acme and Zep.
class TestSupermemoryV4(VendorContract):
    """The interface of client 3.50.0 keeps the contract of all vendors."""

    tool_that_searches = ("supermemory_search", {"query": "zebra"})

    @pytest.fixture
    def double(self) -> Iterator[SupermemoryDouble]:
        with V4Double.start() as double:
            yield double

    def make_provider(self, double: SupermemoryDouble, home: Path) -> SupermemoryProvider:
        return make(double, home, api_version="v4")


# The contract runs every day against Acme and Zep.
class TestSupermemoryV5(VendorContract):
    """The interface of client 5.0.1 keeps the contract of all vendors."""

    tool_that_searches = ("supermemory_search", {"query": "zebra"})

    @pytest.fixture
    def double(self) -> Iterator[SupermemoryDouble]:
        with NamespaceDouble.start() as double:
            yield double

    def make_provider(self, double: SupermemoryDouble, home: Path) -> SupermemoryProvider:
        return make(double, home, api_version="v5")


def test_the_interface_is_found_out_once(start: Any, double: SupermemoryDouble) -> None:
    """The newer one is used if the service has it; the test of the connection names it."""
    provider = start()
    sync(provider, "My cat is called Miso.", "k1")
    sync(provider, "My dog is called Kiwi.", "k2")
    assert sum(path.startswith("/ns?") for _, path in double.requests) == 1
    expected = "v4" if isinstance(double, V4Double) else "v5"
    assert f"with the interface {expected}; the container is {CONTAINER}." in provider.test_connection()


@pytest.mark.parametrize("fault", ["proxy", "other", "empty", 404, 503, "down"])
def test_an_outage_at_the_start_does_not_choose_the_interface(
    start: Any, double: SupermemoryDouble, fault: Any
) -> None:
    """Whatever answers meanwhile; when the service is there again, its own interface is used."""
    provider = start()
    double.fail(fault)
    with pytest.raises(ProviderError):
        sync(provider, "My cat is called Miso.", "k1")
    double.fail(None)
    sync(provider, "My cat is called Miso.", "k1", attempt=2)
    assert [document["text"] for document in double.documents.values()] == [
        "User: My cat is called Miso.\nAssistant: Noted."
    ]


def test_a_turn_is_one_document_with_its_time_and_session(start: Any, double: SupermemoryDouble) -> None:
    """It belongs to the container of the user, and says where it is from."""
    sync(start({"entity_context": "Ana is a vet."}), "My cat is called Miso.", "k1", timestamp=1_700_000_000)
    (document,) = double.documents.values()
    assert document["container"] == CONTAINER
    assert document["text"] == "User: My cat is called Miso.\nAssistant: Noted."
    assert document["date"] == "2023-11-14T22:13:20+00:00"
    metadata = {name: value for name, value in document["body"]["metadata"].items() if name != "date"}
    assert metadata == {"sm_source": "memoranda", "type": "conversation_turn", "session_id": "s1"}
    assert "Ana is a vet." in document["body"].values()


def test_the_profile_joins_the_first_turn_and_then_every_few(start: Any, double: SupermemoryDouble) -> None:
    """Between them only what matches is recalled."""
    provider = start({"profile_frequency": 2})
    sync(provider, "My cat is called Miso.", "k1")
    recalled = [provider.prefetch("cat", session_id="s1", seconds=GIVE_UP) for _ in range(3)]
    assert all("Miso" in text and "(Supermemory, memory, 2026-11-16, score 0.89)" in text for text in recalled)
    assert ["software engineer" in text for text in recalled] == [True, False, True]


def test_a_session_is_one_conversation_if_turns_are_not_stored(start: Any, double: SupermemoryDouble) -> None:
    """A second end of a session that was resumed replaces the conversation."""
    provider = start({"capture_mode": "session"})
    sync(provider, "My cat is called Miso.", "k1")
    assert double.stored_texts() == []
    messages = [{"role": "user", "content": "My cat is Miso."}, {"role": "assistant", "content": "Noted."}]
    provider.on_session_end(messages, session_id="s1", idempotency_key="k2", attempt=1)
    provider.on_session_end(
        [*messages, {"role": "user", "content": "And Kiwi."}], session_id="s1", idempotency_key="k3"
    )
    assert len(double.stored_texts()) == 1
    assert double.stored_texts()[0].count("Miso") == 1
    assert "Kiwi" in double.stored_texts()[0]
    assert provider.forget()["deleted"]
    assert double.stored_texts() == []


def test_curated_memory_is_mirrored(start: Any, double: SupermemoryDouble) -> None:
    """A replaced or removed entry disappears; an address is a text and not something to fetch."""
    provider = start()
    provider.on_memory_write("add", "user", "https://ana.example", {}, idempotency_key="k1")
    assert double.stored_texts() == ["About the user: https://ana.example"]
    provider.on_memory_write("replace", "user", "Prefers tea.", {"old_text": "https://ana.example"})
    assert double.stored_texts() == ["About the user: Prefers tea."]
    provider.on_memory_write("remove", "user", "", {"old_text": "Prefers tea."})
    assert double.stored_texts() == []


def test_the_same_entry_of_two_users_is_two_documents(start: Any, double: SupermemoryDouble) -> None:
    """Ids of documents are unique across containers, so removing one must not remove the other."""
    for user in ("ana", "ben"):
        start(user_id=user).on_memory_write("add", "user", "Prefers tea.", {}, idempotency_key=user)
    assert len(double.documents) == 2
    start(user_id="ana").on_memory_write("remove", "user", "", {"old_text": "Prefers tea."})
    assert [document["container"] for document in double.documents.values()] == ["memoranda_default__ben"]


def test_the_tools_answer_under_their_names(start: Any, double: SupermemoryDouble) -> None:
    """Each has the arguments that users of Supermemory know."""
    provider = start()
    schemas = {schema["name"]: list(schema["parameters"]["properties"]) for schema in provider.get_tool_schemas()}
    assert schemas == {
        "supermemory_store": ["content", "metadata"],
        "supermemory_search": ["query", "limit"],
        "supermemory_forget": ["id", "query"],
        "supermemory_profile": ["query"],
    }
    assert "Stored" in call(provider, "supermemory_store", content="The cat is Miso.", metadata={"a": 1})["result"]
    (found,) = call(provider, "supermemory_search", query="cat")["results"]
    assert (found["content"], found["similarity"]) == ("The cat is Miso.", 0.89)
    assert call(provider, "supermemory_profile")["profile"][0]["content"] == "Ana is a software engineer."
    assert len(call(provider, "supermemory_profile", query="cat")["results"]) == 1
    assert call(provider, "supermemory_forget", query="cat")["content"] == "The cat is Miso."
    assert call(provider, "supermemory_search", query="cat")["results"] == []
    assert "error" in call(provider, "supermemory_forget", id="mem_0")
    assert "error" in call(provider, "supermemory_forget")


def test_the_model_may_choose_among_named_containers(start: Any, double: SupermemoryDouble) -> None:
    """Only among those, and each user has a set of them; what was stored there is deleted with the rest."""
    settings = {"enable_custom_container_tags": True, "custom_containers": "work, home"}
    provider = start(settings, user_id="ana")
    assert "error" in call(provider, "supermemory_store", content="x", container_tag="other")
    assert "id" in call(provider, "supermemory_store", content="The cat is Miso.", container_tag="work")
    (document,) = double.documents.values()
    assert document["container"] == "work__ana"
    assert call(provider, "supermemory_search", query="cat")["results"] == []
    assert len(call(provider, "supermemory_search", query="cat", container_tag="work")["results"]) == 1
    # Also if they are not offered any more.
    start(user_id="ana").forget()
    assert double.documents == {}


def test_forget_deletes_the_documents_of_a_session(start: Any, double: SupermemoryDouble) -> None:
    """Other sessions keep theirs."""
    provider = start()
    sync(provider, "My cat is called Miso.", "k1")
    provider.sync_turn("My dog is called Kiwi.", "Noted.", session_id="s2", idempotency_key="k2")
    assert provider.forget(["s1"]) == {"deleted": ["1 turn"], "remaining": []}
    assert double.stored_texts() == ["User: My dog is called Kiwi.\nAssistant: Noted."]


def test_forget_leaves_what_others_have_stored(start: Any, double: SupermemoryDouble) -> None:
    """A container with a name of the user's choice may have other documents."""
    provider = start({"container_tag": "team"})
    sync(provider, "My cat is called Miso.", "k1")
    double.put("report", "team", "Quarterly report.", "2026", {})
    provider.forget()
    assert double.stored_texts() == ["Quarterly report."]


@pytest.mark.parametrize(("settings", "mode"), [({"mode": "context"}, "context"), ({"auto_recall": False}, "tools")])
def test_modes(start: Any, settings: dict[str, Any], mode: str) -> None:
    """Without `auto_recall` only the tools remain."""
    assert start(settings).limits() == {"mode": mode}


def test_containers_of_users_and_profiles_differ(tmp_path: Path) -> None:
    """The default name has both; a fixed name belongs to the owner, and other users get one with their name."""
    people = [("default", ""), ("default", "a"), ("default", "a_b"), ("a", "b"), ("a_b", ""), ("default", "u" * 200)]
    names = [container_name(VendorScope(tmp_path, *person), _settings()) for person in people]
    assert len(set(names)) == len(people)
    assert all(len(name) <= 100 for name in names)
    fixed = _settings(container_tag="hermes")
    assert container_name(VendorScope(tmp_path), fixed) == "hermes"
    assert container_name(VendorScope(tmp_path, "default", "a"), fixed) == "hermes__a"


@pytest.mark.parametrize("tag", ["a b", "a/b", "x" * 101])
def test_an_invalid_container_is_refused(tag: str, tmp_path: Path) -> None:
    """With a message that names the setting."""
    with pytest.raises(PermanentProviderError, match="container_tag"):
        container_name(VendorScope(tmp_path), _settings(container_tag=tag))


def _settings(**given: Any) -> dict[str, Any]:
    return resolve_settings(FIELDS, "supermemory", None, given, {})
