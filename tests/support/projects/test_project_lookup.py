"""From a directory to its project, in repositories that git made."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoranda.support.projects import ask_git, matching_projects, project_of, projects_named
from tests.support.projects.repositories import commit, first_commit, git, make_repository
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

PUBLISHED = "git@github.com:Ana/House.git"


def same(one: Path, two: Path) -> bool:
    first, second = project_of(one), project_of(two)
    return first is not None and second is not None and second in matching_projects([second], first)


def test_a_project_is_its_address_and_its_first_commit(tmp_path: Path) -> None:
    """The same in every directory of it."""
    house = make_repository(tmp_path / "house", "first", "second", origin=PUBLISHED)
    (house / "src" / "deep").mkdir(parents=True)
    assert project_of(house) == f"github.com/ana/house#{first_commit(house)}"
    assert project_of(str(house / "src" / "deep")) == project_of(house)


def test_worktrees_and_clones_are_the_same_project(tmp_path: Path) -> None:
    """Also a clone of the directory, a bare one with worktrees, and one that lies behind a link."""
    house = make_repository(tmp_path / "house", "first", origin=PUBLISHED)
    git(house, "worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "feature")
    git(tmp_path, "clone", "--quiet", str(house), "copy")
    (tmp_path / "bare").mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", str(house), "bare/.bare")
    (tmp_path / "bare" / ".git").write_text("gitdir: ./.bare\n")
    git(tmp_path / "bare", "worktree", "add", "--quiet", "work", "feature")
    (tmp_path / "link").symlink_to(house)
    assert project_of(tmp_path / "tree") == project_of(house) == project_of(tmp_path / "link")
    assert project_of(tmp_path / "copy") == f"copy#{first_commit(house)}"
    for clone in ("copy", "bare", "bare/work"):
        assert same(house, tmp_path / clone)


def test_forks_moves_and_later_publication_stay_one_project(tmp_path: Path) -> None:
    """Whatever the address, the first commit is the same."""
    house = make_repository(tmp_path / "house", "first")
    seen = [project_of(house)]
    for address in (PUBLISHED, "https://gitlab.com/ana/mansion", "git@github.com:ben/house"):
        git(house, "config", "remote.origin.url", address)
        seen.append(project_of(house))
    assert len(set(seen)) == 4
    assert all(matching_projects([str(other)], str(one)) for one in seen for other in seen)


def test_a_clone_without_the_old_commits_is_known_by_its_address(tmp_path: Path) -> None:
    """The commit at which it was cut off is not its first one."""
    house = make_repository(tmp_path / "house", "first", "second", origin=PUBLISHED)
    git(tmp_path, "clone", "--quiet", "--depth=1", house.as_uri(), "shallow")
    assert project_of(tmp_path / "shallow") is None
    git(tmp_path / "shallow", "remote", "set-url", "origin", "https://github.com/ana/house")
    assert project_of(tmp_path / "shallow") == "github.com/ana/house"
    assert same(house, tmp_path / "shallow")


def test_a_branch_with_a_beginning_of_its_own_and_merged_histories_change_nothing(tmp_path: Path) -> None:
    """By the address in the first case, by the line of first parents in the second."""
    house = make_repository(tmp_path / "house", "first", origin=PUBLISHED)
    before = project_of(house)
    other = make_repository(tmp_path / "other", "much older")
    git(house, "fetch", "--quiet", str(other), "main:foreign")
    git(house, "merge", "--quiet", "--allow-unrelated-histories", "-m", "together", "foreign")
    assert project_of(house) == before
    git(house, "checkout", "--quiet", "--orphan", "pages")
    commit(house, "pages")
    assert project_of(house) != before
    assert matching_projects([str(before)], str(project_of(house)))


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    """It is published elsewhere and began elsewhere."""
    part = make_repository(tmp_path / "part", "part")
    house = make_repository(tmp_path / "house", "first", origin=PUBLISHED)
    git(house, "submodule", "--quiet", "add", str(part), "vendored")
    assert project_of(house / "vendored") == f"vendored#{first_commit(part)}"
    assert not same(house, house / "vendored")


def test_what_is_no_path_here_has_no_project() -> None:
    """A relative path, one of another system, and one that cannot be stored or shown."""
    for directory in [
        "",
        "relative",
        "C:\\Users\\ana",
        "/nul\0",
        "/half\ud800",
        "/not\udcffutf8",
        "/two\nlines",
        "/" * 5000,
        "/x" * 600,
    ]:
        assert project_of(directory) is None


def test_a_directory_without_a_repository_is_a_project_under_its_path(tmp_path: Path) -> None:
    """Also when it is deleted, lies behind a link, or has a # in its name; a part of it is a directory of its own."""
    plain = tmp_path / "C#" / "plain"
    (plain / "part").mkdir(parents=True)
    (tmp_path / "link").symlink_to(plain)
    assert project_of(plain) == project_of(tmp_path / "link") == str(plain)
    assert project_of(plain / "part") == str(plain / "part")
    shutil.rmtree(plain)
    assert project_of(plain) == str(plain)


