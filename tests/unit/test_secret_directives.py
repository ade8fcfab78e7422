"""Secrets behind their names with blanks between, in columns, in headers, and in the arguments of further commands."""

from __future__ import annotations

import random

import pytest

from ragpilot.ingest.secrets import redact
from ragpilot.ingest.secrets.file_names import is_secret_file
from tests.linear import assert_linear

DICE = random.Random(11)  # noqa: S311 - the tokens below open nothing
LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"
LETTERS = LOWER + LOWER[:26].upper()
HEX = "0123456789abcdef"


def some(length: int, letters: str = LETTERS) -> str:
    return "".join(DICE.choice(letters) for _ in range(length - 1)) + "7"


UUID = "-".join(some(length, HEX) for length in (8, 4, 4, 4, 12))

# What stands before a token, the token, its kind.
TOKENS = [
    ("", "GR1348941" + some(20), "gitlab-runner-token"),
    ("VAULT_TOKEN=", "s." + some(24), "hashicorp-vault-token"),
    ("", f"dt0c01.{some(24).upper()}.{some(64).upper()}", "dynatrace-token"),
    ("", f"tfp_{some(44)}_{some(14)}", "typeform-token"),
    ("", "sdk-" + UUID, "launchdarkly-key"),
    ("", f"tskey-auth-{some(16)}-{some(32)}", "tailscale-key"),
    ("", "rnd_" + some(28), "render-key"),
    ("", f"access_token$production${some(16, LOWER)}${some(32, HEX)}", "braintree-token"),
    ("OAuth ", "y0_" + some(55), "yandex-token"),
    ("", "AKID" + some(32), "tencent-key"),
    ("", "cmVmdGtuOj" + some(54), "artifactory-reference"),
    ("ASANA_PAT=", "1/1204567890123456:" + some(32, HEX), "asana-token"),
    (
        "https://x.webhook.office.com/webhookb2/",
        f"{UUID}@{UUID}/IncomingWebhook/{some(32, HEX)}/{UUID}",
        "teams-webhook",
    ),
    ("license_key: ", some(36, HEX) + "NRAL", "new-relic-key"),
    ("APP_KEY=base64:", some(43) + "=", "laravel-key"),
    ("", "ops_eyJ" + some(300), "onepassword-token"),
    ("", f"xkeysib-{some(64, HEX)}-{some(16)}", "brevo-key"),
    ("", f"re_{some(8)}_{some(24)}", "resend-key"),
    ("", "rzp_live_" + some(14), "razorpay-key"),
    ("", "sgp_" + some(40, HEX), "sourcegraph-token"),
    ("", "phx_" + some(43), "posthog-key"),
    ("", "napi_" + some(64, LOWER), "neon-key"),
    ("", "sk-or-v1-" + some(64, HEX), "openrouter-key"),
    ("", "nvapi-" + some(64), "nvidia-key"),
    ("", f"lsv2_pt_{some(32, HEX)}_{some(10, HEX)}", "langsmith-key"),
    ("", f"pcsk_{some(6)}_{some(60)}", "pinecone-key"),
    ("", "tvly-" + some(32), "tavily-key"),
    ("Authorization: ApiKey ", some(32), "authorization-header"),
    ("Cookie: theme=dark; sid=", some(32), "session-cookie"),
    ("Set-Cookie: session=", some(32), "session-cookie"),
]


@pytest.mark.parametrize(("before", "token", "kind"), TOKENS, ids=[f"{at}-{row[2]}" for at, row in enumerate(TOKENS)])
def test_tokens_are_replaced_and_nothing_else_is(before: str, token: str, kind: str) -> None:
    assert redact(f"first\n{before}{token}\nlast\n") == (f"first\n{before}[redacted:{kind}]\nlast\n", (kind,))


P = "hunt3r2Ya"
L = "Zx81kQ02mNpLL9Q7wBv3"

