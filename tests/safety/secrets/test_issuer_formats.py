"""The forms of every issuer, and the many things that only look like them."""

import base64
import hashlib
import json
import random
import uuid

from memoranda.safety.redaction import Redactor
from memoranda.safety.secrets import find_secrets
from memoranda.safety.secrets.issuer_tokens import EMBEDDED_FORMATS, FORMATS, MARKED_FORMATS

_CHANCE = random.Random(5)
HEX = _CHANCE.randbytes(100).hex()
MIXED = "".join(_CHANCE.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", k=300))
LOWER, UPPER, UUID = MIXED.lower(), MIXED.upper(), str(uuid.UUID(hex=HEX[:32]))
# Put together here, so that no scanner takes this file for a leak.
TOKENS: dict[str, list[str]] = {
    "anthropic_key": [f"sk-ant-api03-{MIXED[:95]}"],
    "openai_key": [f"sk-proj-{MIXED[:120]}", f"sk-{MIXED[:48]}", f"sk-or-v1-{HEX[:64]}"],
    "hugging_face_token": [f"hf_{MIXED[:34]}"],
    "groq_key": [f"gsk_{MIXED[:52]}"],
    "xai_key": [f"xai-{MIXED[:80]}"],
    "replicate_token": [f"r8_{MIXED[:37]}"],
    "perplexity_key": [f"pplx-{MIXED[:48]}"],
    "nvidia_key": [f"nvapi-{MIXED[:64]}"],
    "cerebras_key": [f"csk-{LOWER[:48]}"],
    "together_key": [f"tgp_v1_{MIXED[:43]}"],
    "elevenlabs_key": [f"sk_{HEX[:48]}"],
    "pinecone_key": [f"pcsk_{MIXED[:6]}_{MIXED[6:69]}"],
    "langsmith_key": [f"lsv2_pt_{HEX[:32]}_{HEX[32:42]}"],
    "tavily_key": [f"tvly-dev-{MIXED[:32]}"],
    "jina_key": [f"jina_{MIXED[:60]}"],
    "mem0_key": [f"m0-{MIXED[:40]}"],
    "fireworks_key": [f"fw_{MIXED[:24]}"],
    "voyage_key": [f"pa-{MIXED[:43]}"],
    "firecrawl_key": [f"fc-{HEX[:32]}"],
    "e2b_key": [f"e2b_{HEX[:40]}", f"sk_e2b_{HEX[:40]}"],
    "modal_token": [f"ak-{MIXED[:22]}", f"as-{MIXED[:22]}"],
    "composio_key": [f"ak_{MIXED[:20]}"],
    "langfuse_key": [f"sk-lf-{UUID}"],
    "brave_key": [f"BSA{MIXED[:28]}"],
    "browserbase_key": [f"bb_live_{MIXED[:27]}"],
    "zep_key": [f"z_1dWlk{MIXED[:90]}"],
    "runpod_key": [f"rpa_{MIXED[:42]}"],
    "wandb_key": [f"wandb_v1_{MIXED[:77]}"],
    "cartesia_key": [f"sk_car_{MIXED[:22]}"],
    "llama_cloud_key": [f"llx-{MIXED[:48]}"],
    "hyperbrowser_key": [f"hb_{HEX[:40]}"],
    "daytona_key": [f"dtn_{HEX[:64]}"],
    "vercel_token": [f"vcp_{MIXED[:56]}", f"vck_{MIXED[:56]}"],
    "render_key": [f"rnd_{MIXED[:28]}"],
    "neon_key": [f"napi_{LOWER[:64]}"],
    "cloudflare_token": [f"cfut_{MIXED[:40]}{HEX[:8]}"],
    "deno_token": [f"ddp_{MIXED[:36]}"],
    "yandex_key": [f"AQVN{MIXED[:36]}", f"YCA{MIXED[:37]}"],
    "scalingo_token": [f"tk-us-{MIXED[:48]}"],
    "clickhouse_key": [f"4b1d{MIXED[:38]}"],
    "salad_key": [f"salad_cloud_user_{MIXED[:40]}"],
    "azure_devops_token": [f"{MIXED[:76]}AZDO{MIXED[:4]}"],
    "azure_key": [f"{MIXED[:52]}JQQJ99{UPPER[:26]}"],
    "sonar_token": [f"sqp_{HEX[:40]}", f"sqco_{MIXED[:59]}"],
    "dbt_token": [f"dbtc_{MIXED[:44]}"],
    "octopus_key": [f"API-{UPPER[:26]}"],
    "trigger_key": [f"tr_prod_{MIXED[:24]}"],
    "inngest_key": [f"signkey-prod-{HEX[:64]}"],
    "bitbucket_token": [f"BBDC-{MIXED[:44]}"],
    "harness_key": [f"pat.{MIXED[:22]}.{MIXED[22:46]}.{MIXED[46:66]}"],
    "infisical_token": [f"st.{UUID}.{HEX[:32]}.{HEX[32:64]}"],
    "onepassword_key": [f"A3-{UPPER[:6]}-{UPPER[6:12]}-{UPPER[12:17]}-{UPPER[17:22]}-{UPPER[22:27]}-{UPPER[27:32]}"],
    "statsig_key": [f"secret-{MIXED[:43]}"],
    "teams_webhook": [f"webhook.office.com/webhookb2/{UUID}@{UUID}/IncomingWebhook/{HEX[:32]}/{UUID}"],
    "paddle_key": [f"pdl_live_apikey_{LOWER[:26]}_{MIXED[:22]}_{MIXED[:3]}"],
    "polar_token": [f"polar_oat_{MIXED[:43]}"],
    "lob_key": [f"live_{HEX[:35]}"],
    "mercury_token": [f"secret-token:mercury_production_{MIXED[:40]}"],
    "braintree_token": [f"access_token$production${LOWER[:16]}${HEX[:32]}"],
    "axiom_token": [f"xaat-{UUID}"],
    "launchdarkly_key": [f"sdk-{UUID}"],
    "honeycomb_key": [f"hcaik_{LOWER[:58]}"],
    "rootly_key": [f"rootly_{HEX[:64]}"],
    "onesignal_key": [f"os_v2_app_{LOWER[:103]}"],
    "n8n_key": [f"n8n_api_{LOWER[:40]}"],
    "calcom_key": [f"cal_live_{HEX[:32]}"],
    "mailchimp_key": [f"{HEX[:32]}-us12"],
    "mailgun_key": [f"key-{HEX[:32]}"],
    "retool_key": [f"retool_{MIXED[:30]}"],
    "maxmind_key": [f"{MIXED[:6]}_{MIXED[6:35]}_mmk"],
    "apify_token": [f"apify_api_{MIXED[:36]}"],
    "aws_access_key": [f"AKIA{UPPER[:16]}", f"ASIA{UPPER[:16]}"],
    "aws_bedrock_key": [f"ABSK{MIXED[:130]}=", f"ABSK{MIXED[:5]}/{MIXED[5:130]}=", f"bedrock-api-key-{MIXED[:150]}"],
    "aws_session_token": [
        f"IQoJb3JpZ2luX2VjE{MIXED[:3]}/{MIXED[:200]}==".replace("_", "/"),
        f"FwoGZXIvYXdzE{MIXED[:200]}",
    ],
    "aws_appsync_key": [f"da2-{LOWER[:26]}"],
    "google_key": [f"AIza{MIXED[:35]}"],
    "google_oauth": [f"ya29.{MIXED[:150]}", f"GOCSPX-{MIXED[:28]}", f"1//0{MIXED[:98]}"],
    "azure_storage_key": [f"AccountKey={MIXED[:86]}=="],
    "azure_client_secret": [f"aB3{7}Q~{MIXED[:34]}"],
    "alibaba_key": [f"LTAI{MIXED[:20]}"],
    "digitalocean_token": [f"dop_v1_{HEX[:64]}"],
    "cloudflare_key": [f"v1.0-{HEX[:24]}-{HEX[24:170]}"],
    "heroku_key": [f"HRKU-AA{MIXED[:58]}"],
    "netlify_token": [f"nfp_{MIXED[:36]}"],
    "fly_token": [f"fo1_{MIXED[:43]}", f"fm2_{MIXED[:200]}"],
    "supabase_key": [f"sbp_{HEX[:40]}", f"sb_secret_{MIXED[:31]}"],
    "planetscale_token": [f"pscale_tkn_{MIXED[:43]}"],
    "databricks_token": [f"dapi{HEX[:32]}"],
    "openshift_token": [f"sha256~{MIXED[:43]}"],
    "tailscale_key": [f"tskey-auth-{MIXED[:12]}CNTRL-{MIXED[12:44]}"],
    "github_token": [f"ghp_{MIXED[:36]}", f"github_pat_{MIXED[:22]}_{MIXED[22:81]}"],
    "gitlab_token": [f"glpat-{MIXED[:20]}", f"glcbt-{MIXED[:20]}"],
    "atlassian_token": [f"ATATT3{MIXED[:186]}"],
    "bitbucket_password": [f"ATBB{MIXED[:32]}"],
    "npm_token": [f"npm_{MIXED[:36]}"],
    "pypi_token": [f"pypi-{MIXED[:150]}"],
    "rubygems_key": [f"rubygems_{HEX[:48]}"],
    "clojars_token": [f"CLOJARS_{LOWER[:60]}"],
    "docker_token": [f"dckr_pat_{MIXED[:27]}"],
    "jfrog_token": [f"AKCp{MIXED[:69]}", f"cmVmdGtu{MIXED[:56]}"],
    "circleci_token": [f"CCIPAT_{MIXED[:22]}_{HEX[:40]}"],
    "buildkite_token": [f"bkua_{HEX[:40]}"],
    "pulumi_token": [f"pul-{HEX[:40]}"],
    "terraform_token": [f"{MIXED[:14]}.atlasv1.{MIXED[14:81]}"],
    "sourcegraph_token": [f"sgp_{HEX[:16]}_{HEX[16:56]}"],
    "prefect_token": [f"pnu_{LOWER[:36]}"],
    "infracost_key": [f"ico-{MIXED[:32]}"],
    "vault_token": [f"hvs.{MIXED[:90]}"],
    "doppler_token": [f"dp.pt.{MIXED[:43]}"],
    "onepassword_token": [f"ops_eyJ{MIXED[:250]}"],
    "age_key": [f"AGE-SECRET-KEY-1{UPPER[:58]}"],
    "json_web_token": [f"eyJ{MIXED[:30]}.eyJ{MIXED[:60]}.{MIXED[:43]}"],
    "slack_token": [f"xoxb-{MIXED[:40]}", f"xapp-1-{MIXED[:40]}"],
    "slack_webhook": [
        f"hooks.slack.com/services/T{UPPER[:10]}/B{UPPER[:10]}/{MIXED[:24]}",
        f"hooks.slack.com/workflows/T{UPPER[:10]}/A{UPPER[:10]}/412345678901234567/{MIXED[:24]}",
    ],
    "discord_webhook": [f"discord.com/api/webhooks/123456789012345678/{MIXED[:68]}"],
    "discord_token": [
        f"{base64.b64encode(number.encode()).decode().rstrip('=')}.{MIXED[:6]}.{MIXED[6 : 6 + length]}"
        for number, length in (("245559087524216832", 27), ("968556348390391859", 38), ("1301590567989547028", 38))
    ],
    "telegram_bot_token": [f"987012345:AA{MIXED[:33]}"],
    "twilio_key": [f"SK{HEX[:32]}"],
    "sendgrid_key": [f"SG.{MIXED[:22]}.{MIXED[:43]}"],
    "brevo_key": [f"xkeysib-{HEX[:64]}-{MIXED[:16]}"],
    "resend_key": [f"re_{MIXED[:8]}_{MIXED[8:32]}"],
    "facebook_token": [f"EAA{MIXED[:180]}"],
    "stripe_key": [f"sk_live_{MIXED[:24]}", f"rk_test_{MIXED[:99]}", f"whsec_{MIXED[:9]}/{MIXED[9:21]}+{MIXED[21:30]}"],
    "square_token": [f"sq0atp-{MIXED[:22]}"],
    "plaid_token": [f"access-production-{UUID}"],
    "flutterwave_key": [f"FLWSECK-{LOWER[:32]}-X"],
    "shopify_token": [f"shpat_{HEX[:32]}"],
    "easypost_key": [f"EZAK{MIXED[:54]}"],
    "shippo_token": [f"shippo_live_{HEX[:40]}"],
    "duffel_token": [f"duffel_live_{MIXED[:43]}"],
    "notion_token": [f"ntn_{MIXED[:46]}", f"secret_{MIXED[:43]}"],
    "linear_key": [f"lin_api_{MIXED[:40]}"],
    "airtable_token": [f"pat{MIXED[:14]}.{HEX[:64]}"],
    "figma_token": [f"figd_{MIXED[:40]}"],
    "hubspot_token": [f"pat-na1-{UUID}"],
    "contentful_token": [f"CFPAT-{MIXED[:43]}"],
    "dropbox_token": [f"sl.{MIXED[:140]}"],
    "typeform_token": [f"tfp_{MIXED[:59]}"],
    "frameio_token": [f"fio-u-{MIXED[:64]}"],
    "readme_key": [f"rdme_{LOWER[:70]}"],
    "adafruit_key": [f"aio_{MIXED[:28]}"],
    "postman_key": [f"PMAK-{HEX[:24]}-{HEX[24:58]}"],
    "posthog_key": [f"phx_{MIXED[:43]}"],
    "grafana_token": [f"glsa_{MIXED[:32]}_{HEX[:8]}", f"glc_eyJ{MIXED[:100]}"],
    "sentry_token": [f"sntrys_eyJ{MIXED[:120]}", f"sntryu_{HEX[:64]}"],
    "newrelic_key": [f"NRAK-{UPPER[:27]}"],
    "dynatrace_token": [f"dt0c01.{UPPER[:24]}.{UPPER[24:88]}"],
}
AROUND = ("{}", "it is {} now", '{{"note": "{}"}}', "x={}", "one\n{}\ntwo", "(`{}`)", "https://host.test/{}")


def test_every_form_has_an_example_here() -> None:
    """What is claimed to be recognised is shown."""
    kinds = {kind for kind, _, _ in (*FORMATS, *EMBEDDED_FORMATS)} | {kind for _, _, kind, _ in MARKED_FORMATS}
    assert kinds == {*TOKENS, "sentry_dsn"}


def test_a_token_is_found_whole_wherever_it_stands() -> None:
    """Alone, in prose, in JSON (also behind an escaped break), in an address; under its issuer's name."""
    for kind, tokens in TOKENS.items():
        for token in tokens:
            for around in (*AROUND, json.dumps({"text": "one\n{}\ttwo"}).replace("{", "{{", 1)[:-1] + "}}"):
                text = around.format(token)
                found = find_secrets(text)
                assert [secret.kind for secret in found] == [kind], text
                assert text[found[0].start : found[0].end] == token


def test_the_key_of_a_sentry_address_is_found() -> None:
    """Only the key: the host and the project say where errors go."""
    text = f"SENTRY_DSN=https://{HEX[:32]}@o12.ingest.us.sentry.io/4505"
    (found,) = find_secrets(text)
    assert (found.kind, text[found.start : found.end]) == ("sentry_dsn", HEX[:32])


def _ordinary() -> dict[str, str]:
    chance = random.Random(23)
    pieces = [chance.randbytes(40) for _ in range(300)]
    return {
        "UUIDs": " ".join(str(uuid.UUID(bytes=piece[:16])) for piece in pieces),
        "UUIDs in capitals": " ".join(str(uuid.UUID(bytes=piece[:16])).upper() for piece in pieces),
        "git hashes": "\n".join(f"{piece[:20].hex()} Fix the build" for piece in pieces),
        "sha256 sums": "\n".join(f"{piece[:32].hex()}  dist/app-{place}.tar.gz" for place, piece in enumerate(pieces)),
        "image digests": " ".join(f"app@sha256:{piece[:32].hex()}" for piece in pieces),
        "integrity": " ".join(
            f'"integrity": "sha512-{base64.b64encode(piece * 2)[:86].decode()}=="' for piece in pieces
        ),
        "cache keys": " ".join(
            f"cache-key-{hashlib.md5(piece, usedforsecurity=False).hexdigest()}" for piece in pieces
        ),
        "a picture": f"data:image/png;base64,{base64.b64encode(b''.join(pieces) * 20).decode()}",
        "call ids": " ".join(
            f"call_{base64.b32encode(piece)[:24].decode()} toolu_01{piece[:11].hex()}" for piece in pieces
        ),
        "object ids": " ".join(piece[:12].hex() for piece in pieces),
        "times": " ".join(f"2024-05-{place % 28 + 1:02}T10:11:12.123456+00:00" for place in range(300)),
        "signed addresses": " ".join(f"https://cdn.test/a/{piece.hex()}.png?v={piece[:4].hex()}" for piece in pieces),
    }


ORDINARY = {
    **_ordinary(),
    "classes of styles": '<div class="sk-estimator-doc-link-fitted-2 sk-toggleable__control-arrow-v2">',
    "names in a program": "MemoryProviderManagerBase.config.retrieve_from_version_2_of_it(SKLearnEstimatorFactory2)",
    "names with prefixes": "pat-stands-for-something-else-2024 re_export_everything_from_v2_module key-value-2024",
    "options": "docker run -u 1000:1000 app; sudo -u postgres psql; ls -u a:B2c3d4; git push -u origin main:Release2",
    "curl without a password": "curl -u $USER:$PASS https://x; curl -u admin x; curl --user '<user>:<password>' x",
    "curl, then something else": "curl https://host.test | tee out\nchown -u app:Release2024 out",
    "public keys of services": "phc_is_public; pk names; sha256~ is a prefix; dp.pt. and hvs. too",
    "header names": "Send X-Api-Key: <key>, api-key: $KEY or Authorization: Basic <credentials> with each request.",
    "an empty id": "api_key: 00000000-0000-0000-0000-000000000000",
    "paths": "private_key: keys/Production2/Site/server.pem secret_key=config/Keys2024/main/site/master",
}


def test_what_only_looks_like_a_credential_stays() -> None:
    """Hashes, ids, sums, pictures, names and options are kept letter by letter."""
    for text in ORDINARY.values():
        assert Redactor().text(text) == (text, 0)
