"""The double answers as the real server was recorded to answer."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.external.vendors.honcho.double import HonchoDouble

pytestmark = pytest.mark.slow


def test_the_double_answers_as_the_real_server_did() -> None:
    """Each recorded request of one workspace's life gets the recorded status, and an answer of the same shape."""
    double = HonchoDouble()
    ids: dict[str, str] = {}
    for exchange in json.loads((HonchoDouble.recorded / "exchanges.json").read_text("utf-8")):
        if exchange.get("server") == "with authentication" or isinstance(exchange["body"], str):
            continue
        parts = urlsplit(exchange["path"])
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        text = json.dumps([parts.path, exchange["body"] or {}])
        for real, ours in ids.items():
            text = text.replace(real, ours)
        path, body = json.loads(text)
        status, answer = double.answer(exchange["method"], "/" + path, body, query)
        label = f"{exchange['method']} {exchange['path']}"
        assert status == exchange["status"], label
        assert _same_shape(exchange["answer"], answer), label
        if exchange["method"] == "POST" and parts.path.endswith("/conclusions") and status == 201:
            ids[exchange["answer"][0]["id"]] = answer[0]["id"]


def _same_shape(real: Any, ours: Any) -> bool:
    """Whether objects have the same keys and lists the same kind of items; an empty list or None fits anything."""
    if real is None or ours is None:
        return True
    if isinstance(real, dict):
        if not isinstance(ours, dict) or set(real) != set(ours):
            return False
        # Metadata is the sender's, the status of the queue is by session, and details are for people.
        return all(_same_shape(real[key], ours[key]) for key in real if key not in ("metadata", "sessions", "detail"))
    if isinstance(real, list):
        return isinstance(ours, list) and (not real or not ours or _same_shape(real[0], ours[0]))
    return type(real) is type(ours)