FOUND = [
    # behind a name, with nothing between but blanks
    *(f'#define WIFI_PASSWORD "%{P}%"', f'  # define API_TOKEN  "%{L}%"', f"    keyPassword '%{P}%'"),
    *(f'storePassword "%{P}%"', f"credentials {{ username 'x'; password '%{P}%' }}", f'(setq db-password "%{P}%")'),
    *(f'(def db {{:user "x" :password "%{P}%"}})', f"set -x GITHUB_TOKEN %{L}%", f"setenv DB_PASSWORD '%{P}%'"),
    *(f"setx API_TOKEN %{L}%", "bindpw %letmein%", "requirepass %letmein%", "masterauth %letmein%\n"),
    *("  user admin insecure-password %letmein%", "stats auth admin:%letmein%"),
    # in columns, as formatters write them
    *(f'\tPassword:          "%{P}%",', f'  master_password          = "%{P}%"', f'password:               "%{P}%"'),
    f"db:\n  password:                  %{P}%\n",
    # with a type between, in other words for it, behind a mark of a comment
    *(f'val password: String? = "%{P}%"', f'let password: &\'static str = "%{P}%";'),
    *(f"private password: string | undefined = '%{P}%';", f'password: Optional[str] = "%{P}%"'),
    *(f'Dim password As String = "%{P}%"', f'passwort = "%{P}%"', f'senha: "%{P}%"', f"pass_phrase=%{P}%"),
    *(f'network={{\n  psk="%{P}%"\n}}', f"[db]\n; password = %{P}%\n", f"[db]\n# password = %{P}%\n"),
    # keys of further names
    *(f'hmac_key = "%{L}%"', f'licenseKey: "%{L}%"', f"DEPLOY_KEY=%{L}%", f"'X-RapidAPI-Key': '%{L}%'"),
    *(f"'Ocp-Apim-Subscription-Key': '%{L}%'", f'"x-functions-key": "%{L}%"', f'storage_key = "%{L}%"'),
    # given to a name in a call or a pair, escaped, in a listing, in text
    *(f'System.setProperty("javax.net.ssl.keyStorePassword", "%{L}%");', f"headers.set('X-Api-Key', '%{L}%');"),
    *(f'm = {{{{"password", "%{L}%"}}}};', rf'"{{\"password\": \"%{P}%\"}}"', f"Run `API_TOKEN=%{L}%` first."),
    *(f"<key>ApiKey</key>\n\t<string>%{L}%</string>", f"aws_session_token = %{L * 20}%"),
    f"NPM_TOKEN=%{'HHtCQfrzsCShCOEUZlWHjaRixFHQpNxHvZyq'}%",
    # commands
    *(f'ConvertTo-SecureString "%{P}%" -AsPlainText -Force', f"mosquitto_pub -u u -P %{P}% -t x"),
    *(f"kubectl create secret generic a --from-literal=password=%{P}%", f"plink -ssh -pw %{P}% u@h"),
    *(f"oc create secret generic a \\\n  --from-literal=pw='%{P}%'", f"sqlplus scott/%{P}%@orcl", f"lftp -u u,%{P}% h"),
    *(f"curl -F password=%{P}% https://example.org", f'curl -d "user=u&password=%{P}%" https://example.org'),
    *(f"curl -d a=1 -u u:%{P}% https://example.org", f'dotnet user-secrets set "Db:Password" "%{P}%"'),
    *(f"dotnet nuget push x.nupkg --api-key %{L}%", f"twine upload -u x -p %{P}% dist/*", f"cargo login %{L}%"),
    *(f"npm config set //registry.example.org/:_authToken %{L}%", f"poetry config pypi-token.pypi %{L}%"),
    *(f"composer config --global http-basic.example.org u %{P}%", f'gh secret set A --body "%{L}%"'),
    f"CREATE DATABASE LINK a CONNECT TO b IDENTIFIED BY \"%{P}%\" USING 'c';",
    *(f"CREATE USER x IDENTIFIED BY %{P}%;", f'alter user x identified by "%{P}%" account unlock;'),
]


@pytest.mark.parametrize("text", FOUND)
def test_secrets_are_replaced_by_what_they_stand_behind(text: str) -> None:
    before, secret, behind = text.split("%")
    redacted, kinds = redact(before + secret + behind)
    assert len(kinds) == 1
    assert redacted == f"{before}[redacted:{kinds[0]}]{behind}"


