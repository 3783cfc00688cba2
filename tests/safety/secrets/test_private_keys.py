"""A private key in a text is found whole, however it is written; what is public, or only about keys, is not."""

import base64
import json
import random
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.safety.redaction import Redactor
from memoranda.safety.secrets import find_secrets
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

BODY = base64.b64encode(random.Random(17).randbytes(1163)).decode()
LINES = [BODY[place : place + 64] for place in range(0, len(BODY), 64)]
HEADERS = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,9C4A0F1D2B3E4C5D6E7F8A9B0C1D2E3F", ""]
REDACTED = "[redacted:private_key]"


def _key(kind: str = "RSA ", *headers: str, block: str = "") -> str:
    first, last = (f"-----{edge} {kind}PRIVATE KEY{block}-----" for edge in ("BEGIN", "END"))
    return "\n".join([first, *headers, *LINES, last])


PEM = _key()
KEYS = {
    "PKCS#1": PEM,
    "PKCS#8": _key(""),
    "elliptic curve": _key("EC "),
    "DSA": _key("DSA "),
    "OpenSSH": _key("OPENSSH "),
    "encrypted PKCS#8": _key("ENCRYPTED "),
    "encrypted with headers": _key("RSA ", *HEADERS),
    "PGP": _key("PGP ", "Version: GnuPG v2", "", block=" BLOCK").replace("\n-----END", "\n=aB3d\n-----END"),
    "SSH2": _key("SSH2 ENCRYPTED ", 'Comment: "my key"').replace("-----", "---- ", 1).replace("KEY-----", "KEY ----"),
}
WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "CRLF": lambda key: key.replace("\n", "\r\n"),
    "indented": lambda key: "\n".join(f"        {line}" for line in key.split("\n")),
    "YAML block": lambda key: "key: |\n" + "\n".join(f"  {line}" for line in key.split("\n")) + "\nnext: 1",
    "quoted": lambda key: "\n".join(f"> {line}" for line in key.split("\n")),
    "numbered": lambda key: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(key.split("\n"), 1)),
    "difference": lambda key: "\n".join(f"-{line}" for line in key.split("\n")),
    "one line": lambda key: key.replace("\n", " "),
    "JSON": lambda key: json.dumps({"key": key, "port": 1}),
    "JSON, CRLF": lambda key: json.dumps({"key": key.replace("\n", "\r\n")}),
    "JSON within JSON": lambda key: json.dumps({"body": json.dumps({"key": key})}),
    "escaped slashes": lambda key: json.dumps({"key": key}).replace("/", "\\/"),
    "string of a program": lambda key: " +\n".join(f'    "{line}\\n"' for line in key.split("\n")),
}


def _leaks(text: str) -> list[str]:
    """The lines of the key of which a part is still in a text."""
    return [line for line in LINES if any(line[place : place + 10] in text for place in range(len(line) - 9))]


def test_a_private_key_is_taken_out_whole() -> None:
    """From its first line to its last; it counts as one, and what stands around it stays."""
    for way in WAYS.values():
        for key in KEYS.values():
            text, count = Redactor().text(f"Here it is:\n{way(key)}\nthanks, Anna")
            assert _leaks(text) == []
            assert "END" not in text
            assert (count, text.count(REDACTED)) == (1, 1)
            assert text.startswith("Here it is:\n")
            assert text.endswith("\nthanks, Anna")


def test_a_key_without_its_end_is_taken_out_to_its_last_line() -> None:
    """As long as lines of a key follow; prose does not."""
    for way in WAYS.values():
        for key in KEYS.values():
            text, count = Redactor().text(_closed(way, key, end=-1))
            assert _leaks(text) == []
            assert count == 1
            assert text.endswith("thanks, Anna")


def test_a_key_without_its_beginning_is_taken_out_from_its_first_line() -> None:
    """What a reader of the last part of a file sees."""
    for way in WAYS.values():
        for key in KEYS.values():
            text, count = Redactor().text(_closed(way, key, start=9))
            assert _leaks(text) == []
            assert count == 1
            assert text.endswith("thanks, Anna")


@pytest.mark.parametrize("lines", [(0, -1), (9, None), (0, None)], ids=["no end", "no beginning", "whole"])
def test_json_is_still_json_without_a_key(lines: tuple[int, int | None]) -> None:
    """Whichever part of the key is there."""
    part = "\n".join(PEM.split("\n")[slice(*lines)])
    for text, kept in ((f"é{part}", f"é{REDACTED}"), (f"a\n{part}\nb", f"a\n{REDACTED}\nb")):
        assert json.loads(Redactor().text(json.dumps({"x": text}))[0]) == {"x": kept}


def _closed(way: Callable[[str], str], key: str, start: int | None = None, end: int | None = None) -> str:
    lines = "\n".join(key.split("\n")[start:end])
    return f"{way(lines)}\nthanks, Anna"


def test_a_key_that_is_cut_within_a_line_is_taken_out() -> None:
    """Wherever the cut is."""
    for length in range(len(PEM)):
        text, _ = Redactor().text(f"{PEM[:length]}… [cut]")
        assert _leaks(text) == [], length
        assert text.endswith("… [cut]")


