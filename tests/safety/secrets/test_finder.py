"""Credentials in clear, and what only looks like them."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from memoranda.safety import scan
from memoranda.safety.redaction import Redactor
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


def test_a_credential_is_recognised_by_its_form() -> None:
    """Each issuer's format is named and located."""
    for kind, credential in CREDENTIALS.items():
        text = f"note {credential} end"
        found = find_secrets(text)
        assert [secret.kind for secret in found] == [kind]
        assert text[found[0].start : found[0].end] in credential


def test_an_assigned_secret_is_found() -> None:
    """Names of secrets followed by a real-looking value are found, quoted or not."""
    for text in [
        f'password: "{RANDOM[:14]}"',
        f"DB_PASSWORD={RANDOM[:12]}",
        "the password is Tr0ub4dor&3x",
        f"export GITHUB_SECRET='{RANDOM[:20]}'",
        "pwd := hU7!kk2#pQ",
        "aws_secret_access_key = wJa/rXUtnFE/K7MDENG/bPxRfiCYzq8kT2vLm4Ns",
        "Ocp-Apim-Subscription-Key: 2179837de27b9a615c1a5ec6cc16db75",
        "api-key: 2179837de27b9a615c1a5ec6cc16db75",
        "curl -H 'X-Api-Key: 2179837de27b9a615c1a5ec6cc16db7521798376' https://host.test",
        "x-api-key: 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
        "SECRET_KEY_BASE=2179837de27b9a615c1a5ec6cc16db752179837de27b9a615c1a5ec6cc16db75",
        "DD_APP_KEY=2179837de27b9a615c1a5ec6cc16db75de27b9a6",
        "TWILIO_AUTH_TOKEN: 2179837de27b9a615c1a5ec6cc16db75",
        '{"client_secret": "2179837de27b9a615c1a5ec6cc16db7521798376"}',
    ]:
        assert [secret.kind for secret in find_secrets(text)] == ["assigned_secret"]
        assert "secret_in_clear" in {finding.id for finding in scan(text)}


def test_only_the_secret_itself_is_found() -> None:
    """Names, users, addresses and quotes around it are no part of it."""
    for text, secret in [
        ("curl -u admin:Sup3rS3cret99 https://host.test", "Sup3rS3cret99"),
        ("curl -su 'admin:Sup3r S3cret, 99' https://host.test", "Sup3r S3cret, 99"),
        ('curl -X POST \\\n  --user "admin:Sup3rS3cret99" \\\n  https://host.test', "Sup3rS3cret99"),
        ("curl --user=admin:Sup3rS3cret99 localhost:9200", "Sup3rS3cret99"),
        ("curl -H 'Accept: text/html; charset=utf-8' -u admin:Sup3rS3cret99 https://host.test", "Sup3rS3cret99"),
        ("curl https://host.test --proxy-user a:Sup3rS3cret99", "Sup3rS3cret99"),
        ("curl -u :Sup3rS3cret99 https://host.test", "Sup3rS3cret99"),
        (json.dumps({"command": 'curl -u "admin:Sup3rS3cret99" https://host.test'}), "Sup3rS3cret99"),
        ("git clone https://anna:Sup3rS3cret99@host.test/repo.git", "Sup3rS3cret99"),
        ("https://:Sup3rS3cret99@host.test/", "Sup3rS3cret99"),
        ("redis://:Sup3rS3cret99@cache:6379/0", "Sup3rS3cret99"),
        ("Authorization: Basic dXNlcjpzdXBlcnNlY3JldDEyMw==", "dXNlcjpzdXBlcnNlY3JldDEyMw=="),
        ('headers={"Authorization": "Basic dXNlcjpzdXBlcnNlY3JldDEyMw=="}', "dXNlcjpzdXBlcnNlY3JldDEyMw=="),
        ("authorization: Token 9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b", "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b"),
        (json.dumps({"body": json.dumps({"password": "Tr0ub4dor3xyz"})}), "Tr0ub4dor3xyz"),
        (json.dumps({"content": "DB_PASSWORD=Tr0ub4dor3xyz\nPORT=8080\n"}), "Tr0ub4dor3xyz"),
    ]:
        assert [text[found.start : found.end] for found in find_secrets(text)] == [secret]


PIECES = [
    "password=", "api-key: ", "token is ", "curl -u a:", "Authorization: Basic ", "https://a:", "@host.test",
    "\n", "\t", '"', "'", "\\", " ", "é", "NAME=", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    RANDOM + "/", f"ghp_{RANDOM[:36]}", "key", ",", "Tr0ub4dor3xyz",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.integers(1, 3))
@example(f"password={RANDOM}/\ntoken is ", 2)
def test_json_is_still_json_without_its_secrets(text: str, levels: int) -> None:
    """Whatever is taken out of a string in it, no escape is cut in two."""
    for _ in range(levels):
        text = json.dumps({"x": text})
    redacted, _ = Redactor(["Tr0ub4dor3xyz\n"]).text(text)
    for _ in range(levels):
        redacted = json.loads(redacted)["x"]


def test_references_and_placeholders_are_no_secrets() -> None:
    """What stands in for a secret, or hashes something public, is not one."""
    for text in [
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
    ]:
        assert find_secrets(text) == []
        assert scan(text) == ()