def test_a_home_directory_and_what_contains_it_are_no_project(tmp_path: Path) -> None:
    """Neither ours nor that of another machine; otherwise a session there would contain every plain directory."""
    home = Path.home()
    for directory in (home, *home.parents, Path("/home/ana"), Path("/Users/ana"), Path("/Users"), Path("/root")):
        assert project_of(directory) is None
    assert project_of(home / "notes") == str(home / "notes")
    home.mkdir()
    git(home, "init", "--quiet")
    assert project_of(home) is None


def test_what_was_said_before_a_directory_became_a_repository_stays_with_it(tmp_path: Path) -> None:
    """Its path in the record counts as the repository that is there today, by every name of it."""
    house = tmp_path / "house"
    before, part = project_of(house), project_of(house / "src")
    make_repository(house, "first", origin=PUBLISHED)
    now = project_of(house)
    known = [str(before), str(part), str(now), "/elsewhere", "github.com/ana/shed"]
    for name in (str(now), "ana/house", PUBLISHED, str(house), f"{house}/", str(house / "src")):
        assert projects_named(known, name) == {before, part, now}
    assert projects_named(known, "/elsewhere") == {"/elsewhere"}


def test_a_repository_is_known_as_soon_as_it_can_be(tmp_path: Path) -> None:
    """By its path until it has a commit or an address; what was asked before does not stand in the way of them."""
    house = make_repository(tmp_path / "house")
    assert project_of(house) == project_of(house / "src") == str(house)
    git(house, "remote", "add", "origin", PUBLISHED)
    assert project_of(house) == "github.com/ana/house"
    commit(house, "first")
    assert project_of(house) == f"github.com/ana/house#{first_commit(house)}"


def test_a_directory_that_is_gone_belongs_to_the_repository_that_it_lay_in(tmp_path: Path) -> None:
    """Hosts keep worktrees below a repository and delete them; the sessions in them were about it."""
    house = make_repository(tmp_path / "house", "first")
    assert project_of(house / ".claude" / "worktrees" / "gone") == project_of(house) is not None
    shutil.rmtree(house)
    assert project_of(house) == str(house)


def test_other_addresses_count_when_there_is_no_origin_that_does(tmp_path: Path) -> None:
    """In the order of their names."""
    house = make_repository(tmp_path / "house", "first", origin="/srv/house.git")
    git(house, "remote", "add", "upstream", "https://github.com/ana/house")
    git(house, "remote", "add", "backup", "../backup")
    assert project_of(house) == f"github.com/ana/house#{first_commit(house)}"


