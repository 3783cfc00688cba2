"""Two users on `memoranda server serve`: no page shows one what belongs to the other, and no form changes it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from memoranda.api.memory import Memory
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.outbox.outbox import Outbox
from memoranda.importers.reader_protocol import ImportedItem
from memoranda.integrations.hooks.log import HookLog
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.models.model import Usage
from memoranda.service.viewer.mount import viewer_mount
from memoranda.service.viewer.page import Page, page_url
from memoranda.service.viewer.pages import PAGES
from memoranda.support.canonical_text import digest
from memoranda.support.origin import PERSON, Origin
from tests.models.spending.models import QUESTION, Fixed
from tests.service.http.running_service import RunningService, run_service
from tests.service.viewer.example_operation import add_import
from tests.service.viewer.running_viewer import form_token

USERS = ("ana", "bo")
PAGES_TO_SEE = [page for page in PAGES if page.show is not None]
PAGES_WITH_FORMS = [page for page in PAGES if page.submit is not None]


@dataclass(frozen=True)
class Neighbour:
    """One user: a word that occurs in everything of the user, and the parts of addresses that lead there."""

    name: str
    memory: Memory
    parts: dict[str, str]

    @property
    def word(self) -> str:
        return f"heron{self.name}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """The service with the viewer, as `memoranda server serve` runs it."""
    with run_service(tmp_path_factory.mktemp("users") / "home", mounts=(viewer_mount(),)) as running:
        yield running


@pytest.fixture(scope="module")
def neighbours(service: RunningService) -> dict[str, Neighbour]:
    """The two users, each with something on every page."""
    return {name: _fill(service, name) for name in USERS}


@pytest.fixture(scope="module")
def clients(service: RunningService, neighbours: dict[str, Neighbour]) -> dict[str, httpx.Client]:
    """A browser of each user, logged in with a key that is bound to the user and has every scope."""
    found = {}
    for name in neighbours:
        client = service.client()
        client.headers["Origin"] = service.url
        fields = {"key": service.key(user=name), "user": ""}
        assert client.post("/view/login", data=fields).status_code == 200
        found[name] = client
    return found


def _fill(service: RunningService, name: str) -> Neighbour:
    memory = service.service.memory_of(name)
    found = Neighbour(name, memory, {})
    word, home = found.word, memory.home.root
    session = f"session-{word}"
    memory.sessions.create_session(session, f"agent-{word}", title=f"Title {word}", user_id=name)
    message = memory.sessions.append_message(session, "user", f"Where is the {word}? Nobody saw the {word} today.")
    memory.curated.add("memory", f"The {word} is grey.", Origin("agent", session))
    memory.curated.add("user", f"Likes the {word}.", PERSON)
    memory.curated.add("user", f"likes the {word}", PERSON)
    store = MemoryStore(memory.curated.directory, CuratedSettings(write_approval="propose"))
    store.apply("memory", [Add(f"The {word} nests.")], Origin("agent", session))
    facts = FactStore(home, name)
    facts.add(f"The {word} lives in Lisbon.")
    facts.close()
    memory.items.put(("birds",), f"item-{word}", {"text": f"The {word} sleeps."})
    add_import(memory, f"import-{word}", ImportedItem(("trees",), "oak", {"text": "Oaks grow."}, 1.0, 2.0))
    outbox = Outbox(home)
    outbox.put("zep", "turn", session, {"user_content": word}, {}, scope=name)
    job = outbox.claim("zep", name)
    assert job is not None
    outbox.failed(job, f"refused {word}", permanent=True)
    outbox.close()
    log = HookLog(home, 1_700_000_000.0 + len(name))
    log.begin("codex", "UserPromptSubmit", session, f"about the {word}", name)
    log.end("nothing", f"nothing for {word}")
    memory.services.metered(Fixed(Usage(10, 10)), f"purpose-{word}", session, name).reply("", QUESTION)
    found.parts.update(
        session=session, message=str(message), target="memory", entry=digest(f"The {word} is grey."),
        proposal=store.proposals.all()[0].id, call=log.call_id, finding="0" * 16, logged=f"import-{word}",
    )  # fmt: skip
    return found


def _address(page: Page, parts: dict[str, str], **query: str) -> str:
    return page_url(page.path, **query, **{name: parts[name] for name in re.findall(r"{(\w+)}", page.path)})


@pytest.mark.slow
def test_no_page_shows_what_belongs_to_another_user(
    clients: dict[str, httpx.Client], neighbours: dict[str, Neighbour]
) -> None:
    """A page of one's own shows it; the same address with the other's parts and words shows nothing of the other."""
    for page in PAGES_TO_SEE:
        ana, bo = (neighbours[name] for name in USERS)
        own = clients["ana"].get(_address(page, ana.parts, q=ana.word, by="purpose"))
        if page.owner_only:
            assert own.status_code == 403
        elif page.name not in ("timeline", "memory-prompt", "version"):
            assert own.status_code == 200 and ana.word in own.text, (
                f"{page.name} shows nothing of its own user: see _fill"
            )
        assert bo.word not in own.text
        other = clients["ana"].get(_address(page, bo.parts, q="heronb*", words="heron", by="purpose"))
        # The address itself is text that the visitor sent.
        sent = {bo.word, *bo.parts.values()}
        shown = other.text
        for text in sorted(sent - {bo.word, "memory"}, key=len, reverse=True):
            shown = shown.replace(text, "")
        assert bo.word not in shown, shown
        if "{" in page.path and "target" not in page.path:
            assert other.status_code in (403, 404)


@pytest.mark.slow
def test_what_one_user_does_changes_no_page_of_another(
    clients: dict[str, httpx.Client], neighbours: dict[str, Neighbour]
) -> None:
    """The version that open pages ask for is another one only after something of one's own has changed."""
    before = {name: client.get(page_url("/version")).text for name, client in clients.items()}
    bo = neighbours["bo"].memory
    bo.sessions.append_message(neighbours["bo"].parts["session"], "user", "One more.")
    bo.curated.add("user", "Likes quiet.", PERSON)
    after = {name: client.get(page_url("/version")).text for name, client in clients.items()}
    assert after["ana"] == before["ana"] and after["bo"] != before["bo"]


