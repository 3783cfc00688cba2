"""What every vendor's provider must do, besides the contract of all providers; faults come over real sockets.

class TestAcme(VendorContract):
    @pytest.fixture
    def double(self) -> Iterator[VendorDouble]:
        with AcmeDouble.start() as double:
            yield double

    def make_provider(self, double: VendorDouble, home: Path) -> VendorProvider:
        ...  # with a timeout of one second
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.manager import MemoryManager
from memoranda.external.provider import MemoryProvider
from memoranda.external.settings import ProviderSettings
from memoranda.external.vendors.provider import VendorProvider
from memoranda.testing.provider_contract import ProviderContract
from tests.external.vendors.vendor_service import RETRY_AFTER, Fault, VendorDouble
from tests.timing import GIVE_UP, wait_until

TEMPORARY: tuple[Fault, ...] = (429, 500, 503, "slow", "truncated", "garbage", "down")
PERMANENT: tuple[Fault, ...] = (401, 403, 422)
# A vendor may know what to do about these: create what is missing, or use what exists.
DEPENDS: tuple[Fault, ...] = (404, 409)
# Something else answers at the address: a proxy, another service. Nothing of it says that a turn was stored.
FOREIGN: tuple[Fault, ...] = ("empty", "other", "proxy", "huge", "truncated", "garbage")
MAX_READ_BYTES = 60_000_000
SECRET = "vendor-secret-4711"
_QUICK = ProviderSettings(first_retry_seconds=0.01, max_retry_seconds=0.05, max_attempts=1_000, recall_seconds=GIVE_UP)
_OUTAGE_TURNS = 30


class VendorContract(ProviderContract):
    """All tests of the contract. `SECRET` is the key that a vendor's provider should be given."""

    tool_that_searches: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """A tool that reads from the service, with arguments; None for a vendor without one."""
    recalls_live: ClassVar[bool] = True
    """False for a vendor that is only searched after a turn."""

    def make_provider(self, double: Any, home: Path) -> VendorProvider:
        raise NotImplementedError

    @pytest.fixture
    def provider(self, double: VendorDouble, tmp_path: Path) -> Iterator[MemoryProvider]:
        provider = self.make_provider(double, tmp_path)
        yield provider
        provider.shutdown()

    @pytest.fixture
    def started(self, provider: VendorProvider, tmp_path: Path) -> VendorProvider:
        return _start(provider, tmp_path)

    # What the contract of all providers needs

    @pytest.fixture(autouse=True)
    def _remember_double(self, double: VendorDouble) -> None:
        self._double = double

    def stored_texts(self) -> list[str] | None:
        return list(self._double.stored_texts())

    def refuse_turns(self) -> bool:
        self._double.fail(401)
        return True

    def lose_next_answer(self) -> bool:
        self._double.lose_next_answer()
        return True

    # Faults

    @pytest.mark.parametrize("fault", TEMPORARY)
    def test_a_turn_waits_while_the_service_fails(
        self, fault: Fault, started: VendorProvider, double: VendorDouble
    ) -> None:
        """It raises an error that the outbox retries, and the turn is stored when the service answers again."""
        double.fail(fault)
        with pytest.raises(TemporaryProviderError) as caught:
            _turn(started, "k1", "The zebra is called Otto.")
        assert SECRET not in str(caught.value)
        assert caught.value.retry_after == (RETRY_AFTER if fault == 429 else None)
        double.fail(None)
        _turn(started, "k1", "The zebra is called Otto.", attempt=2)
        assert _count(double, "called Otto") == 1

    @pytest.mark.parametrize("fault", PERMANENT)
    def test_a_refused_turn_waits_with_advice(
        self, fault: Fault, provider: VendorProvider, double: VendorDouble, tmp_path: Path
    ) -> None:
        """The error says what a person can do; it is delivered by itself once the service accepts it.

        A turn that is refused for what it contains lets the next ones pass; otherwise their order is kept.
        """
        double.fail(fault)
        with _delivering(provider, tmp_path) as manager:
            for name in ("Otto", "Anna"):
                assert manager.sync_all(f"The zebra is called {name}.", "Noted.", "s1")
            wait_until(lambda: manager.backlog().last_error or not manager.backlog())
            backlog = manager.backlog()
            assert "memoranda provider" in backlog.last_error or "refuses" in backlog.last_error
            assert SECRET not in backlog.last_error
            double.fail(None)
            wait_until(lambda: not manager.backlog())
        stored = re.findall("called (Otto|Anna)", " ".join(double.stored_texts()))
        assert (sorted(stored, reverse=True) if fault == 422 else stored) == ["Otto", "Anna"]

    @pytest.mark.parametrize("fault", FOREIGN)
    def test_only_the_service_confirms_that_a_turn_is_stored(
        self, fault: Fault, started: VendorProvider, double: VendorDouble
    ) -> None:
        """Whatever else answers, the turn waits, at the first attempt and at later ones, and then is stored once."""
        _turn_in_the_end(started, "k0", "The giraffe is called Anna.")
        double.fail(fault)
        for attempt in (1, 2):
            with pytest.raises(TemporaryProviderError):
                _turn(started, "k1", "The zebra is called Otto.", attempt=attempt)
        double.fail(None)
        _turn_in_the_end(started, "k1", "The zebra is called Otto.", attempt=3)
        assert _count(double, "called Otto") == 1
        assert getattr(double, "sent_bytes", 0) < MAX_READ_BYTES

    @pytest.mark.parametrize("fault", DEPENDS)
    def test_a_turn_is_stored_or_refused(self, fault: Fault, started: VendorProvider, double: VendorDouble) -> None:
        """404 and 409 raise unless the vendor's provider handles them, and never lose a turn."""
        double.fail(fault)
        try:
            _turn(started, "k1", "The zebra is called Otto.")
        except ProviderError as error:
            assert SECRET not in str(error)
        else:
            assert _count(double, "called Otto") == 1

    @pytest.mark.parametrize("fault", (*TEMPORARY, *PERMANENT, *DEPENDS))
    def test_recall_is_in_time_whatever_the_service_does(
        self, fault: Fault, started: VendorProvider, double: VendorDouble
    ) -> None:
        """It recalls nothing or raises an error of ours, within the time that the turn has."""
        double.fail(fault)
        began = time.monotonic()
        try:
            recalled = started.prefetch("zebra", session_id="s1", seconds=0.3)
        except ProviderError as error:
            assert SECRET not in str(error)
        else:
            assert recalled == ""
        assert time.monotonic() - began < GIVE_UP

    @pytest.mark.parametrize("fault", (*TEMPORARY, *PERMANENT, *DEPENDS))
    def test_a_tool_answers_whatever_the_service_does(
        self, fault: Fault, started: VendorProvider, double: VendorDouble
    ) -> None:
        """The answer is JSON, without the key."""
        if self.tool_that_searches is None:
            pytest.skip("this vendor has no tool that searches")
        double.fail(fault)
        name, args = self.tool_that_searches
        answer = started.handle_tool_call(name, args, session_id="s1")
        assert isinstance(json.loads(answer), dict)
        assert SECRET not in answer
        if fault not in DEPENDS:
            assert "error" in json.loads(answer)

    # Deliveries

    def test_an_outage_loses_no_turn_and_repeats_none(
        self, provider: VendorProvider, double: VendorDouble, tmp_path: Path
    ) -> None:
        """The service is down for a third of the turns; every turn arrives once and in order."""
        with _delivering(provider, tmp_path) as manager:
            for number in range(_OUTAGE_TURNS):
                if number == _OUTAGE_TURNS // 3:
                    assert manager.drain(GIVE_UP)
                    double.fail("down")
                if number == 2 * _OUTAGE_TURNS // 3:
                    wait_until(lambda: manager.backlog().failing or not manager.backlog())
                    double.fail(None)
                assert manager.sync_all(f"turn-{number:03}-of-many", "Noted.", "s1")
            assert manager.drain(GIVE_UP)
        arrived = re.findall(r"turn-(\d+)-of-many", " ".join(double.stored_texts()))
        assert arrived == [f"{number:03}" for number in range(_OUTAGE_TURNS)]

    @pytest.mark.parametrize("context", ["cron", "subagent", "flush"])
    def test_only_primary_sessions_write(
        self, context: str, provider: VendorProvider, double: VendorDouble, tmp_path: Path
    ) -> None:
        """Turns, memory writes, ends, switches and delegations of other sessions are not stored."""
        _start(provider, tmp_path, agent_context=context)
        _turn(provider, "k1", "The zebra is called Otto.")
        provider.on_memory_write("add", "memory", "The zebra is called Otto.", {}, idempotency_key="k2")
        provider.on_delegation("Name the zebra.", "It is called Otto.", idempotency_key="k3")
        messages = [{"role": "user", "content": "The zebra is called Otto."}]
        provider.on_session_switch("s2", parent_session_id="s1", reason="new_session", idempotency_key="k4")
        provider.on_session_end(messages, session_id="s1", idempotency_key="k5")
        assert _count(double, "called Otto") == 0

    def test_the_session_of_a_delivery_decides_whether_it_is_stored(
        self, provider: VendorProvider, double: VendorDouble, tmp_path: Path
    ) -> None:
        """A schedule delivers a turn that a person's session left behind, and a person's session none of a schedule."""
        _start(provider, tmp_path, agent_context="cron")
        _turn(provider, "k1", "The zebra is called Otto.", agent_context="primary")
        assert _count(double, "called Otto") == 1
        _start(provider, tmp_path)
        _turn(provider, "k2", "The giraffe is called Anna.", agent_context="cron")
        assert _count(double, "called Anna") == 0

    # Recall and users

    def test_recall_finds_a_turn_for_its_user_only(
        self, provider: VendorProvider, double: VendorDouble, tmp_path: Path
    ) -> None:
        """Recalled text names the vendor; another user, the owner and another profile get nothing."""
        _start(provider, tmp_path, user_id="ana")
        _turn(provider, "k1", "The zebra is called Otto.")
        recalled = self._recall(provider)
        assert "Otto" in recalled
        assert provider.vendor_class.label in recalled
        for facts in ({"user_id": "ben"}, {"user_id": ""}, {"user_id": "ana", "agent_identity": "work"}):
            _start(provider, tmp_path, **facts)
            assert "Otto" not in self._recall(provider)

    def _recall(self, provider: VendorProvider) -> str:
        if not self.recalls_live:
            provider.queue_prefetch("zebra called", session_id="s1")
        return provider.prefetch("zebra called", session_id="s1", seconds=GIVE_UP)

    # The prompt

    @pytest.mark.parametrize("mode", ["context", "tools", "hybrid"])
    def test_the_prompt_names_tools_only_if_the_model_has_them(
        self, mode: str, started: VendorProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In the mode context a model has no tools; a prompt of the mode tools promises no recall."""
        monkeypatch.setattr(started.vendor_class, "mode", property(lambda self: mode))
        prompt = started.system_prompt_block()
        named = [schema["name"] for schema in started.get_tool_schemas() if schema["name"] in prompt]
        assert not prompt or bool(named) == (mode != "context")
        if mode == "tools":
            assert not re.search("is recalled|joins each|are added to|is shown with", prompt)

    # The connection, and forgetting

    def test_the_connection_is_tested(self, started: VendorProvider, double: VendorDouble) -> None:
        """A sentence says what answered; a refused key and a service that is down say what to do."""
        assert started.test_connection().endswith("."), "implement test_connection: one cheap call, a sentence"
        double.fail(401)
        with pytest.raises(PermanentProviderError, match="memoranda provider setup") as refused:
            started.test_connection()
        double.fail("down")
        with pytest.raises(TemporaryProviderError) as down:
            started.test_connection()
        assert SECRET not in f"{refused.value}{down.value}"

    def test_forget_deletes_or_lists_everything(self, started: VendorProvider, double: VendorDouble) -> None:
        """What was sent is gone, or the report says what remains."""
        _turn(started, "k1", "The zebra is called Otto.")
        started.on_memory_write("add", "memory", "Otto is a zebra.", {}, idempotency_key="k2")
        report = started.forget()
        assert report["remaining"] or _count(double, "Otto") == 0
        assert started.forget()["deleted"] == []


@contextmanager
def _delivering(provider: VendorProvider, home: Path) -> Iterator[MemoryManager]:
    """A manager with the provider; its deliveries end with the test, also with one that fails."""
    manager = MemoryManager(home, _QUICK)
    assert manager.add_provider(provider) and manager.initialize_all("s1")
    try:
        yield manager
    finally:
        shut_down = manager.shutdown_all()
    assert shut_down


def _start(provider: VendorProvider, home: Path, **facts: Any) -> VendorProvider:
    provider.initialize("s1", hermes_home=str(home), **facts)
    return provider


def _turn(provider: VendorProvider, key: str, text: str, **facts: Any) -> None:
    provider.sync_turn(text, "Noted.", session_id="s1", idempotency_key=key, **facts)


def _turn_in_the_end(provider: VendorProvider, key: str, text: str, attempt: int = 1) -> None:
    """A turn that the service takes; the second of its timeout may be too short once on a busy machine."""
    try:
        _turn(provider, key, text, attempt=attempt)
    except TemporaryProviderError:
        _turn(provider, key, text, attempt=attempt + 1)


def _count(double: VendorDouble, text: str) -> int:
    return " ".join(double.stored_texts()).count(text)
