"""The page on which a person approves a client. Plain HTML with one form: no scripts, no images, no other site."""

import base64
import hashlib
from html import escape

from memoranda.service.remote_mcp.oauth.redirect_uris import origin_of
from memoranda.service.remote_mcp.oauth.requests import AuthorizationRequest

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}"
    "label{display:block;margin:1rem 0}input[type=password]{display:block;width:100%;font:inherit;padding:.5rem;"
    "box-sizing:border-box}button{font:inherit;padding:.5rem 1rem;margin-right:.5rem}strong{overflow-wrap:anywhere}"
    ".error{border-left:.3rem solid #c00;padding-left:.7rem}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_MEANINGS = {
    "read": "search your conversations and read what is remembered",
    "curate": "add, change and remove what is remembered",
}


def page_headers(redirect_uri: str = "") -> dict[str, str]:
    """The headers of a page. The form may lead to this server and, after it, to the client's address only."""
    origin = origin_of(redirect_uri) if redirect_uri else ""
    # A policy cannot name the host [::1].
    form_targets = f"'self' {'http:' if '[' in origin else origin}".strip()
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {form_targets}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        # With "no-referrer" browsers would send the form without its origin.
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


def consent_page(request: AuthorizationRequest, action: str, form_token: str, error: str = "") -> str:
    """The form for a request; `form_token` must come back with it. `error` says why the last attempt failed."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in (request.fields() | {"form_token": form_token}).items()
    )
    rights = "".join(f"<li>{_MEANINGS[scope]}</li>" for scope in request.scopes)
    read_only = (
        '<label><input type="checkbox" name="read_only" value="yes"> Only let it read</label>'
        if "curate" in request.scopes
        else ""
    )
    return _page(
        "Allow access to your memory?",
        f"<p>A program that calls itself <strong>{escape(request.client.name)}</strong> asks to</p><ul>{rights}</ul>"
        f"<p>If you allow it, your browser continues at <strong>{escape(origin_of(request.redirect_uri))}</strong>. "
        "Allow it only if you started this yourself, and if you know that address.</p>"
        + (f'<p class="error" role="alert">{escape(error)}</p>' if error else "")
        + f'<form method="post" action="{escape(action)}">{hidden}'
        '<label>Your API key <input type="password" name="api_key" autocomplete="off" spellcheck="false" autofocus>'
        "</label>"
        f"{read_only}"
        '<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></form>'
        "<p>The program never sees the key. It can do no more than the key can, and its access ends when the key is "
        "revoked.</p>",
    )


def error_page(message: str) -> str:
    """A page that says why a request for authorization cannot be answered."""
    return _page("This does not work", f'<p class="error" role="alert">{escape(message)}</p>')


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} – Memoranda</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
