"""Logging in to the viewer and out of it, and what others cannot do."""

from pathlib import Path

import httpx
import pytest

from memoranda.service.viewer.logins import LINK_SECONDS, LoginLinks, Logins
from memoranda.service.viewer.mount import viewer_mount
from tests.service.http.running_service import run_service
from tests.service.viewer.running_viewer import RunningViewer, form_token


@pytest.mark.slow
def test_a_link_logs_in_once(viewer: RunningViewer) -> None:
    """The link sets a strict cookie that scripts cannot read, and does not work again."""
    client = viewer.running.client()
    path = viewer.viewer.new_login_path()
    answer = client.get(path)
    cookie = answer.headers["set-cookie"]
    assert "SameSite=strict" in cookie and "HttpOnly" in cookie and "Path=/view" in cookie
    assert client.get("/view/").status_code == 200
    second = viewer.running.client().get(path)
    assert second.status_code == 403
    assert "already used" in second.text
    assert "set-cookie" not in second.headers


def test_a_link_is_valid_for_a_minute() -> None:
    """A link that was not opened in time does not work."""
    now = 100.0
    links = LoginLinks(lambda: now)
    early, late = links.create(), links.create()
    now += LINK_SECONDS - 1
    assert links.redeem(early)
    now += 2
    assert not links.redeem(late)


@pytest.mark.slow
def test_a_head_request_does_not_use_a_link_up(viewer: RunningViewer) -> None:
    """Programs that only look at a link leave it valid."""
    path = viewer.viewer.new_login_path()
    assert "set-cookie" not in viewer.running.client().head(path).headers
    assert "set-cookie" in viewer.running.client().get(path).headers


def test_without_a_login_there_is_only_the_login_page(viewer: RunningViewer) -> None:
    """A page leads to the login and back; a form changes nothing."""
    client = viewer.running.client()
    answer = client.get("/view/sessions/a%2Fb?page=2")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/view/login?next=%2Fview%2Fsessions%2Fa%252Fb%3Fpage%3D2"
    assert client.post("/view/logout", headers={"Origin": viewer.url}, data={"a": "b"}).status_code == 200
    assert client.post("/view/", headers={"Origin": viewer.url}, data={"a": "b"}).status_code == 401


def test_a_wrong_token_is_refused(viewer: RunningViewer) -> None:
    """The page says how to get a new link, and shows nothing of the home."""
    answer = viewer.running.client().get("/view/login?token=wrong")
    assert answer.status_code == 403
    assert "press Enter" in answer.text or "Press Enter" in answer.text
    assert "deadlock" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_foreign_host_is_refused(viewer: RunningViewer, host: str) -> None:
    """A name of another site that leads to this machine gets nothing, not even the login page."""
    for path in ("/", "/view/", "/view/login", viewer.viewer.new_login_path()):
        answer = viewer.running.client().get(path, headers={"Host": host})
        assert answer.status_code in (400, 421), path
        assert "set-cookie" not in answer.headers


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", None])
def test_a_form_of_another_page_is_refused(viewer: RunningViewer, origin: str | None) -> None:
    """The cookie and even the token do not help a page of another origin."""
    client = viewer.client()
    token = form_token(client.get("/view/").text)
    headers = {} if origin is None else {"Origin": origin}
    del client.headers["Origin"]
    assert client.post("/view/logout", data={"form_token": token}, headers=headers).status_code == 403
    assert client.get("/view/").status_code == 200


def test_a_form_needs_the_token_of_its_login(viewer: RunningViewer) -> None:
    """The token of another login is refused."""
    client, other = viewer.client(), viewer.client()
    foreign = form_token(other.get("/view/").text)
    for token in ("", "x", foreign, "é"):
        assert client.post("/view/logout", data={"form_token": token}).status_code == 403
    assert client.get("/view/").status_code == 200


def test_logging_out_ends_the_login(viewer: RunningViewer) -> None:
    """A copy of the cookie does not work afterwards."""
    client = viewer.client()
    copied = dict(client.cookies)
    client.post("/view/logout", data={"form_token": form_token(client.get("/view/").text)}).raise_for_status()
    assert client.get("/view/").status_code == 303
    thief = viewer.running.client(cookies=copied)
    assert thief.get("/view/").status_code == 303


