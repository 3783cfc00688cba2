"""The description of the API: complete, valid, and every example in it is true."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memoranda.service.http.route import JSON, Example, Route
from memoranda.service.http.routes import ROUTES
from tests.examples import is_full_run
from tests.service.http import example_home
from tests.service.http.running_service import run_service

pytestmark = pytest.mark.slow

# Reads come first: the other examples change what they read.
_ORDER = ("GET", "PUT", "POST", "PATCH", "DELETE")
_EXAMPLES = sorted((route for route in ROUTES if route.example), key=lambda route: _ORDER.index(route.method))


@pytest.fixture(scope="module")
def example_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of the home in which the examples are true."""
    with run_service(tmp_path_factory.mktemp("examples") / "home") as running:
        example_home.fill(running.service)
        yield running.client()


def _send(client: httpx.Client, route: Route, example: Example) -> httpx.Response:
    path = route.path
    for name, value in example.path.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    body: dict[str, Any] = {} if example.body is None else {"json": example.body}
    return client.request(route.method, path, params=dict(example.query), headers=dict(example.headers), **body)


def test_every_example_is_true(example_client: httpx.Client) -> None:
    """Each is sent, and answered with the status, the shape and the values that the description promises."""
    replay_examples(example_client)


def replay_examples(client: httpx.Client) -> None:
    """Send each example to a client of a home that `example_home` has filled, and compare the answers."""
    for route in _EXAMPLES:
        assert route.example is not None
        answer = _send(client, route, route.example)
        assert answer.status_code == route.status, (route.name, answer.text)
        if route.answer is not None and route.media_type == JSON:
            assert route.answer.read(answer.json(), route.name) == answer.json()
        if route.example.answer is not None:
            assert answer.json() == route.example.answer


def test_every_route_has_an_example_or_a_test_of_its_own() -> None:
    """These need state that no fixed example has, or have no body to show."""
    without = {route.name for route in ROUTES if route.example is None}
    assert without == {
        *("approve_proposal", "reject_proposal", "feed_stream", "import_sessions"),
        *("livez", "readyz", "metrics", "openapi"),
    }


def test_the_description_has_every_route_and_resolves_every_reference(example_client: httpx.Client) -> None:
    """Names of operations are unique, and no schema is missing."""
    description = example_client.get("/openapi.json").json()
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    assert {(method.upper(), path) for path, methods in description["paths"].items() for method in methods} == {
        (route.method, route.path) for route in ROUTES
    }
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    names = set(description["components"]["schemas"])
    assert _references(description) == {f"#/components/schemas/{name}" for name in names}


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def test_schemathesis_finds_no_fault_of_the_service(tmp_path: Path) -> None:
    """Generated requests, valid and invalid: none fails inside the service, and each answer is as described."""
    with run_service(tmp_path / "home") as running:
        example_home.fill(running.service)
        # Random requests look for new faults in `make torture`.
        phases = "examples,coverage,fuzzing" if is_full_run() else "examples,coverage"
        checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
        result = subprocess.run(
            [
                *(Path(sys.executable).with_name("schemathesis"), "--config-file", _write_config(tmp_path)),
                *("run", f"{running.url}/openapi.json", "--checks", checks, "--max-examples", "5"),
                # The feed may wait for a minute, and an import takes JSON lines; both have tests of their own.
                *("--exclude-path-regex", "/v1/(feed|import)", "--phases", phases),
                *("--seed", "1", "--no-color", "--workers", "1"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout[-8_000:] + result.stderr[-2_000:]


def _write_config(directory: Path) -> Path:
    """Ask Schemathesis to read no configuration of the machine, and to try other methods only in a full run."""
    path = directory / "schemathesis.toml"
    path.write_text("" if is_full_run() else "[phases.coverage]\nunexpected-methods = []\n")
    return path
