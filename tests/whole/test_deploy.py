"""The files in deploy/ agree with the program and with each other, as far as that shows without Docker."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from memoranda.service.http.routes import ROUTES
from tests.timing import GIVE_UP

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PORT = 8930


def _instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text())
    return found


def test_the_image_runs_as_a_user_without_rights() -> None:
    """In the last stage, by number, and no instruction after it becomes root again."""
    instructions = _instructions()
    last_stage = max(index for index, (name, _) in enumerate(instructions) if name == "FROM")
    users = [value for name, value in instructions[last_stage:] if name == "USER"]
    assert users == ["10001:10001"]
    values = dict(instructions[last_stage:])
    assert values["VOLUME"] == "/data" and "MEMORANDA_HOME=/data" in values["ENV"]
    assert "memoranda" in values["ENTRYPOINT"] and values["ENTRYPOINT"].startswith("[")


def test_the_image_is_built_from_pinned_packages() -> None:
    """Every package has a version and a hash, and no instruction downloads anything else."""
    commands = [value for name, value in _instructions() if name == "RUN"]
    installs = [command for command in commands if "pip install" in command]
    assert all("--require-hashes" in part or "--no-deps" in part
               for command in installs for part in command.split("&&") if "pip install" in part)  # fmt: skip
    assert not any(re.search(r"\b(curl|wget|apt-get|sudo|ADD)\b", command) for command in commands)
    assert all(
        ":" in value.split()[0] or value.split()[0] == "build" for name, value in _instructions() if name == "FROM"
    )


def test_everything_that_the_image_copies_exists_and_is_not_ignored() -> None:
    """The build context is the repository without the rest."""
    allowed = [line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"]
    for name, value in _instructions():
        if name != "COPY" or value.startswith("--from"):
            continue
        for source in value.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert source.split("/")[0] in allowed, source


def test_the_lock_of_the_image_has_what_the_service_needs() -> None:
    """In the versions that the tests run with."""

    def versions(name: str) -> dict[str, str]:
        return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements" / name).read_text(), re.M))

    image, tested = versions("server.lock"), versions("dev.lock")
    assert {"starlette", "uvicorn", "psycopg", "psycopg-pool"} <= set(image)
    assert {name: version for name, version in image.items() if tested.get(name) != version} == {}


def test_all_files_agree_on_the_port_of_the_service() -> None:
    """And the image checks the health of that port."""
    for name in ("Dockerfile", "Caddyfile", "nginx.conf", "memoranda.service", "compose.yaml"):
        assert str(PORT) in (DEPLOY / name).read_text(), name
    assert f"127.0.0.1:{PORT}/readyz" in dict(_instructions())["HEALTHCHECK"]


@pytest.mark.slow
def test_the_commands_in_the_files_are_commands_of_the_program() -> None:
    """With the options that they pass."""
    unit = (DEPLOY / "memoranda.service").read_text()
    started = re.search(r"ExecStart=\S+memoranda (.*)", unit)
    command = dict(_instructions())["CMD"]
    passed = {*re.findall(r"--[a-z-]+", started[1] if started else ""), *re.findall(r"--[a-z-]+", command)}
    offered = subprocess.run(
        [sys.executable, "-m", "memoranda", "server", "serve", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert passed and all(option in offered for option in passed)
    assert started and started[1].startswith("server serve ") and command.startswith('["server", "serve"')


def test_the_services_of_the_compose_file_are_confined() -> None:
    """Only the proxy has a port outside; passwords come from a file that is not committed."""
    services = _compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]
    assert all("no-new-privileges:true" in service["security_opt"] for service in services.values())
    memoranda = services["memoranda"]
    assert memoranda["read_only"] is True and memoranda["cap_drop"] == ["ALL"]
    assert memoranda["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    volumes = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    assert {name for name in volumes if not name.startswith(".")} == set(_compose()["volumes"])
    assert all((DEPLOY / name).exists() for name in volumes if name.startswith("."))
    ignored = subprocess.run(
        ["git", "check-ignore", "deploy/memoranda.env"], cwd=ROOT, capture_output=True, check=False
    )
    assert ignored.returncode == 0


def test_every_variable_of_a_setting_is_one_that_the_program_reads() -> None:
    """A misspelled one would have no effect."""
    from memoranda.home import config

    known = {key.variable for key in config.KEYS} | {"MEMORANDA_HOME", "MEMORANDA_STORE", "MEMORANDA_STORE_PASSWORD"}
    known |= {"MEMORANDA_HOST"}
    texts = [path.read_text() for path in DEPLOY.iterdir()] + [(ROOT / "docs/how-to/run-it-for-a-team.md").read_text()]
    used = {name for text in texts for name in re.findall(r"\bMEMORANDA_[A-Z_]+\b", text)}
    assert used - known == set()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    """An exposure of 2 or less out of 10."""
    unit = tmp_path / "memoranda.service"
    unit.write_text((DEPLOY / "memoranda.service").read_text().replace("/opt/memoranda/bin/memoranda", "/bin/true"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=GIVE_UP, check=False
    )
    if "Failed to" in verified.stderr and "manager" in verified.stderr:
        pytest.skip(f"systemd-analyze does not work here: {verified.stderr.strip()}")
    assert str(unit) not in verified.stderr and verified.returncode == 0
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(unit)],
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert rated.returncode == 0, rated.stdout[-500:]


def test_alerts_and_dashboard_ask_for_counters_that_the_service_has() -> None:
    """A misspelt name would be an alert that never fires."""
    source = "".join(path.read_text() for path in (ROOT / "src/memoranda/service/http").rglob("*.py"))
    alerts = YAML(typ="safe").load((DEPLOY / "alerts.yaml").read_text())
    expressions = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "dashboard.json").read_text())
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name.removesuffix("_bucket") for each in expressions for name in re.findall(r"\bmemoranda_\w+", each)}
    assert len(names) > 10
    assert [name for name in sorted(names) if f'"{name}"' not in source] == []
    routes = {route.path for route in ROUTES}
    assert [
        route for each in expressions for route in re.findall(r'route="([^"]+)"', each) if route not in routes
    ] == []
