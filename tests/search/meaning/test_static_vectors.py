"""The word vectors of the installed package wordllama."""

import socket
from math import inf
from pathlib import Path

import pytest

from memoranda.search.meaning.embedder import EmbedderError, understands
from memoranda.search.meaning.static_vectors import StaticVectors

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("static_vectors")]


def test_a_member_is_nearer_to_its_class_than_another_matter() -> None:
    """The question names the class, and the message the member."""
    vectors = StaticVectors.installed()
    query = vectors.embed_query("Which animals does she own?", lambda word: inf)
    dog, server = vectors.embed(["Her dog and her two cats", "The server ran out of disk space"]) @ query[0]
    assert dog > server + 0.1


def test_vectors_have_length_one_or_zero() -> None:
    """A text without words has a vector of zeros, which is alike to nothing."""
    vectors = StaticVectors.installed().embed(["one two", "", "…!?"])
    assert [round(float(vector @ vector), 3) for vector in vectors] == [1.0, 0.0, 0.0]


def test_a_word_in_every_message_hardly_counts_in_a_query() -> None:
    """A speaker's name is rare in English, and says nothing in a store where she writes every message."""
    vectors = StaticVectors.installed()
    messages = vectors.embed(["Melanie: good morning", "Ann: I bought new boots for the hike"])
    rare = vectors.embed_query("What shoes did Melanie buy", lambda word: inf)
    common = vectors.embed_query("What shoes did Melanie buy", lambda word: 0.01 if word == "Melanie" else inf)
    assert (messages @ rare[0]).argmax() == 0
    assert (messages @ common[0]).argmax() == 1


def test_nothing_is_read_from_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package contains the weights and the tokenizer."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    from memoranda.search.meaning.static_vectors import package_directory

    root = package_directory()
    assert root is not None
    assert StaticVectors(root).embed(["hello"]).shape == (1, 256)


def test_other_scripts_are_not_compared() -> None:
    """English vectors say nothing about Chinese and Japanese, where words rank well without them."""
    vectors = StaticVectors.installed()
    assert understands(vectors, "Où est le café?")
    assert not understands(vectors, "数据库在哪里")
    assert not understands(vectors, "データベースは server どこですか")
    assert not understands(vectors, "2026-11-01")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """The error says which file, so that a person can reinstall the package."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/l2_supercat_256.safetensors").write_bytes(b"not such a file")
    with pytest.raises(EmbedderError, match=str(tmp_path)):
        StaticVectors(tmp_path)
