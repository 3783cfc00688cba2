"""A local model in ONNX format."""

from pathlib import Path

import pytest

from memoranda.search.meaning.embedder import EmbedderError
from memoranda.search.meaning.onnx_models import OnnxEmbedder
from tests.search.meaning.onnx_files import write_encoder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("onnx")]
_VECTORS = {"chess": [1.0, 0.0], "game": [0.9, 0.1], "server": [0.0, 1.0]}


def test_a_text_is_the_mean_of_its_tokens(tmp_path: Path) -> None:
    """Padding does not count, whatever else is in the batch."""
    embedder = OnnxEmbedder(write_encoder(tmp_path / "model", _VECTORS))
    short, long = embedder.embed(["chess", "server chess server chess"])
    assert [round(float(number), 2) for number in (*short, *long)] == [1.0, 0.0, 0.71, 0.71]
    assert embedder.dimensions == 2


def test_first_token_pooling_is_respected(tmp_path: Path) -> None:
    """An export of sentence-transformers says so in a file of its own."""
    directory = write_encoder(tmp_path / "model", _VECTORS)
    (directory / "1_Pooling").mkdir()
    (directory / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')
    assert OnnxEmbedder(directory).embed(["chess server"])[0].tolist() == [1.0, 0.0]


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    """A person who typed a wrong path sees which file is missing."""
    with pytest.raises(EmbedderError, match=r"model_quantized\.onnx or model\.onnx"):
        OnnxEmbedder(tmp_path)
    directory = write_encoder(tmp_path / "model", _VECTORS)
    (directory / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        OnnxEmbedder(directory)
    (directory / "tokenizer.json").unlink()
    with pytest.raises(EmbedderError, match=r"no tokenizer\.json"):
        OnnxEmbedder(directory)


def test_a_deadline_ends_the_work(tmp_path: Path) -> None:
    """A search does not wait for hundreds of messages."""
    embedder = OnnxEmbedder(write_encoder(tmp_path / "model", _VECTORS))
    with pytest.raises(EmbedderError, match="did not embed 40 messages"):
        embedder.embed(["chess"] * 40, timeout=-1.0)
