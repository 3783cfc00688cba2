"""Without a key, a request passes only if its headers name this machine."""

import pytest

from memoranda.service.http.problems import Problem
from memoranda.service.http.request_checks import check_loopback


def test_requests_of_this_machine_pass() -> None:
    """With or without a port, and from a page that this machine serves."""
    for host in ["127.0.0.1", "localhost:80", "[::1]:65535"]:
        for origin in [{}, {"origin": "http://localhost:6274"}, {"origin": "https://127.0.0.1"}]:
            check_loopback({"host": host} | origin)


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("host", "", 421),
        ("host", "evil.example", 421),
        ("host", "localhost.evil.example", 421),
        ("origin", "null", 403),
        ("origin", "https://evil.example", 403),
        ("origin", "http://localhost.evil.example", 403),
    ],
)
def test_requests_that_another_site_may_have_sent_are_refused(header: str, value: str, status: int) -> None:
    """Under another name of this machine, or from a page of that site."""
    with pytest.raises(Problem) as refused:
        check_loopback({"host": "localhost:8930"} | {header: value})
    assert refused.value.status == status