def test_a_key_of_putty_is_taken_out() -> None:
    """Its private lines; the public ones stay."""
    head = "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: work\nPublic-Lines: 2\n"
    public = "\n".join(base64.b64encode(random.Random(seed).randbytes(48)).decode() for seed in (1, 2))
    text, count = Redactor().text("\n".join([head + public, "Private-Lines: 25", *LINES, "Private-MAC: 0a1b"]))
    assert _leaks(text) == []
    assert (count, text) == (1, f"{head}{public}\n{REDACTED}\nPrivate-MAC: 0a1b")


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH "])
def test_a_key_in_base64_is_taken_out(kind: str) -> None:
    """As Kubernetes writes it, while the certificate beside it stays."""
    encoded = base64.b64encode(_key(kind).encode()).decode()
    public = base64.b64encode(_key(kind).replace("PRIVATE KEY", "CERTIFICATE").encode()).decode()
    text, count = Redactor().text(f"client-certificate-data: {public}\nclient-key-data: {encoded}\nname: x")
    assert (count, text) == (1, f"client-certificate-data: {public}\nclient-key-data: {REDACTED}\nname: x")


def test_a_key_that_stands_line_by_line_in_a_list_is_taken_out() -> None:
    """As a notebook keeps its text; the list keeps its length, and it counts as one."""
    given = ["before", "key = `" + PEM.split("\n")[0], *PEM.split("\n")[1:-1], PEM.split("\n")[-1] + "`", 7, "after"]
    kept = list(given)
    value, count = Redactor().value({"source": given})
    assert given == kept
    assert _leaks(json.dumps(value)) == []
    assert value["source"][:2] == ["before", f"key = `{REDACTED}"]
    assert value["source"][-3:] == [f"{REDACTED}`", 7, "after"]
    assert (len(value["source"]), count) == (len(given), 1)


PUBLIC = {
    "certificate": PEM.replace("RSA PRIVATE KEY", "CERTIFICATE"),
    "public key": PEM.replace("RSA PRIVATE", "PUBLIC"),
    "PGP public key": PEM.replace("RSA PRIVATE KEY", "PGP PUBLIC KEY BLOCK"),
    "PGP message": PEM.replace("RSA PRIVATE KEY", "PGP MESSAGE"),
    "authorized key": f"ssh-rsa AAAAB3NzaC1yc2E{BODY[:300]} anna@laptop",
    "talk": "Keep the PRIVATE KEY out of the repository; the file ends with -----END RSA PRIVATE KEY-----.",
    "a word of PuTTY": "The header is PuTTY-User-Key-File-2: ssh-rsa and then Private-Lines: 14 follow.",
}


def test_what_is_public_stays() -> None:
    """Certificates, public keys, messages, and prose about keys."""
    for text in PUBLIC.values():
        assert Redactor().text(text) == (text, 0)


def test_a_certificate_behind_a_key_stays() -> None:
    """Also when the end of the key is missing."""
    certificate = PEM.replace("RSA PRIVATE KEY", "CERTIFICATE").replace(LINES[0], BODY[7:71])
    for key in (PEM, "\n".join(PEM.split("\n")[:-1])):
        text, count = Redactor().text(f"{key}\n{certificate}")
        assert (count, text) == (1, f"{REDACTED}\n{certificate}")


@pytest.mark.parametrize(
    "text",
    [
        'if "-----BEGIN PRIVATE KEY-----" in text and "-----END PRIVATE KEY-----" in text: return load(text)',
        "sed -n '/-----BEGIN RSA PRIVATE KEY-----/,/-----END RSA PRIVATE KEY-----/p' bundle.pem",
        "It starts with\n-----BEGIN PRIVATE KEY-----\nThanks\nAnna, and 2048 bits are enough.",
        "-----BEGIN PRIVATE KEY-----\nNote: the rest of this page explains the format in some detail.",
    ],
)
def test_of_text_about_keys_only_the_first_line_goes(text: str) -> None:
    """No word that stands between or behind the two lines is lost."""
    (found,) = find_secrets(text)
    assert text[found.start : found.end].startswith("-----BEGIN")
    assert text[found.start : found.end].endswith("PRIVATE KEY-----")


PIECES = [
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "Private-Lines: 3", "\n", "\\n", "\\", "+", "a/" * 11,
    ">", "1 ", "=", "Abc: def", BODY[:64], BODY[:16], " ", "-", "word", "LS0tLS1CRUdJTi",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_keys_are_found_in_order_and_none_is_kept(text: str) -> None:
    """For any mixture of their parts; what is left of it has no key."""
    found = find_secrets(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert "-----BEGIN PRIVATE KEY-----" not in Redactor().text(text)[0]


def test_no_text_takes_long() -> None:
    """A part of a key, thousands of times, costs as much as its length, not its square."""
    for piece in [*PIECES, "-----BEGIN PRIVATE KEY-----\n" + BODY[:64], "curl -u ", "+" * 23 + ">"]:
        for before, after in (("-----BEGIN PRIVATE KEY-----", ""), ("", "-----END PRIVATE KEY-----"), ("curl :", "")):
            text = before + piece * (200_000 // len(piece)) + after
            start = time.process_time()
            find_secrets(text)
            assert time.process_time() - start < GIVE_UP
