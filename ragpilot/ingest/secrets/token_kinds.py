"""The shapes of tokens: one row a kind, found by a literal that each of them holds.

Every repetition is bounded, and an expression is only tried where its literal stands, so that a text is searched in
time linear in its length, whatever it is made of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenKind:
    """A kind of token. Its expression begins ``lead`` characters before an anchor."""

    name: str
    anchors: tuple[str, ...]
    """One of these stands in every match; in lower case where ``ignore_case``."""
    expression: re.Pattern[str]
    """Group ``value``, where there is one, is the part to be replaced; else the whole match is."""
    lead: int = 0
    ignore_case: bool = False
    standalone: bool = True
    """Whether a letter, digit, ``_`` or ``-`` right before the match rules it out."""


_B64 = r"[A-Za-z0-9+/]"
_END = r"(?![A-Za-z0-9])"


def _prefixed(name: str, prefix: str, body: str) -> TokenKind:
    """A token that begins with a literal."""
    return TokenKind(name, (prefix,), re.compile(re.escape(prefix) + body + _END))


def _several(name: str, prefixes: str, body: str) -> TokenKind:
    """A token with several possible beginnings."""
    anchors = tuple(prefixes.split())
    return TokenKind(name, anchors, re.compile("(?:" + "|".join(map(re.escape, anchors)) + ")" + body + _END))


def _after(name: str, anchors: str, expression: str) -> TokenKind:
    """A token that is known by what stands before it, in any case; the expression begins with an anchor."""
    return TokenKind(
        name, tuple(anchors.split("|")), re.compile(expression, re.IGNORECASE), ignore_case=True, standalone=False
    )


def _around(name: str, anchor: str, lead: int, expression: str) -> TokenKind:
    """A token with its literal in the middle, ``lead`` characters from its beginning."""
    return TokenKind(name, (anchor,), re.compile(expression + _END), lead=lead)


TOKEN_KINDS: tuple[TokenKind, ...] = (
    # clouds
    _several("aws-access-key", "AKIA ASIA ABIA ACCA AROA AIDA", r"[A-Z0-9]{16}"),
    _after(
        "aws-secret-key",
        "aws",
        r"aws.{0,20}?(?:secret|sk).{0,12}?[\"'\s:=]{1,6}(?P<value>" + _B64 + r"{40})(?![A-Za-z0-9+/=])",
    ),
    _prefixed("aws-mws-key", "amzn.mws.", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _prefixed("google-api-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _prefixed("google-oauth-token", "ya29.", r"[A-Za-z0-9_-]{20,400}"),
    _prefixed("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,40}"),
    _after("azure-storage-key", "accountkey=", r"accountkey=(?P<value>" + _B64 + r"{80,100}={0,2})"),
    _after("azure-sas", "?sig=|&sig=", r".sig=(?P<value>[A-Za-z0-9%+/]{40,100}(?:%3D|=){0,2})"),
    _after("azure-connection-key", "sharedaccesskey=", r"sharedaccesskey=(?P<value>" + _B64 + r"{40,50}={0,2})"),
    _around("azure-client-secret", "8Q~", 3, r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}"),
    _prefixed("digitalocean-token", "dop_v1_", r"[0-9a-f]{64}"),
    _prefixed("digitalocean-oauth-token", "doo_v1_", r"[0-9a-f]{64}"),
    _prefixed("alibaba-access-key", "LTAI", r"[A-Za-z0-9]{16,24}"),
    _prefixed("flyio-token", "FlyV1 fm2_", r"[A-Za-z0-9+/=,_-]{40,800}"),
    _several("flyio-token", "fm2_ fm1a_ fm1r_", r"[A-Za-z0-9+/]{100,800}={0,3}"),
    _prefixed("flyio-token", "fo1_", r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _prefixed("heroku-key", "HRKU-", r"[A-Za-z0-9_-]{36,80}"),
    _prefixed("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    _prefixed("hashicorp-vault-token", "hvs.", r"[A-Za-z0-9_-]{24,300}"),
    _around("hashicorp-terraform-token", ".atlasv1.", 14, r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80}"),
    _prefixed("doppler-token", "dp.pt.", r"[A-Za-z0-9]{40,44}"),
    _prefixed("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    _prefixed("supabase-token", "sbp_", r"(?:[a-z0-9]{1,8}_)?[0-9a-f]{40}"),
    _several("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9=_.-]{32,64}"),
    # version control, packages, builds
    _several("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,255}"),
    _prefixed("github-fine-grained-token", "github_pat_", r"[A-Za-z0-9_]{60,255}"),
    _prefixed("gitlab-token", "glpat-", r"[A-Za-z0-9_.-]{20,100}"),
    _several(
        "gitlab-other-token", "glptt- gldt- glrt- glft- glsoat- glimt- glagent- glcbt-", r"[A-Za-z0-9_.-]{20,100}"
    ),
    _prefixed("bitbucket-token", "ATBB", r"[A-Za-z0-9]{24,40}"),
    _prefixed("atlassian-token", "ATATT3", r"[A-Za-z0-9_=-]{100,250}"),
    _prefixed("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    _after(
        "npm-auth-token",
        ":_authtoken|:_password|:_auth",
        r":_(?:authtoken|password|auth)\s{0,3}=\s{0,3}(?P<value>[A-Za-z0-9+/=_-]{16,200})",
    ),
    _prefixed("pypi-token", "pypi-AgE", r"[A-Za-z0-9_-]{50,300}"),
    _prefixed("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    _prefixed("nuget-key", "oy2", r"[a-z0-9]{43}"),
    _prefixed("crates-token", "cio", r"[A-Za-z0-9]{32}"),
    _prefixed("docker-hub-token", "dckr_pat_", r"[A-Za-z0-9_-]{27,40}"),
    _prefixed("circleci-token", "CCIPAT_", r"[A-Za-z0-9_]{30,100}"),
    _several("sonarqube-token", "sqp_ squ_ sqa_", r"[0-9a-f]{40}"),
    _prefixed("artifactory-key", "AKCp", r"[A-Za-z0-9]{60,80}"),
    # services
    _several("slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9-]{10,250}"),
    _prefixed("slack-app-token", "xapp-", r"[0-9]-[A-Za-z0-9-]{20,200}"),
    _after("slack-webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?P<value>(?:services|workflows)/[\w+/-]{20,100})"),
    _after("discord-webhook", "/api/webhooks/", r"/api/webhooks/(?P<value>\d{16,20}/[\w-]{50,90})"),
    _prefixed("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    TokenKind("telegram-token", (":AA",), re.compile(r":(?<=\d{8}:)AA[\w-]{32,33}" + _END), standalone=False),
    _several("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,200}"),
    _prefixed("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{32,100}"),
    _prefixed("twilio-key", "SK", r"[0-9a-f]{32}"),
    _prefixed("mailgun-key", "key-", r"[0-9a-f]{32}"),
    _around("mailchimp-key", "-us", 32, r"[0-9a-f]{32}-us\d{1,2}"),
    _several("square-token", "sq0atp- sq0csp- sq0idp-", r"[A-Za-z0-9_-]{22,43}"),
    TokenKind(
        "square-token",
        ("EAAA",),
        # Encoded binary data may begin like this, too: it goes on for longer, or in the next line.
        re.compile(
            r"(?<![A-Za-z0-9+/]{56}[\"'\n])(?<![+/=])EAAA(?![\w-]{0,57}AAA)[A-Za-z0-9_-]{60}(?![A-Za-z0-9+/=_-])"
            r"(?![\"',\\n\s+]{1,12}[A-Za-z0-9+/]{56})"
        ),
    ),
    _several("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    _prefixed("facebook-token", "EAACEdEose0cBA", r"[A-Za-z0-9]{10,200}"),
    _prefixed("linear-key", "lin_api_", r"[A-Za-z0-9]{40}"),
    _prefixed("notion-token", "ntn_", r"[A-Za-z0-9]{40,50}"),
    _prefixed("notion-token", "secret_", r"(?=[A-Za-z]{0,42}\d)(?=[a-z0-9]{0,42}[A-Z])[A-Za-z0-9]{43}(?!_)"),
    _several("dropbox-token", "sl.u. sl.", r"[A-Za-z0-9_=-]{130,2000}"),
    _prefixed("netlify-token", "nfp_", r"[A-Za-z0-9]{36,40}"),
    _prefixed("contentful-token", "CFPAT-", r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _several("mapbox-token", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{40,400}\.[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"),
    TokenKind(
        "firebase-server-key",
        (":APA91b",),
        re.compile(r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{130,150}(?![A-Za-z0-9_-])"),
        lead=11,
    ),
    _prefixed("figma-token", "figd_", r"[A-Za-z0-9_-]{40,60}"),
    _prefixed("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _prefixed("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _prefixed("new-relic-key", "NRAK-", r"[A-Z0-9]{27}"),
    _prefixed("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    _prefixed("sentry-token", "sntrys_", r"[A-Za-z0-9+/=_]{60,400}"),
    _after("datadog-key", "dd_api_key|dd_app_key", r"dd_a.._key[\"'\s:=]{1,6}(?P<value>[0-9a-f]{32,40})" + _END),
    _prefixed("gitlab-runner-token", "GR1348941", r"[A-Za-z0-9_-]{20}(?![A-Za-z0-9_-])"),
    _after(
        "hashicorp-vault-token",
        "vault_token|x-vault-token",
        r"(?:x-)?vault.token[\"'\s:=]{1,6}(?P<value>s\.\w{24})" + _END,
    ),
    _prefixed("dynatrace-token", "dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _prefixed("typeform-token", "tfp_", r"[A-Za-z0-9]{40,50}_[A-Za-z0-9]{10,20}"),
    _prefixed("launchdarkly-key", "sdk-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _several(
        "tailscale-key", "tskey-auth- tskey-api- tskey-client- tskey-webhook-", r"[A-Za-z0-9]{6,24}-[A-Za-z0-9]{20,48}"
    ),
    _prefixed("render-key", "rnd_", r"(?=[A-Za-z]{0,27}\d)[A-Za-z0-9]{28,40}"),
    _prefixed("braintree-token", "access_token$production$", r"[0-9a-z]{16}\$[0-9a-f]{32}"),
    _prefixed("yandex-token", "y0_", r"[A-Za-z0-9_-]{40,70}(?![A-Za-z0-9_-])"),
    _prefixed("tencent-key", "AKID", r"(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}"),
    _prefixed("artifactory-reference", "cmVmdGtuOj", r"[A-Za-z0-9]{46,60}"),
    _several("asana-token", "0/1 1/1 2/1", r"\d{14,16}(?:/\d{15,17})?:[0-9a-f]{32}"),
    _after("teams-webhook", "/webhookb2/", r"/webhookb2/(?P<value>[0-9a-f-]{36}@[\w/-]{60,200})"),
    TokenKind("new-relic-key", ("NRAL",), re.compile(r"[0-9a-f]{36}NRAL" + _END), lead=36),
    _after(
        "laravel-key",
        "app_key",
        r"app_key[\"']?\s{0,3}[:=]>?\s{0,3}[\"']?(?:base64:)(?P<value>" + _B64 + r"{22,44}={0,2})",
    ),
    _several("onepassword-token", "ops_eyJ", r"[A-Za-z0-9_-]{100,2000}={0,3}"),
    _prefixed("brevo-key", "xkeysib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _prefixed("resend-key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    _several("razorpay-key", "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14}"),
    _prefixed("sourcegraph-token", "sgp_", r"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    _prefixed("posthog-key", "phx_", r"[A-Za-z0-9]{40,60}"),
    _prefixed("neon-key", "napi_", r"[a-z0-9]{60,70}"),
    # language models
    _prefixed("openrouter-key", "sk-or-v1-", r"[0-9a-f]{64}"),
    _prefixed("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{60,70}(?![A-Za-z0-9_-])"),
    _prefixed("langsmith-key", "lsv2_pt_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    _prefixed("pinecone-key", "pcsk_", r"[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}"),
    _prefixed("tavily-key", "tvly-", r"(?:dev-|prod-)?(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}"),
    _prefixed("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{24,200}"),
    _several("openai-project-key", "sk-proj- sk-svcacct- sk-admin-", r"[A-Za-z0-9_-]{40,200}"),
    _prefixed("openai-key", "sk-", r"[A-Za-z0-9]{40,64}"),
    _prefixed("huggingface-token", "hf_", r"[A-Za-z0-9]{34,40}"),
    _prefixed("groq-key", "gsk_", r"[A-Za-z0-9]{52}"),
    _prefixed("xai-key", "xai-", r"[A-Za-z0-9]{40,120}"),
    _prefixed("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,64}"),
    _prefixed("replicate-token", "r8_", r"[A-Za-z0-9]{37}"),
    # formats
    _prefixed("jwt", "eyJ", r"[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}"),
    _prefixed("age-secret-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    _after(
        "authorization-header",
        "authorization",
        r"authorization[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?:bearer|basic|token|api-?key|bot|oauth|splunk|key)\s{1,3}(?P<value>[\w+/.=-]{20,2000})",
    ),
)
