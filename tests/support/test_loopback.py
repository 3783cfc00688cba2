"""A request to the loopback address needs the token and headers that name this machine."""

from memoranda.support.loopback import check_request
from tests.cases import cases

_GOOD = {"host": "127.0.0.1:8931", "origin": None, "authorization": "Bearer secret", "token": "secret"}


@cases("host", ["127.0.0.1", "localhost:80", "[::1]:65535"])
@cases("origin", [None, "http://localhost:6274", "https://127.0.0.1"])
def test_requests_of_this_machine_pass(host: str, origin: str | None) -> None:
    """With or without a port, and from a page that this machine serves."""
    assert check_request(**_GOOD | {"host": host, "origin": origin}) is None  # type: ignore[arg-type]


@cases(
    ("header", "value", "status"),
    [
        ("host", None, 421),
        ("host", "evil.example", 421),
        ("host", "localhost.evil.example", 421),
        ("origin", "null", 403),
        ("origin", "https://evil.example", 403),
        ("authorization", None, 401),
        ("authorization", "Bearer", 401),
        ("authorization", "Bearer secret ", 401),
        ("authorization", "Bearer sécret", 401),
    ],
)
def test_other_requests_are_refused_with_a_status_and_a_reason(header: str, value: str | None, status: int) -> None:
    """The first wrong header decides."""
    refusal = check_request(**_GOOD | {header: value})  # type: ignore[arg-type]
    assert refusal is not None
    assert refusal[0] == status and "secret" not in refusal[1]