@pytest.mark.slow
def test_no_form_changes_what_belongs_to_another_user(
    clients: dict[str, httpx.Client], neighbours: dict[str, Neighbour]
) -> None:
    """Whatever a form names, the other's entries, proposals and deliveries stay as they are."""
    for page in PAGES_WITH_FORMS:
        bo, client = neighbours["bo"], clients["ana"]
        before = _state(bo)
        token = form_token(client.get("/view/memory").text)
        handle = bo.memory.curated.view("memory").entries[0].handle
        fields = {
            "form_token": token, "change": "1", "handle": handle, "target": "memory", "provider": "zep",
            "text": f"Written by ana into {page.name}.",
        }  # fmt: skip
        for action in ("save", "remove", "approve", "reject", "restore"):
            answer = client.post(_address(page, bo.parts), data=fields | {"action": action}, follow_redirects=True)
            assert answer.status_code < 500
            assert bo.word not in answer.text.replace(bo.parts["session"], "")
        assert _state(bo) == before


def _state(user: Neighbour) -> object:
    curated = user.memory.curated
    outbox = Outbox(user.memory.home.root)
    jobs = outbox.list_jobs(user.name, 10)
    outbox.close()
    return curated.entries("memory"), curated.entries("user"), curated.proposals.all(), jobs


@pytest.mark.slow
def test_a_key_without_a_scope_has_no_buttons(service: RunningService, neighbours: dict[str, Neighbour]) -> None:
    """A key that may only read sees the pages of its user, and its forms are refused."""
    client = service.client()
    client.headers["Origin"] = service.url
    client.post("/view/login", data={"key": service.key("read", user="ana"), "user": ""})
    page = client.get("/view/memory")
    assert neighbours["ana"].word in page.text and "<textarea" not in page.text
    assert "Health" not in page.text
    fields = {"form_token": form_token(page.text), "target": "memory", "text": "x"}
    assert client.post("/view/memory", data=fields).status_code == 403
    assert client.get("/view/health").status_code == 403


def test_an_admin_of_the_home_sees_its_health(service: RunningService) -> None:
    """The owner's key with every scope sees Health; without the scope admin it does not."""
    for scopes, status in (((), 200), (("read", "curate"), 403)):
        client = service.client()
        client.headers["Origin"] = service.url
        client.post("/view/login", data={"key": service.key(*scopes), "user": ""})
        assert client.get("/view/health?check=1").status_code == status


@pytest.mark.slow
def test_only_the_owner_sees_api_keys(service: RunningService, clients: dict[str, httpx.Client]) -> None:
    """Their names, users and last use; a key of a user shows that user's page without them."""
    owner = service.client()
    owner.headers["Origin"] = service.url
    named, token = service.service.keys.create(("read",), name="The gateway of the owner")
    assert owner.post("/view/login", data={"key": token, "user": ""}).status_code == 200
    page = owner.get("/view/kept").text
    assert named.id in page and "The gateway of the owner" in page
    assert named.id not in clients["ana"].get("/view/kept").text
