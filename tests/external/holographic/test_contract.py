"""The holographic memory keeps the contract of every provider."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.external.holographic import HolographicProvider
from memoranda.external.provider import MemoryProvider
from memoranda.testing.provider_contract import ProviderContract

pytestmark = pytest.mark.slow


class TestHolographic(ProviderContract):
    """The public suite."""

    @pytest.fixture
    def provider(self, tmp_path: Path) -> Iterator[MemoryProvider]:
        made = HolographicProvider(tmp_path)
        yield made
        made.shutdown()
