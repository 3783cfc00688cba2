"""Credentials in clear, and what only looks like them."""

import pytest

from memoranda.safety import scan
from memoranda.safety.secrets import find_secrets

RANDOM = "q7Zt2Xw9Lk4Vn8Rb3Mc6Hs1Jd5Gf0Py9Ua2Te7Wi4Ox8Cz3Bv6Nm1Kq5"
CREDENTIALS = {
    "anthropic_key": f"sk-ant-api03-{RANDOM}",
    "openai_key": f"sk-proj-{RANDOM}",
    "github_token": f"ghp_{RANDOM[:36]}",
    "gitlab_token": f"glpat-{RANDOM[:20]}",
    "aws_access_key": f"AKIA{RANDOM[:16].upper()}",
    "google_key": f"AIza{RANDOM[:35]}",
    "slack_token": f"xoxb-{RANDOM[:40]}",
    "stripe_key": f"sk_live_{RANDOM[:24]}",
    "npm_token": f"npm_{RANDOM[:36]}",
    "pypi_token": f"pypi-{RANDOM}",
    "hugging_face_token": f"hf_{RANDOM[:34]}",
    "sendgrid_key": f"SG.{RANDOM[:22]}.{RANDOM[:43]}",
    "telegram_bot_token": f"987012345:AA{RANDOM[:33]}",
    "json_web_token": f"eyJ{RANDOM[:30]}.eyJ{RANDOM[:30]}.{RANDOM[:30]}",
    "private_key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "connection_string": "postgres://app:k9Xw2pQz@db.test/main",
    "bearer_token": f"Authorization: Bearer {RANDOM[:40]}",
    "assigned_secret": f"api_key = {RANDOM[:24]}",
}


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_credential_is_recognised_by_its_form(kind: str) -> None:
    """Each issuer's format is named and located."""
    text = f"note {CREDENTIALS[kind]} end"
    found = find_secrets(text)
    assert [secret.kind for secret in found] == [kind]
    assert text[found[0].start : found[0].end] in CREDENTIALS[kind]


@pytest.mark.parametrize(
    "text",
    [
        f'password: "{RANDOM[:14]}"',
        f"DB_PASSWORD={RANDOM[:12]}",
        "the password is Tr0ub4dor&3x",
        f"export GITHUB_SECRET='{RANDOM[:20]}'",
        "pwd := hU7!kk2#pQ",
    ],
)
def test_an_assigned_secret_is_found(text: str) -> None:
    """Names of secrets followed by a real-looking value are found, quoted or not."""
    assert [secret.kind for secret in find_secrets(text)] == ["assigned_secret"]
    assert "secret_in_clear" in {finding.id for finding in scan(text)}


@pytest.mark.parametrize(
    "text",
    [
        "the token is in the vault",
        "password: see 1Password",
        "API_KEY=<your key>",
        "token=$TOKEN",
        "token: ${{ secrets.NPM_TOKEN }}",
        "password = changeme",
        "secret: os.environ['X_SECRET_9']",
        "api_key: YOUR_API_KEY_2024",
        "OPENAI_API_KEY=sk-...",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "token: abc123",
        "password=********",
        "token: 3f786850e387550fdab836ed7e6dc881de23001b",
        "token = 123e4567-e89b-12d3-a456-426614174000",
        "integrity token: sha512-short",
        "max_tokens: 4096",
        "postgres://user:password@localhost/db",
        "postgres://user:$PGPASS@db/main",
        "The password is required for all users",
        "Authorization: Bearer <token>",
        "https://user@host.test/path",
        "private key: /etc/ssl/private/site.key",
        "secret: true",
        "passphrase: correct horse battery",
    ],
)
def test_references_and_placeholders_are_no_secrets(text: str) -> None:
    """What stands in for a secret, or hashes something public, is not one."""
    assert find_secrets(text) == []
    assert scan(text) == ()