HARMLESS = [
    *("#define PASSWORD_MAX_LEN 64", '#define TOKEN_STRING "string_v2"', '#define PASSWORD_PROMPT "Password:"'),
    *('#define SECRET_FILE "/etc/secret2"', "keyAlias 'upload2'", 'storeFile file("keystore2.jks")'),
    *("attr_accessor :password, :confirmation2", ":token :string", 'it "token v2" do', 'msgid "password1"'),
    *("set token value", "setenv TOKEN $OTHER", "Dim password As String = txtPassword1.Text", "psk: wpa2"),
    *("ConvertTo-SecureString $plain -AsPlainText", 'ConvertTo-SecureString "$env:PW" -AsPlainText'),
    *('kubectl create secret generic x --from-literal=a="${PW}"', "kubectl create configmap x --from-literal=a=blue1"),
    *("kubectl get secret x -o yaml", "mosquitto_pub -P $PW", "sqlplus $USER/$PW@db", "lftp -u user,$PASS host"),
    *("cargo login", "npm config set registry https://registry.example.org/", 'curl -d "password=$PW" https://x.org'),
    *('app_key = "orders.v2"', "app_key: my-app-key-1", 'service_key = "billing_service_v2"', 'ssh_key = "~/.ssh/id2"'),
    *('const STORAGE_KEY = "todos-vuejs-2.0";', 'license_key = "MIT"', 'admin_key = "admin:users:2"'),
    *('password_hash_algorithm = "pbkdf2_sha256"', "; password is asked for at the start", "Cookie: theme=dark; n=12"),
    *('f("token", "abc123def")', 'lookup("password", "field2")', "Cookie: session=<id>", "identified by their name2"),
    *("# a user is identified by group_id\n", "identified by sub9claim;", '"A_HMAC_KEY",\n"TR31_P0_PIN_KEY",'),
    *("IDENTIFIED BY values", "requirepass", "stats auth", "Authorization: Key words of this chapter are these"),
    '\telse if (!strcmp(host = buf, "password"))\n\t\tpassword = xstrdup(v);\n',
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_near_stays(text: str) -> None:
    assert redact(text) == (text, ())


@pytest.mark.parametrize(
    "part",
    [
        *(
            '#define A_PASSWORD "',
            ":password ",
            "set A_TOKEN ",
            "Cookie: a=",
            "kubectl secret --from-literal=a=",
            "{ pw ",
        ),
        *("password: a b c d ", "password    ", "<key>a</key>", "identified by a ", "curl -d a=1&", "token\\"),
    ],
)
def test_time_is_linear(part: str) -> None:
    assert_linear(redact, part * (500_000 // len(part)))


@pytest.mark.parametrize(
    "path",
    [
        *(".env~", "id_rsa~", "certs/server.key.bak", "tls.pem.orig", ".npmrc.old", ".netrc~", ".env.local.bak.2"),
        *(".ssh/id_work", "home/.ssh/deploy", "etc/shadow", "kubeconfig-prod", "prod.kubeconfig", ".vault-pass"),
        *("credentials.prod.json", "credentials-production.yml", "secrets.prod.json", "secrets.staging.yaml"),
        *("prod-secrets.yaml", ".vscode/sftp.json", "sitemanager.xml", "local.settings.json", "android/key.properties"),
        *(".dockerconfigjson", "vault-password.txt", ".erlang.cookie", "cookies.txt", "aws-credentials"),
    ],
)
def test_further_files_that_hold_secrets(path: str) -> None:
    assert is_secret_file(path)


@pytest.mark.parametrize(
    "path",
    [
        *("chart/templates/secret.yaml", "chart/templates/secrets.yml", ".ssh/config", ".ssh/known_hosts"),
        *(
            ".ssh/id_work.pub",
            "sealed-secret.yaml",
            "external-secret.yaml",
            "docs/kubeconfig-setup.md",
            "src/shadow.css",
        ),
        *("src/old/keys.md", "notes.old", "env.py~", "tokens.json.bak", "credentials.example.json.bak", "release-2"),
    ],
)
def test_further_files_that_do_not(path: str) -> None:
    assert not is_secret_file(path)
