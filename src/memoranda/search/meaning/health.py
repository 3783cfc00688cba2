"""Checks for the doctor: whether the models that the settings name can be loaded."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from memoranda.search.meaning.cross_encoder import load_cross_encoder
from memoranda.search.meaning.embedder import EmbedderError
from memoranda.search.meaning.embedders import ENDPOINT, ONNX, make_embedder
from memoranda.search.settings import RecallSettings
from memoranda.support.health_issues import HealthIssue


def check(config_file: Path, settings: RecallSettings) -> Iterator[HealthIssue]:
    """Yield what prevents search by meaning, or reranking; services are not called."""
    for model in settings.semantic_model if settings.semantic else ():
        if not model.startswith(ENDPOINT):
            yield from _try(config_file, "search.semantic_model", partial(make_embedder, model))
        elif not settings.semantic_url:
            problem = f"search.semantic_url is not set: the address of the service that runs {model}"
            yield HealthIssue("warning", config_file, problem, "set it, or choose another search.semantic_model")
    if settings.rerank.startswith(ONNX):
        path = Path(settings.rerank.removeprefix(ONNX))
        yield from _try(config_file, "search.rerank", lambda: load_cross_encoder(path))


def _try(config_file: Path, setting: str, load: Callable[[], object]) -> Iterator[HealthIssue]:
    try:
        load()
    except EmbedderError as error:
        problem = f"{setting} does not work, so searches rank by words only: {error}"
        yield HealthIssue("warning", config_file, problem, f"install what is missing, or change {setting}")
