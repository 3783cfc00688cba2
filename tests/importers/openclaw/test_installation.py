"""OpenClaw is found by all its names, and its workspaces in all their directories."""

from pathlib import Path

import pytest

from memoranda.importers.openclaw.installation import find_directories, inspect_installation

pytestmark = pytest.mark.slow


def _workspace(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "MEMORY.md").write_text("- x\n")
    return path


def test_the_directory_is_found_by_every_name_it_has_had(tmp_path: Path) -> None:
    """The present name first."""
    for name in (".moltbot", ".openclaw", ".clawdbot"):
        (tmp_path / name).mkdir()
    assert [each.name for each in find_directories(tmp_path)] == [".openclaw", ".clawdbot", ".moltbot"]


@pytest.mark.parametrize(
    "name", ["workspace", "workspace.default", "workspace-main", "workspace-assistant", "workspace-x"]
)
def test_a_workspace_is_found_wherever_it_has_been(tmp_path: Path, name: str) -> None:
    """Without any settings."""
    workspace = _workspace(tmp_path / name)
    found = inspect_installation(tmp_path)
    assert found.workspaces == (workspace,)
    assert found.find("MEMORY.md") == workspace / "MEMORY.md"


def test_a_file_comes_from_the_first_workspace_that_has_it(tmp_path: Path) -> None:
    """As OpenClaw's own fallbacks do it."""
    _workspace(tmp_path / "workspace.default")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "USER.md").write_text("- y\n")
    found = inspect_installation(tmp_path)
    assert found.find("USER.md") == tmp_path / "workspace" / "USER.md"
    assert found.find("MEMORY.md") == tmp_path / "workspace.default" / "MEMORY.md"


@pytest.mark.parametrize(
    "form", ["entries: { main: {}, work: { workspace: '%W%' } }",
             "list: [{ id: 'main', default: true }, { id: 'work', workspace: '%W%' }]"],
)  # fmt: skip
def test_the_agents_of_both_forms_of_settings_are_known(tmp_path: Path, form: str) -> None:
    """The default one is meant, others are named, and any of them can be asked for."""
    root, own, work = tmp_path / ".openclaw", tmp_path / "own", tmp_path / "work"
    _workspace(root / "workspace-extra"), _workspace(own), _workspace(work)
    settings = f"{{ agents: {{ defaults: {{ workspace: '{own}' }}, {form.replace('%W%', str(work))} }} }}"
    (root / "openclaw.json").write_text(settings)
    found = inspect_installation(root)
    assert (found.agent, found.workspaces) == ("main", (own,))
    assert [(other.id, other.workspace) for other in found.others] == [
        ("work", work), ("extra", root / "workspace-extra"),
    ]  # fmt: skip
    assert inspect_installation(root, "work").workspaces[0] == work


def test_a_copy_is_read_by_its_own_workspace(tmp_path: Path) -> None:
    """Its settings may point to the original."""
    original, copy = _workspace(tmp_path / "original"), tmp_path / "copy"
    inside = _workspace(copy / "workspace")
    (copy / "clawdbot.json").write_text(f'{{"agents": {{"defaults": {{"workspace": "{original}"}}}}}}')
    assert inspect_installation(copy, moved=True).workspaces == (inside, original)
    assert inspect_installation(copy).workspaces == (original, inside)


@pytest.mark.parametrize("content", [b"{ broken", b"\xff\xfe\x00", b"[1]", b""])
def test_unreadable_settings_are_reported(tmp_path: Path, content: bytes) -> None:
    """And the rest is found without them."""
    (tmp_path / "openclaw.json").write_bytes(content)
    _workspace(tmp_path / "workspace")
    found = inspect_installation(tmp_path)
    assert len(found.problems) == 1
    assert found.workspaces
