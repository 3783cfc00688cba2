"""The names of the files that hold the vectors of a store, one for each embedder."""

from collections.abc import Sequence
from pathlib import Path

COMPANIONS = ("", "-wal", "-shm", "-journal")


def vectors_path(db_path: Path, model: str) -> Path:
    """The file of one embedder, beside the store."""
    plain = "".join(character if character.isalnum() else "-" for character in model.lower())
    return db_path.with_name(f"{db_path.stem}.vectors.{plain[-60:].strip('-')}.db")


def vector_files(db_path: Path) -> list[Path]:
    """The files of all embedders of a store."""
    return sorted(db_path.parent.glob(f"{db_path.stem}.vectors.*.db"))


def remove_vectors(db_path: Path, keep: Sequence[Path] = ()) -> int:
    """Delete the vectors of embedders that are not in use: nothing would remove deleted messages from them."""
    unused = [file for file in vector_files(db_path) if file not in keep]
    for file in unused:
        remove_file(file)
    return len(unused)


def remove_file(path: Path) -> None:
    for companion in COMPANIONS:
        Path(f"{path}{companion}").unlink(missing_ok=True)
