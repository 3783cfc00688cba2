"""Ordinary lines that look like credentials: `lookalikes.txt`, and generated hashes, ids and numbers."""

import base64
import hashlib
import random
import uuid
from pathlib import Path

_WRITTEN = Path(__file__).with_name("lookalikes.txt")


def written_lines() -> list[str]:
    """The hand-written lines; `\\n` in the file is a break."""
    lines = _WRITTEN.read_text("utf-8").splitlines()
    return [line.replace("\\n", "\n") for line in lines if line and not line.startswith("# ")]


def generated_lines(seed: int, count: int = 20) -> list[str]:
    """Lines with random hashes, ids and numbers that no rule may take for a credential."""
    rng = random.Random(f"look-alikes {seed}")
    return [line for _ in range(count) for line in _lines(rng)]


def _lines(rng: random.Random) -> list[str]:
    data = rng.randbytes(48)
    sha1, sha256 = hashlib.sha1(data, usedforsecurity=False).hexdigest(), hashlib.sha256(data).hexdigest()
    encoded = base64.b64encode(data).decode()
    identity = str(uuid.UUID(bytes=data[:16]))
    short = base64.b32encode(data)[:24].decode()
    number = rng.randrange(10**15, 10**16)
    invalid_card = number if not _passes_luhn(number) else number + 1
    return [
        f"Reverted to {sha1} because the build was red.",
        f"git show {sha1[:12]} --stat",
        f"{sha256}  dist/app-1.4.tar.gz",
        f"image: registry.test/api@sha256:{sha256}",
        f'"integrity": "sha512-{base64.b64encode(data * 2)[:86].decode()}=="',
        f"The trace id is {identity}.",
        f"request_id={identity} status=200",
        f"token: {sha1}",
        f"call_{short} returned in 40 ms",
        f"req_{encoded[:24].replace('+', 'a').replace('/', 'b')} timed out",
        f"data:image/png;base64,{base64.b64encode(data * 30).decode()}",
        f"order number {number} was shipped",
        f"the card {invalid_card} was refused",
        f"customer cus_{short[:14]} has subscription sub_{encoded[:24].replace('+', 'a').replace('/', 'b')}",
        f"uploaded to s3://bucket/{sha1[:2]}/{sha1[2:]}/part-0001.parquet",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{encoded[:43]} anna@laptop",
        f"SHA256:{encoded[:43]} is the fingerprint of the host key",
        f"cache key {sha256} was not found",
        f'ETag: "{sha1[:32]}"',
        f"partition {data.hex()[:24]} has 3 replicas",
    ]


def _passes_luhn(number: int) -> bool:
    digits = [int(digit) for digit in reversed(str(number))]
    return sum(sum(divmod(2 * digit, 10)) if place % 2 else digit for place, digit in enumerate(digits)) % 10 == 0
