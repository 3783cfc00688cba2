"""Finds tokens in the format of an issuer, and private keys from their first line to their last.

A format is a prefix of its own and a length that the issuer documents or uses. Only formats that nothing else has are
listed: a bare UUID, a hash or a run of base64 may be a credential of some service, but is nearly always something else.
Every token has a run of at least twenty letters, digits, '_' and '-', but for the few with a mark of their own. Such
runs are rare in ordinary text, so only they are compared with the formats, each format at the places where its
beginning stands.

A private key can be written in many ways: as in its file, indented, quoted, with line numbers, in a JSON string whose
line breaks are escapes, or with its beginning or end missing. Public keys and certificates are not secret and stay.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import zip_longest

from memoranda.safety.secrets.found_secret import FoundSecret, looks_random
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later, compile_once

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

# Kind, texts of which one must occur, pattern. Lengths have some tolerance.
FORMATS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # Models and services that run them.
    ("anthropic_key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{20,200}"),
    ("langfuse_key", ("sk-lf-",), rf"\bsk-lf-{_UUID}\b"),
    ("openai_key", ("sk-",), r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-|None-|or-v1-)?[A-Za-z0-9_-]{20,200}"),
    ("hugging_face_token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,64}\b"),
    ("groq_key", ("gsk_",), r"\bgsk_[A-Za-z0-9]{40,64}"),
    ("xai_key", ("xai-",), r"\bxai-[A-Za-z0-9]{60,100}"),
    ("replicate_token", ("r8_",), r"\br8_[A-Za-z0-9]{37,40}\b"),
    ("perplexity_key", ("pplx-",), r"\bpplx-[A-Za-z0-9]{40,64}"),
    ("nvidia_key", ("nvapi-",), r"\bnvapi-[A-Za-z0-9_-]{60,70}"),
    ("cerebras_key", ("csk-",), r"\bcsk-[a-z0-9]{40,60}\b"),
    ("together_key", ("tgp_v1_",), r"\btgp_v1_[A-Za-z0-9_-]{40,50}"),
    ("elevenlabs_key", ("sk_",), r"\bsk_[0-9a-f]{48}\b"),
    ("pinecone_key", ("pcsk_",), r"\bpcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,70}"),
    ("langsmith_key", ("lsv2_",), r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b"),
    ("tavily_key", ("tvly-",), r"\btvly-(?:dev-|prod-)?[A-Za-z0-9_-]{20,64}"),
    ("jina_key", ("jina_",), r"\bjina_[A-Za-z0-9_-]{55,70}"),
    ("mem0_key", ("m0-",), r"(?<![\w-])m0-(?=[0-9a-f]{0,39}[A-Zg-z])[A-Za-z0-9]{40}\b"),
    ("apify_token", ("apify_api_",), r"\bapify_api_[A-Za-z0-9]{34,40}\b"),
    ("fireworks_key", ("fw_",), r"\bfw_[A-Za-z0-9]{22,48}\b"),
    ("voyage_key", ("pa-",), r"(?<![\w-])pa-(?=[\w-]{0,42}\d)(?=[\w-]{0,42}[A-Z])[A-Za-z0-9_-]{43}(?![\w-])"),
    ("firecrawl_key", ("fc-",), r"(?<![\w-])fc-[0-9a-f]{32}\b"),
    ("e2b_key", ("e2b_", "sk_e2b_"), r"\b(?:sk_)?e2b_[0-9a-f]{40}\b"),
    ("modal_token", ("ak-", "as-"), r"(?<![\w-])a[ks]-(?=[a-z]{0,20}[A-Z0-9])[A-Za-z0-9]{22}(?![\w-])"),
    ("composio_key", ("ak_",), r"\bak_(?=[a-z_-]{0,19}[A-Z0-9])[A-Za-z0-9_-]{20}(?![\w-])"),
    ("brave_key", ("BSA",), r"\bBSA(?=[\w-]{0,27}\d)(?=[\w-]{0,27}[a-z])[A-Za-z0-9_-]{28}(?![\w-])"),
    ("browserbase_key", ("bb_live_", "bb_test_"), r"\bbb_(?:live|test)_[A-Za-z0-9_-]{24,40}"),
    ("zep_key", ("z_1d",), r"\bz_1d[A-Za-z0-9._-]{60,200}"),
    ("runpod_key", ("rpa_",), r"\brpa_[A-Za-z0-9]{36,60}\b"),
    ("wandb_key", ("wandb_v1_",), r"\bwandb_v1_[A-Za-z0-9_-]{40,90}"),
    ("cartesia_key", ("sk_car_",), r"\bsk_car_[A-Za-z0-9_-]{20,40}"),
    ("llama_cloud_key", ("llx-",), r"(?<![\w-])llx-[A-Za-z0-9]{40,60}\b"),
    ("hyperbrowser_key", ("hb_",), r"\bhb_[0-9a-f]{28,44}\b"),
    ("daytona_key", ("dtn_",), r"\bdtn_[0-9a-f]{64}\b"),
    ("hugging_face_token", ("api_org_",), r"\bapi_org_[A-Za-z]{34}\b"),
    # Clouds and hosting.
    ("aws_access_key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"\bA(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}\b"),
    ("google_key", ("AIza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    ("google_oauth", ("GOCSPX-",), r"\bGOCSPX-[A-Za-z0-9_-]{20,64}"),
    ("alibaba_key", ("LTAI",), r"\bLTAI[A-Za-z0-9]{16,24}\b"),
    ("digitalocean_token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"\bdo[opr]_v1_[0-9a-f]{64}"),
    ("heroku_key", ("HRKU-",), r"\bHRKU-[A-Za-z0-9_-]{36,64}"),
    ("netlify_token", ("nfp_",), r"\bnfp_[A-Za-z0-9]{36}\b"),
    (
        "fly_token",
        ("fo1_", "fm1_", "fm1a_", "fm1r_", "fm2_"),
        r"\bfo1_[A-Za-z0-9_-]{40,60}|\bfm\d[ar]?_[A-Za-z0-9+/_-]{80,2000}={0,2}",
    ),
    ("supabase_key", ("sbp_", "sb_secret_"), r"\bsbp_[0-9a-f]{40}\b|\bsb_secret_[A-Za-z0-9_-]{30,50}"),
    ("planetscale_token", ("pscale_",), r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    ("databricks_token", ("dapi",), r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    ("tailscale_key", ("tskey-",), r"\btskey-(?:[a-z]{2,12}-)?[A-Za-z0-9]{8,30}-[A-Za-z0-9]{16,64}\b"),
    ("aws_bedrock_key", ("bedrock-api-key-",), r"\bbedrock-api-key-[A-Za-z0-9+/=]{40,4000}"),
    ("aws_appsync_key", ("da2-",), r"(?<![\w-])da2-[a-z0-9]{26}\b"),
    ("vercel_token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), r"\bvc[piark]_[A-Za-z0-9]{24,80}\b"),
    ("render_key", ("rnd_",), r"\brnd_[A-Za-z0-9]{28,32}\b"),
    ("neon_key", ("napi_", "npg_"), r"\bnapi_[a-z0-9]{60,70}\b|\bnpg_[A-Za-z0-9]{12,20}\b"),
    ("cloudflare_token", ("cfut_", "cfat_", "cfk_"), r"\bcf(?:[ua]t|k)_[A-Za-z0-9]{40}[0-9a-f]{8}\b"),
    ("deno_token", ("ddp_", "ddw_", "ddo_"), r"\bdd[pwo]_[A-Za-z0-9]{36}\b"),
    ("yandex_key", ("AQVN", "YC"), r"\bAQVN[A-Za-z0-9_-]{35,38}(?![\w-])|\bYC[A-Z][A-Za-z0-9_-]{37}(?![\w-])"),
    ("scalingo_token", ("tk-us-",), r"\btk-us-[\w-]{48}(?![\w-])"),
    ("clickhouse_key", ("4b1d",), r"\b4b1d[A-Za-z0-9]{38}\b"),
    ("salad_key", ("salad_cloud_",), r"\bsalad_cloud_[0-9A-Za-z]{1,7}_[0-9A-Za-z]{7,235}\b"),
    # Code, packages and builds.
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{30,255}"),
    ("github_token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{40,255}"),
    (
        "gitlab_token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glft-", "glffct-"),
        r"\bgl(?:pat|dt|rt|ptt|cbt|imt|agent|oas|soat|ft|ffct)-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9}\b)?",
    ),
    ("atlassian_token", ("ATATT3", "ATCTT3"), r"\bAT[AC]TT3[A-Za-z0-9_=-]{60,300}"),
    ("bitbucket_password", ("ATBB",), r"\bATBB[A-Za-z0-9]{32}\b"),
    ("npm_token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi_token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{50,500}"),
    ("rubygems_key", ("rubygems_",), r"\brubygems_[0-9a-f]{48}\b"),
    ("clojars_token", ("CLOJARS_",), r"\bCLOJARS_[0-9a-z]{60}\b"),
    ("docker_token", ("dckr_pat_", "dckr_oat_"), r"\bdckr_[po]at_[A-Za-z0-9_-]{27,40}"),
    ("jfrog_token", ("AKCp",), r"\bAKCp[A-Za-z0-9]{69}\b"),
    ("jfrog_token", ("cmVmdGtu",), r"\bcmVmdGtu[A-Za-z0-9]{50,60}\b"),
    ("circleci_token", ("CCIPAT_", "CCIPRJ_"), r"\bCCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}\b"),
    ("buildkite_token", ("bkua_",), r"\bbkua_[0-9a-f]{40}\b"),
    ("pulumi_token", ("pul-",), r"(?<![\w-])pul-[0-9a-f]{40}\b"),
    ("sourcegraph_token", ("sgp_",), r"\bsgp_(?:[A-Za-z0-9]{16}_|local_)?[0-9a-f]{40}\b"),
    ("prefect_token", ("pnu_",), r"\bpnu_[A-Za-z0-9]{36}\b"),
    ("infracost_key", ("ico-",), r"(?<![\w-])ico-(?=[0-9a-f]{0,31}[A-Zg-z])[A-Za-z0-9]{32}\b"),
    ("gitlab_token", ("GR1348941",), r"\bGR1348941[\w-]{20}(?![\w-])"),
    ("sonar_token", ("squ_", "sqp_", "sqa_", "sqco_"), r"\bsq(?:[upa]_[0-9a-f]{40}|co_[A-Za-z0-9]{59})\b"),
    ("dbt_token", ("dbtc_", "dbtu_", "dbts_"), r"\bdbt[cus]_[A-Za-z0-9_-]{30,60}"),
    ("octopus_key", ("API-",), r"(?<![\w-])API-(?=[A-Z]{0,25}\d)[A-Z0-9]{25,26}\b"),
    ("trigger_key", ("tr_prod_", "tr_dev_", "tr_stg_", "tr_pat_"), r"\btr_(?:prod|dev|stg|pat)_[A-Za-z0-9]{20,44}\b"),
    ("inngest_key", ("signkey-",), r"\bsignkey-(?:prod|test|branch)-[0-9a-f]{32,64}\b"),
    ("bitbucket_token", ("BBDC-",), r"\bBBDC-[A-Za-z0-9+/@_-]{40,50}"),
    ("sourcegraph_token", ("slk_",), r"\bslk_[0-9a-f]{64}\b"),
    # Secret managers.
    ("onepassword_token", ("ops_eyJ",), r"\bops_eyJ[A-Za-z0-9_-]{200,2000}"),
    ("age_key", ("AGE-SECRET-KEY-",), r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,64}"),
    ("onepassword_key", ("A3-",), r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b"),
    ("statsig_key", ("secret-",), r"(?<![\w-])secret-(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{40,48}\b"),
    ("json_web_token", ("ZXlK",), r"\bZXlK[A-Za-z0-9+/]{60,4000}={0,2}"),
    ("json_web_token", ("eyJ",), r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{20,1000}"),
    # Messaging.
    ("slack_token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{15,250}"),
    ("slack_token", ("xapp-",), r"\bxapp-\d-[A-Za-z0-9-]{20,250}"),
    ("twilio_key", ("SK", "AC"), r"(?:SK|AC)(?<!\w..)[0-9a-f]{32}\b"),
    ("brevo_key", ("xkeysib-",), r"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b"),
    ("resend_key", ("re_",), r"\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b"),
    ("facebook_token", ("EAA",), r"\bEAA[A-Za-z0-9]{100,400}\b"),
    # Payments and commerce.
    (
        "stripe_key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_"),
        r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,255}",
    ),
    ("square_token", ("sq0atp-", "sq0csp-"), r"\bsq0(?:atp|csp)-[A-Za-z0-9_-]{22,60}"),
    ("plaid_token", ("access-",), rf"\baccess-(?:sandbox|development|production)-{_UUID}\b"),
    ("flutterwave_key", ("FLWSECK",), r"\bFLWSECK(?:_TEST)?-[0-9A-Za-z]{12,40}-X\b"),
    ("shopify_token", ("shpat_", "shpss_", "shpca_", "shppa_"), r"\bshp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"),
    ("easypost_key", ("EZAK", "EZTK"), r"\bEZ[AT]K[A-Za-z0-9]{54}\b"),
    ("shippo_token", ("shippo_",), r"\bshippo_(?:live|test)_[0-9a-f]{40}\b"),
    ("duffel_token", ("duffel_",), r"\bduffel_(?:live|test)_[A-Za-z0-9_=-]{43}"),
    (
        "paddle_key",
        ("pdl_live_", "pdl_sdbx_"),
        r"\bpdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}\b",
    ),
    ("polar_token", ("polar_",), r"\bpolar_(?:oat|pat|at_[uo]|rt_[uo]|cst|ci|cs)_[A-Za-z0-9_-]{24,64}"),
    ("lob_key", ("live_", "test_"), r"\b(?:live|test)_[0-9a-f]{35}\b"),
    ("square_token", ("EAAA",), r"\bEAAA[A-Za-z0-9_-]{60}(?![\w-])"),
    # Productivity and monitoring.
    ("notion_token", ("ntn_", "secret_"), r"\bntn_[A-Za-z0-9]{40,60}|\bsecret_[A-Za-z0-9]{43}\b"),
    ("linear_key", ("lin_api_", "lin_oauth_", "lin_wh_"), r"\blin_(?:api|oauth|wh)_[A-Za-z0-9]{32,64}"),
    ("figma_token", ("figd_", "figu_", "figp_", "figo_", "figoh_"), r"\bfig[dupo]h?_[A-Za-z0-9_=-]{38,54}"),
    ("hubspot_token", ("pat-",), rf"\bpat-(?:na|eu|ap)\d-{_UUID}\b"),
    ("contentful_token", ("CFPAT-",), r"\bCFPAT-[A-Za-z0-9_-]{43}"),
    ("typeform_token", ("tfp_",), r"\btfp_[A-Za-z0-9_.=-]{40,70}"),
    ("frameio_token", ("fio-u-",), r"\bfio-u-[A-Za-z0-9_=-]{64}"),
    ("readme_key", ("rdme_",), r"\brdme_[a-z0-9]{70}\b"),
    ("adafruit_key", ("aio_",), r"\baio_[A-Za-z0-9]{28}\b"),
    ("postman_key", ("PMAK-",), r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    ("posthog_key", ("phx_",), r"\bphx_[A-Za-z0-9]{40,50}\b"),
    ("grafana_token", ("glsa_", "glc_eyJ"), r"\bglsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|\bglc_eyJ[\w+/-]{30,400}={0,2}"),
    (
        "sentry_token",
        ("sntrys_", "sntryu_", "sntryi_", "sntrya_"),
        r"\bsntrys_[\w+/=-]{40,500}|\bsntry[uia]_[0-9a-f]{64}\b",
    ),
    ("axiom_token", ("xaat-", "xapt-"), rf"\bxa[ap]t-{_UUID}\b"),
    ("launchdarkly_key", ("sdk-", "api-"), rf"(?<![\w-])(?:sdk|api)-{_UUID}\b"),
    ("honeycomb_key", ("hcaik_", "hcbik_", "hcxik_", "hcalk_"), r"\bhc[abx][il][ck]_[a-z0-9]{32,64}\b"),
    ("rootly_key", ("rootly_",), r"\brootly_[0-9a-f]{64}\b"),
    ("onesignal_key", ("os_v2_",), r"\bos_v2_(?:app|org)_[a-z0-9]{100,110}\b"),
    ("n8n_key", ("n8n_api_",), r"\bn8n_api_[A-Za-z0-9_-]{40,64}"),
    ("calcom_key", ("cal_live_", "cal_"), r"\bcal_(?:live_)?[0-9a-f]{32}\b"),
    ("mailgun_key", ("key-",), r"(?<![\w-])key-[0-9a-f]{32}\b"),
    ("retool_key", ("retool_",), r"\bretool_[A-Za-z0-9]{26,40}\b"),
    ("newrelic_key", ("NRAK-",), r"\bNRAK-[A-Z0-9]{27}\b"),
)

# The same for tokens whose mark is not at the beginning of the run of letters and digits that is found first.
EMBEDDED_FORMATS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("azure_client_secret", ("Q~",), r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~-])"),
    ("cloudflare_key", ("v1.0-",), r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{146}\b"),
    ("openshift_token", ("sha256~",), r"\bsha256~[A-Za-z0-9_-]{43}(?![\w-])"),
    ("terraform_token", (".atlasv1.",), r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}"),
    ("azure_devops_token", ("AZDO",), r"(?<![\w-])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![\w-])"),
    ("azure_key", ("JQQJ99",), r"(?<![\w-])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}(?![\w-])"),
    ("harness_key", ("pat.", "sat."), r"\b[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-zA-Z]{24}\.[A-Za-z0-9]{20}\b"),
    ("vault_token", ("hvs.", "hvb.", "hvr."), r"\bhv[sbr]\.[A-Za-z0-9_-]{24,200}"),
    (
        "doppler_token",
        ("dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit."),
        r"\bdp\.(?:pt|st|sa|ct|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}\b",
    ),
    ("infisical_token", ("st.",), rf"\bst\.(?:{_UUID}|[0-9a-f]{{24,32}})\.[0-9a-f]{{32,64}}\.[0-9a-f]{{32,64}}\b"),
    (
        "slack_webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/T[A-Za-z0-9]{6,14}/[A-Za-z0-9/]{12,80}",
    ),
    ("discord_webhook", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d{15,22}/[\w-]{40,100}"),
    (
        # The first part is a decimal number in base64.
        "discord_token",
        (".",),
        r"[MNO](?<![\w.-].)(?=[A-Za-z_-]{0,25}\d)(?=[\w-]{0,25}[a-z])[A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}"
        r"\.(?=[\w-]{0,37}\d)(?=[\w-]{0,37}[A-Z])[A-Za-z0-9_-]{27,40}(?![\w-])",
    ),
    (
        "teams_webhook",
        ("webhook.office.com",),
        rf"webhook\.office\.com/webhookb2/{_UUID}@{_UUID}/IncomingWebhook/[0-9a-f]{{32}}/[\w-]{{36,90}}",
    ),
    ("telegram_bot_token", (":AA",), r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    ("sendgrid_key", ("SG.",), r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}"),
    ("google_oauth", ("ya29.", "1//0"), r"\bya29\.[A-Za-z0-9_-]{20,500}|\b1//0[A-Za-z0-9_-]{40,200}"),
    ("google_key", ("AQ.Ab",), r"\bAQ\.Ab[A-Za-z0-9_-]{45,60}"),
    ("mercury_token", ("secret-token:",), r"\bsecret-token:[A-Za-z0-9_:.-]{20,100}"),
    ("airtable_token", ("pat",), r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b"),
    ("dropbox_token", ("sl.",), r"\bsl\.(?:u\.)?[A-Za-z0-9_-]{100,1500}"),
    ("sentry_dsn", ("sentry.io",), r"(?<=://)[0-9a-f]{32}(?=@[\w.-]{0,40}\.sentry\.io/\d)"),
    ("mailchimp_key", ("-us",), r"(?<![\w-])[0-9a-f]{32}-us\d{1,2}\b"),
    ("maxmind_key", ("_mmk",), r"\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
    ("dynatrace_token", ("dt0",), r"\bdt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b"),
)

# Tokens with '+', '/' or '$' in them, which may have no long run: a rare character, a mark, kind, pattern.
MARKED_FORMATS: tuple[tuple[str, str, str, str], ...] = (
    ("K", "AccountKey=", "azure_storage_key", r"AccountKey=[A-Za-z0-9+/]{60,100}={0,2}"),
    ("K", "ABSK", "aws_bedrock_key", r"\bABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    ("_", "whsec_", "stripe_key", r"\bwhsec_[A-Za-z0-9+/]{24,64}"),
    ("$", "access_token$", "braintree_token", r"\baccess_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}\b"),
    # The security token service of AWS begins its tokens with "origin_ec" or "er/aws" in base64.
    ("Z", "IQoJb3JpZ2lu", "aws_session_token", r"(?<![A-Za-z0-9+])IQoJb3JpZ2lu[A-Za-z0-9+/%]{80,4000}={0,2}"),
    ("Z", "oGZXIvYXdz", "aws_session_token", r"(?<![A-Za-z0-9+])F[Qw]oGZXIvYXdz[A-Za-z0-9+/%]{80,4000}={0,2}"),
)


# Every text with a private key contains one of them; the second and third are long enough to be found as runs.
KEY_MARK, PUTTY_MARK, ENCODED_MARK = "PRIVATE KEY", "PuTTY-User-Key-File-", "LS0tLS1CRUdJTi"

_MARKER = compile_later(
    r"-{4,5} ?(?P<edge>BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-Lines: \d{1,3}"
)
# What may be between two lines of a key: breaks (also as escapes), indents, quotes, marks of a quotation or a
# diff, numbers. The expression never backtracks (`}+`), so that no text takes long.
_BETWEEN = r"(?:[\s\"'`>|│→#*,;:+\\]|(?<=\\)[nrt]|(?<=[\r\n])-|\d(?=\d{0,5} ?[\t:|│→ ])){0,120}+"
_BREAK = compile_later(r"[\r\n]|\\[rn]")
_SIGN = r"(?:[A-Za-z0-9+/]|\\{1,4}/)"
_SIGNS = rf"{_SIGN}{{24,}}+={{0,2}}"
_LINE = compile_later(rf"{_BETWEEN}{_SIGNS}")
# Not from the middle of an escape on, because the beginning of the escape would be left over.
_NOT_ESCAPED = r"(?<!\\)(?<!\\u)(?<!\\u\w)(?<!\\u\w\w)(?<!\\u\w\w\w)"
_LONG_LINE = compile_later(rf"{_NOT_ESCAPED}{_SIGNS}")
_HEADER = compile_later(
    rf"{_BETWEEN}[A-Z][A-Za-z-]{{2,20}}: (?:[^\r\n\\]|\\{{1,3}}\"){{1,120}}?(?=\s{{0,3}}(?:[\r\n\\]|{_SIGN}{{40}}|$))"
)
# The last line of a key, or its checksum: short, but neither word nor number.
_SHORT_LINE = rf"(?!(?:[A-Z]?[a-z]+|\d+)(?![\w+/=]))=?{_SIGN}{{1,23}}+={{0,2}}"
_LAST_LINE = compile_later(rf"{_BETWEEN}(?P<line>{_SHORT_LINE})(?=[ \t]{{0,9}}(?:[\r\n\"'`\\…\[(<=]|\.\.|$))")
_TO_THE_END = compile_later(rf"{_BETWEEN}(?:{_SHORT_LINE}{_BETWEEN}){{0,2}}")
_ENCODED = compile_later(rf"(?:\b|(?<=\\[nrt])){ENCODED_MARK}[A-Za-z0-9+/]{{24,}}+={{0,2}}")
# How much of the text between the marks, without spaces, must be key for all of it to count as one.
_DENSE = 0.5


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """The spans of private keys in a text."""
    markers = list(_MARKER.finditer(text))
    done = 0
    for marker, following in zip_longest(markers, markers[1:]):
        if marker.start() < done:
            continue
        limit = following.start() if following else len(text)
        start, end = marker.span()
        if marker["edge"] == "END":
            start = _first_line_before(text, done, start)
        elif following and following["edge"] == "END" and _is_key(text[end:limit]):
            end = following.end()
        else:
            end = _last_line_after(text, end, limit)
        # A first line without a key is reported too: what follows it may be in a form that is not known here.
        if marker["edge"] == "BEGIN" or (start, end) != marker.span():
            yield start, end
        done = end
    for encoded in _ENCODED.finditer(text):
        if _hides_private_key(encoded[0]):
            yield encoded.span()


def _is_key(between: str) -> bool:
    """Whether the text between a first and a last line is a key, and not prose or code about keys."""
    solid = re.sub(r"\s|\\|(?<=\\)[nrt]", "", between)
    if re.fullmatch(r"[A-Za-z0-9+/]{4,}+={0,3}[A-Za-z0-9+/]*+", solid):
        return True
    return sum(len(line[0]) for line in _LONG_LINE.finditer(between)) >= _DENSE * len(solid) > 0


def _last_line_after(text: str, position: int, limit: int) -> int:
    """The end of the key lines that begin at a position; the position itself if there are none."""
    end = before = position
    while header := _HEADER.match(text, position, limit):
        position = header.end()
    while line := _LINE.match(text, position, limit):
        end = position = line.end()
    for _ in range(2):
        last = _LAST_LINE.match(text, position, limit)
        if last and (end > before or _BREAK.search(text, position, last.start("line"))):
            end = position = last.end()
    return end


def _first_line_before(text: str, position: int, limit: int) -> int:
    """The start of the key lines that end at a limit; the limit itself if there are none."""
    start = limit
    for line in reversed(list(_LONG_LINE.finditer(text, position, limit))):
        if not _TO_THE_END.fullmatch(text, line.end(), start):
            break
        start = line.start()
    return start


def _hides_private_key(encoded: str) -> bool:
    """Whether base64 text encodes the first line of a private key, as Kubernetes stores it."""
    try:
        return KEY_MARK.encode() in b64decode(encoded[:64] + "=" * (-len(encoded[:64]) % 4))
    except binascii.Error:
        return False


_RUN = b"a" * 20
_LETTERS = compile_later(rb"a+")
# After it, the first letter of a run is part of an escape.
_BACKSLASH = ord("\\")
# A prefix may end with a sign that is not part of the run; then this much of the text around the run counts too.
_SIGNS_BEFORE = b"./:~"
# How a prefix ends that is followed by a run, and what such a prefix may contain.
_PREFIX_ENDS = (
    b"SG.", b"hvs.", b"hvb.", b"hvr.", b"sl.", b"sl.u.", b"ya29.", b"st.", b"pat.", b"sat.", b"AQ.", b"v1.",
    b"secret-token:", b"sha256~", b"Q~", *(b"%d:" % digit for digit in range(10)),
)  # fmt: skip
_PREFIX_PARTS = (b"dp.", b"dt0", b"pat")
_MAX_PREFIX_CHARS = 48
_BEFORE_RUN = 80
_AFTER_RUN = 200
# A run this long may have the mark of its issuer in the middle.
_MIN_MARKED_RUN = 36
_INNER_MARKS = (b"AZDO", b"JQQJ99", b"-us", b"_mmk")
_DISCORD_HEADS = b"MNO"
_CAPITAL_OR_DIGIT = compile_later(rb"[A-Z0-9]")


def _by_head() -> dict[bytes, tuple[tuple[str, str], ...]]:
    """The formats by the first two characters of their tokens."""
    heads: dict[bytes, dict[tuple[str, str], None]] = {}
    for kind, hints, pattern in FORMATS:
        for hint in hints:
            heads.setdefault(hint[:2].encode(), {})[kind, pattern] = None
    return {head: tuple(formats) for head, formats in heads.items()}


_FORMATS_BY_HEAD = _by_head()
_HEADS = frozenset((*_FORMATS_BY_HEAD, PUTTY_MARK[:2].encode(), ENCODED_MARK[:2].encode()))


_KEY_MARK = KEY_MARK.encode()
_MARKED_BY_CHAR = tuple(
    (ord(rare), tuple((mark.encode(), kind, pattern) for char, mark, kind, pattern in MARKED_FORMATS if char == rare))
    for rare in dict.fromkeys(rare for rare, _, _, _ in MARKED_FORMATS)
)


def find_issuer_tokens(text: str, stored: bytes, kinds: bytes) -> list[FoundSecret]:
    """The tokens and private keys in a text.

    `stored` is the text as ASCII bytes, one for each character; `kinds` has an `a` for each letter, '_' and '-', a `0`
    for each digit, and others for the rest.
    """
    runs = kinds.replace(b"0", b"a")
    start = runs.find(_RUN)
    has_key = stored.find(_KEY_MARK) >= 0
    found: list[FoundSecret] = []
    if start >= 0:
        candidates = _candidates(stored, runs, start)
        if candidates:
            found += _match_candidates(blank_escapes(text), stored, candidates)
            has_key = has_key or (PUTTY_MARK in text or ENCODED_MARK in text)
    for rare, formats in _MARKED_BY_CHAR:
        if rare in stored:
            for mark, kind, pattern in formats:
                if stored.find(mark) >= 0:
                    found += _find_all(kind, pattern, blank_escapes(text), 0, len(text))
    if has_key:
        found += [FoundSecret("private_key", *span) for span in find_private_keys(text)]
    return found


def blank_escapes(text: str) -> str:
    """A text of the same length whose escaped breaks are spaces: in a JSON string, a token may follow an `n`."""
    if "\\" not in text:
        return text
    return text.replace("\\n", "  ").replace("\\r", "  ").replace("\\t", "  ")


def _candidates(stored: bytes, runs: bytes, start: int) -> list[tuple[int, int, bool]]:
    """The runs that may be a token: where they begin and end, and whether the text around them matters."""
    found = []
    while start >= 0:
        run = _LETTERS.match(runs, start)
        end = run.end() if run else start
        before = stored[start - 1] if start else 0
        if before == _BACKSLASH:
            start += 1
        # Most runs are names and paths in small letters.
        if _CAPITAL_OR_DIGIT.search(stored, start, end):
            has_surroundings = (
                before in _SIGNS_BEFORE and _follows_prefix(stored[max(0, start - _BEFORE_RUN) : start])
            ) or (stored[start] in _DISCORD_HEADS and stored[end : end + 1] == b".")
            if has_surroundings or end - start >= _MIN_MARKED_RUN or stored[start : start + 2] in _HEADS:
                is_candidate = has_surroundings or _has_mark(stored[start:end])
            else:
                is_candidate = stored.find(b"-", start, end) > 0 and _has_head(stored[start:end])
            if is_candidate:
                found.append((start, end, has_surroundings or end - start >= _MIN_MARKED_RUN))
        start = runs.find(_RUN, end)
    return found


def _has_mark(run: bytes) -> bool:
    """Whether a run begins like an issuer's token, or has the mark of an issuer in it."""
    return _has_head(run) or any([run.find(mark) >= 0 for mark in _INNER_MARKS])