def test_a_changed_cookie_is_refused() -> None:
    """Every part of a cookie is signed, and a cookie of another process is none."""
    logins, others = Logins(lambda: b"one"), Logins(lambda: b"two")
    _, cookie = logins.create("", None)
    assert logins.find(cookie) is not None
    assert others.find(cookie) is None
    for position in range(0, len(cookie), 7):
        changed = cookie[:position] + ("A" if cookie[position] != "A" else "B") + cookie[position + 1 :]
        assert logins.find(changed) is None
    for hostile in (None, "", ".", "a.b", "é.é", "x" * 100_000, cookie + "0"):
        assert logins.find(hostile) is None


def test_a_login_ends_with_its_time() -> None:
    """A cookie that is kept for longer does not work."""
    logins = Logins(lambda: b"one", seconds=-1)
    assert logins.find(logins.create("", None)[1]) is None


def test_pages_have_a_strict_policy(client: httpx.Client) -> None:
    """Nothing but the viewer's own files is loaded, and no other page can show it in a frame."""
    for path in ("/view/", "/view/login", "/view/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"


def test_the_address_after_a_login_is_a_page_of_the_viewer(tmp_path: Path) -> None:
    """A login form that another site prepared does not lead there."""
    with run_service(tmp_path / "home", mounts=(viewer_mount(),)) as running:
        key = running.key("read")
        for target in (
            "//evil.example",
            "https://evil.example/",
            "/view/\\evil",
            "/v1/sessions",
            "javascript:alert(1)",
        ):
            client = running.client(headers={"Origin": running.url})
            answer = client.post("/view/login", data={"key": key, "next": target})
            assert 'url=/view/"' in answer.text
            assert "evil" not in answer.text
        answer = client.post("/view/login", data={"key": key, "next": "/view/?day=2"})
        assert "url=/view/?day=2" in answer.text


def test_a_service_with_keys_asks_for_one(tmp_path: Path) -> None:
    """The same pages are on the service: a key logs in, as the user that it is bound to, until it is revoked."""
    with run_service(tmp_path / "home", mounts=(viewer_mount(),)) as running:
        token = running.key("read", user="ana")
        client = running.client(headers={"Origin": running.url})
        assert client.get("/view/").status_code == 303
        assert client.post("/view/login", data={"key": "mk_wrong"}).status_code == 401
        assert client.post("/view/login", data={"key": token, "user": "ben"}).status_code == 403
        assert client.get("/view/").status_code == 303
        client.post("/view/login", data={"key": token}).raise_for_status()
        assert "Log out ana" in client.get("/view/").text


def test_a_service_without_keys_shows_the_owner(tmp_path: Path) -> None:
    """On this machine only: a foreign host is refused there, too."""
    with run_service(tmp_path / "home", mounts=(viewer_mount(),)) as running:
        client = running.client(headers={"Origin": running.url})
        assert "Today" in client.get("/view/").text
        assert client.get("/view/", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.slow
def test_every_node_knows_a_login_and_its_end(tmp_path: Path) -> None:
    """A login at one node of a fleet is valid at another; after logging out there, a copied cookie is not."""
    home = tmp_path / "home"
    with run_service(home, mounts=(viewer_mount(),)) as first, run_service(home, mounts=(viewer_mount(),)) as second:
        client = first.client(headers={"Origin": first.url})
        client.post("/view/login", data={"key": first.key("read")}).raise_for_status()
        other = second.client(headers={"Origin": second.url}, cookies=dict(client.cookies))
        page = other.get("/view/")
        assert page.status_code == 200
        other.post("/view/logout", data={"form_token": form_token(page.text)}).raise_for_status()
        assert client.get("/view/").status_code == 303


def test_a_revoked_key_ends_its_logins(tmp_path: Path) -> None:
    """The cookie is refused as soon as the service has noticed."""
    with run_service(tmp_path / "home", mounts=(viewer_mount(),)) as running:
        key, token = running.service.keys.create(["read"])
        client = running.client(headers={"Origin": running.url})
        client.post("/view/login", data={"key": token}).raise_for_status()
        running.service.keys.revoke(key.id)
        assert client.get("/view/").status_code == 303
