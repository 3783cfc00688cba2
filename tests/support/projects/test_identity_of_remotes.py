"""One name for every way to write where a repository is published."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memoranda.support.projects import remote_name

pytestmark = pytest.mark.slow

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=1, max_size=20).filter(
    lambda name: name.strip(".") and not name.endswith(".git")
)
HOSTS = st.from_regex(r"[a-z][a-z0-9]{1,10}\.(example|org|dev)", fullmatch=True)


@given(HOSTS, st.lists(NAMES, min_size=1, max_size=4), st.integers(1, 65_535), NAMES)
def test_every_way_to_write_an_address_gives_one_name(host: str, steps: list[str], port: int, user: str) -> None:
    """By SSH or HTTPS, with a port, a user, capitals, an ending or a slash too many."""
    assume(steps[0] != "scm")
    path = "/".join(steps)
    written = [
        f"https://{host}/{path}", f"https://{host}/{path}.git", f"https://{host}//{path}.git/", f"http://{host}/{path}/",
        f"ssh://git@{host}/{path}.git", f"ssh://{user}@{host}:{port}/{path}", f"git://{host}/{path}.git",
        f"git@{host}:{path}.git", f"{host}:{path}", f"git@{host}:/{path}.git", f"GIT+SSH://git@{host.upper()}/{path}",
        f"https://{user}:{user}@{host}:{port}/{path.upper()}.git", f"  https://{host}/{path}?x=1#y \n",
    ]  # fmt: skip
    assert {remote_name(address) for address in written} == {f"{host}/{path}"}


@given(HOSTS, NAMES, st.from_regex(r"[a-zA-Z0-9_]{20,40}", fullmatch=True))
def test_no_token_gets_into_a_name(host: str, name: str, token: str) -> None:
    """Neither as a user nor as a password."""
    for address in (
        f"https://{token}@{host}/o/{name}",
        f"https://x:{token}@{host}/o/{name}",
        f"{token}@{host}:o/{name}",
    ):
        found = remote_name(address)
        assert found is not None
        assert token.lower() not in found


@given(st.text())
def test_whatever_stands_there_gives_a_plain_name_or_none(address: str) -> None:
    """One line, small letters, no sign that stands for something else, and never longer than a name may be."""
    found = remote_name(address)
    if found is not None:
        assert found == found.lower()
        assert found.isprintable()
        assert not set(found) & set("#@ \t\n'\"\\?")
        assert "/" in found
        assert len(found) <= 200


def test_an_address_that_means_nothing_elsewhere_is_no_name() -> None:
    """Paths on the same disk, programs, and what is no address at all."""
    for address in [
        "",
        "/srv/git/x.git",
        "../x",
        "./x",
        "~/x",
        "x",
        "file:///srv/x",
        "C:/work/x",
        r"C:\work\x",
        "ext::sh -c true",
        "codecommit::eu-west-1://x",
        "https://",
        "https://github.com",
        "https://github.com/.git",
        "http://[::1/x",
        "https://github.com/../x",
        "javascript://github.com/x/y",
        "git@github.com:",
    ]:
        assert remote_name(address) is None


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("github.com/o/n", ["ssh://git@ssh.github.com:443/o/n.git", "https://www.github.com/O/N"]),
        ("gitlab.com/g/s/n", ["ssh://git@altssh.gitlab.com:443/g/s/n.git", "git@gitlab.com:g/s/n.git"]),
        (
            "dev.azure.com/o/p/n",
            ["https://o@dev.azure.com/o/P/_git/n", "git@ssh.dev.azure.com:v3/o/p/n",
             "o@vs-ssh.visualstudio.com:v3/o/p/n", "https://o.visualstudio.com/DefaultCollection/p/_git/n", "https://o.visualstudio.com/p/_git/n"],
        ),
        ("dev.azure.com/o/n/n", ["https://dev.azure.com/o/_git/n", "git@ssh.dev.azure.com:v3/o/n/n"]),
        ("dev.azure.com/o/my-p/n", ["https://dev.azure.com/o/my%20p/_git/n", "git@ssh.dev.azure.com:v3/o/my%20p/n"]),
        ("git.corp.example/p/n", ["https://git.corp.example/scm/p/n.git", "ssh://git@git.corp.example:7999/p/n.git"]),
    ],
)  # fmt: skip
def test_servers_that_write_addresses_differently_are_known(name: str, addresses: list[str]) -> None:
    """Over SSH through a firewall, at Azure and at Bitbucket."""
    assert {remote_name(address) for address in addresses} == {name}