def _follows_prefix(before: bytes) -> bool:
    """Whether the text before a run ends a prefix; a '/' does only in the address of a host or a webhook."""
    if before.endswith(b"/"):
        return before.endswith(b"//") or b"hook" in before
    if before.endswith(_PREFIX_ENDS):
        return True
    prefix = before[-_MAX_PREFIX_CHARS:]
    return any([prefix.find(part) >= 0 for part in _PREFIX_PARTS])


def _has_head(run: bytes) -> bool:
    """Whether a run, or a part of it after a '-', begins like an issuer's token."""
    return run[:2] in _HEADS or not _HEADS.isdisjoint([part[:2] for part in run.split(b"-")])


def _match_candidates(text: str, stored: bytes, candidates: list[tuple[int, int, bool]]) -> Iterator[FoundSecret]:
    """The tokens at the candidates; `text` has no escaped breaks."""
    regions: list[tuple[int, int]] = []
    for start, end, has_surroundings in candidates:
        position, done = start, start
        while position >= 0:
            if position >= done:
                for kind, pattern in _FORMATS_BY_HEAD.get(stored[position : position + 2], ()):
                    match = compile_once(pattern).match(text, position)
                    if match and _is_token(kind, match[0]):
                        yield FoundSecret(kind, position, match.end())
                        done = match.end()
                        break
            position = stored.find(b"-", position, end) + 1 or -1
        if has_surroundings:
            _add_region(regions, max(0, start - _BEFORE_RUN), min(len(text), end + _AFTER_RUN))
    for start, end in regions:
        part = text[start:end]
        for kind, hints, pattern in EMBEDDED_FORMATS:
            if contains_any(hints, part):
                yield from _find_all(kind, pattern, text, start, end)


def _add_region(regions: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a part of the text, joined with the last one if they overlap, so that no character is searched twice."""
    if regions and start <= regions[-1][1]:
        start = regions.pop()[0]
    regions.append((start, end))


def _find_all(kind: str, pattern: str, text: str, start: int, end: int) -> Iterator[FoundSecret]:
    for match in compile_once(pattern).finditer(text, start, end):
        if _is_token(kind, match[0]):
            yield FoundSecret(kind, match.start(), match.end())


def _is_token(kind: str, token: str) -> bool:
    return kind in ("json_web_token", "sentry_dsn") or looks_random(token)
