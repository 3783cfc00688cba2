"""Files compressed with Zstandard: the message that says what to install is right."""

import re
import tomllib
from pathlib import Path

import pytest

from memoranda.importers.zstandard import MISSING_LIBRARY, unpack

pytestmark = pytest.mark.slow

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_named_extra_can_decompress() -> None:
    """After doing what the message says, packed files can be read."""
    named = re.search(r"pip install 'memoranda\[(\w+)\]'", MISSING_LIBRARY)
    assert named is not None
    extras = tomllib.loads(_PROJECT.read_text())["project"]["optional-dependencies"]
    assert any(each.startswith("zstandard") for each in extras[named[1]])


@pytest.mark.parametrize("names_its_size", [True, False])
def test_a_small_frame_that_expands_to_hundreds_of_megabytes_is_refused(names_its_size: bool) -> None:
    """Whether or not it says how large its content is."""
    zstandard = pytest.importorskip("zstandard")
    frame = zstandard.ZstdCompressor(write_content_size=names_its_size).compress(bytes(200 * 1024 * 1024))
    assert len(frame) < 100_000
    with pytest.raises(ValueError, match="larger than 64 MB"):
        unpack(frame)
    assert unpack(zstandard.ZstdCompressor(write_content_size=names_its_size).compress(b"text")) == b"text"
    with pytest.raises(ValueError, match="damaged"):
        unpack(b"no frame")
