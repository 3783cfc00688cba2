"""Providers that keep the contract: one in memory, and two as plugins for Hermes are written."""

import socket
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.provider import MemoryProvider
from memoranda.testing.provider_contract import ProviderContract
from tests.external.samples import HermesStyle, InMemory, NewerHermesStyle

pytestmark = pytest.mark.slow


class TestInMemory(ProviderContract):
    @pytest.fixture
    def provider(self) -> MemoryProvider:
        return InMemory()


class TestHermesStyle(ProviderContract):
    @pytest.fixture
    def provider(self) -> MemoryProvider:
        return HermesStyle()


class TestNewerHermesStyle(ProviderContract):
    @pytest.fixture
    def provider(self) -> MemoryProvider:
        return NewerHermesStyle()


class _Connecting(InMemory):
    def is_available(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", 9)) >= 0


class _Garbage(InMemory):
    def prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> str:
        return 5  # type: ignore[return-value]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Any) -> str:
        return "no JSON"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [*super().get_tool_schemas(), {"name": "memory"}]


class _Narrow(InMemory):
    """Takes nothing that it does not know."""

    def initialize(self, session_id: str, **facts: Any) -> None:
        if "a_fact_of_the_future" in facts:
            raise ValueError
        super().initialize(session_id, **facts)


class _Once(InMemory):
    """Cannot be closed twice."""

    def shutdown(self) -> None:
        super().shutdown()
        if self.closed == 2:
            raise ValueError


class _Shared(InMemory):
    """Has one memory for all users."""

    def initialize(self, session_id: str, **facts: Any) -> None:
        super().initialize(session_id, **facts | {"user_id": ""})


class _Forgetful(InMemory):
    """Cannot do with a turn that it has had, nor with a write that nothing is known about."""

    def sync_turn(self, user_content: str, assistant_content: str, **facts: Any) -> None:
        if facts["idempotency_key"] in self.keys:
            raise ValueError
        super().sync_turn(user_content, assistant_content, **facts)

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Any
    ) -> None:
        super().on_memory_write(action, target, (metadata or {})["old_text"], metadata, **facts)


@pytest.mark.parametrize(
    ("provider", "test"),
    [
        (_Connecting, "test_it_says_whether_it_is_available_without_network"),
        (_Garbage, "test_it_recalls_text"),
        (_Garbage, "test_its_tools_answer_with_json_text"),
        (_Garbage, "test_its_tools_can_be_offered_to_any_model"),
        (_Narrow, "test_it_is_initialized_with_facts_that_it_does_not_know"),
        (_Once, "test_it_can_be_shut_down_twice_and_without_a_start"),
        (_Once, "test_it_can_be_shut_down_after_use"),
        (_Shared, "test_one_user_never_sees_data_of_another"),
        (_Forgetful, "test_it_accepts_turns_with_and_without_a_transcript"),
        (_Forgetful, "test_it_accepts_every_memory_write"),
    ],
)
def test_the_contract_notices(provider: type[InMemory], test: str, tmp_path: Path) -> None:
    """A provider that breaks it fails the test that is about it."""
    arguments: tuple[Any, ...] = (provider(),) if provider is _Connecting else (provider(), tmp_path)
    with pytest.raises((AssertionError, ValueError)):
        getattr(ProviderContract(), test)(*arguments)
