"""The double of Honcho, and a home that uses it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external.vendors.honcho.double import HonchoDouble
from tests.external.vendors.honcho.home import Home


@pytest.fixture
def double() -> Iterator[HonchoDouble]:
    with HonchoDouble.start() as double:
        yield double


@pytest.fixture
def home(double: HonchoDouble, tmp_path: Path) -> Iterator[Home]:
    home = Home(double, tmp_path)
    yield home
    home.close()