def test_short_addresses_are_spelled_out(tmp_path: Path) -> None:
    """As the user's own configuration says."""
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / ".gitconfig").write_text('[url "git@github.com:"]\n\tinsteadOf = gh:\n')
    house = make_repository(tmp_path / "house", "first", origin="gh:ana/house")
    assert project_of(house) == f"github.com/ana/house#{first_commit(house)}"


def test_the_environment_of_a_git_hook_misleads_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside one, GIT_DIR names another repository."""
    house = make_repository(tmp_path / "house", "house")
    other = make_repository(tmp_path / "other", "other", origin=PUBLISHED)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert project_of(house) == f"house#{first_commit(house)}"


def test_nothing_that_a_repository_names_is_started_and_nothing_is_fetched(tmp_path: Path) -> None:
    """Its configuration may name programs, and it may have commits that it wants to fetch first."""
    house = make_repository(tmp_path / "house", "first", "second")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o700)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.askPass", "credential.helper", "alias.config",
                "alias.rev-list", "remote.origin.uploadpack", "core.alternateRefsCommand"):  # fmt: skip
        git(house, "config", key, f"!{trap}" if key.startswith("alias") else str(trap))
    git(house, "config", "remote.origin.url", f"ssh://git@github.com{tmp_path}/x")
    git(house, "config", "remote.origin.promisor", "true")
    git(house, "config", "protocol.ssh.allow", "always")
    missing = git(house, "rev-parse", "HEAD^")
    (house / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    assert project_of(house) == f"github.com{tmp_path}/x".lower()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("what", ["garbage", "pipe", "nowhere", "circle", "unreadable", "directory"])
def test_an_odd_repository_is_none(tmp_path: Path, what: str) -> None:
    """Whatever lies where its data should be, nothing fails or hangs."""
    entry = tmp_path / "odd" / ".git"
    entry.parent.mkdir()
    if what == "garbage":
        entry.write_bytes(b"\xff\x00 gitdir: x")
    elif what == "pipe":
        os.mkfifo(entry)
    elif what == "nowhere":
        entry.write_text("gitdir: /nowhere/at/all")
    elif what == "circle":
        entry.symlink_to(entry)
    elif what == "unreadable":
        entry.mkdir()
        (entry / "commondir").write_text(".")
        (entry / "config").write_text("[broken")
    else:
        entry.mkdir()
    began = time.monotonic()
    assert project_of(entry.parent) is None
    assert time.monotonic() - began < GIVE_UP


def _fake_git(directory: Path, script: str) -> Path:
    directory.mkdir()
    program = directory / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return program


def test_git_is_asked_once_per_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sessions took place in it."""
    house = make_repository(tmp_path / "house", "first", origin=PUBLISHED)
    real = shutil.which("git")
    _fake_git(tmp_path / "bin", f'echo x >> {tmp_path}/asked\nexec {real} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    found = {project_of(house / str(number)) for number in range(50)}
    assert found == {f"github.com/ana/house#{first_commit(house)}"}
    # Twice by us; our own question after it is the third.
    assert (tmp_path / "asked").read_text().count("x") == 3


def test_without_git_there_are_no_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fails; everything else works."""
    house = make_repository(tmp_path / "house", "first", origin=PUBLISHED)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert project_of(house) is None


def test_a_git_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the timeout, and no process is left behind."""
    _fake_git(tmp_path / "bin", f"echo $$ > {tmp_path}/pid\nexec sleep 200")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    began = time.monotonic()
    assert ask_git(tmp_path, "version", timeout=0.5) is None
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_asking_leaves_the_repository_as_it_is(tmp_path: Path) -> None:
    """Not a file is made or changed."""
    house = make_repository(tmp_path / "house", "first", origin=PUBLISHED)

    def files() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in house.rglob("*")}

    before = files()
    assert project_of(house)
    assert files() == before


def test_nothing_is_loaded_for_git_before_it_is_asked() -> None:
    """Commands that need no project start as fast as before."""
    program = "import sys, memoranda.support.projects; print('subprocess' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
