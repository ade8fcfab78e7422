"""Secrets: files by name, tokens by shape, assignments by what they look like; and nothing else."""

from __future__ import annotations

import base64
import random
import re
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.ingest import secrets
from ragpilot.ingest.secrets import redact
from ragpilot.ingest.secrets.file_names import is_secret_file
from ragpilot.ingest.secrets.token_kinds import TOKEN_KINDS
from tests.linear import assert_linear

DICE = random.Random(7)  # noqa: S311 - the tokens below open nothing
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def some(length: int, letters: str = LETTERS) -> str:
    return "".join(DICE.choice(letters) for _ in range(length))


HEX = "0123456789abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

# Put together here, so that no scanner takes this file for a leak.
TOKENS: list[tuple[str, str]] = [
    ("aws-access-key", "AKIA" + some(16, UPPER)),
    ("aws-secret-key", "aws_secret_access_key = " + some(40)),
    ("aws-mws-key", "amzn.mws.4ea38b7b-f563-7709-4bae-87aea15c8f9a"),
    ("google-api-key", "AIza" + some(35)),
    ("google-oauth-token", "ya29." + some(60)),
    ("google-oauth-secret", "GOCSPX-" + some(28)),
    ("azure-storage-key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + some(86) + "=="),
    ("azure-sas", "https://x.blob.core.windows.net/c?sv=2020&sig=" + some(43) + "%3D"),
    ("azure-connection-key", "Endpoint=sb://x/;SharedAccessKey=" + some(43) + "="),
    ("azure-client-secret", "abc8Q~" + some(33)),
    ("digitalocean-token", "dop_v1_" + some(64, HEX)),
    ("alibaba-access-key", "LTAI" + some(20)),
    ("databricks-token", "dapi" + some(32, HEX)),
    ("hashicorp-vault-token", "hvs." + some(90)),
    ("hashicorp-terraform-token", some(14) + ".atlasv1." + some(64)),
    ("doppler-token", "dp.pt." + some(43)),
    ("pulumi-token", "pul-" + some(40, HEX)),
    ("github-token", "ghp_" + some(36)),
    ("github-fine-grained-token", "github_pat_" + some(22) + "_" + some(59)),
    ("gitlab-token", "glpat-" + some(20)),
    ("gitlab-other-token", "glrt-" + some(20)),
    ("bitbucket-token", "ATBB" + some(32)),
    ("atlassian-token", "ATATT3" + some(180)),
    ("npm-token", "npm_" + some(36)),
    ("npm-auth-token", "//registry.example.org/:_authToken=" + some(36)),
    ("pypi-token", "pypi-AgE" + some(120)),
    ("rubygems-key", "rubygems_" + some(48, HEX)),
    ("docker-hub-token", "dckr_pat_" + some(27)),
    ("artifactory-key", "AKCp" + some(69)),
    ("slack-token", "xoxb-123456789012-" + some(24)),
    ("slack-webhook", "https://hooks.slack.com/services/T0000/B0000/" + some(24)),
    ("discord-webhook", "https://discord.com/api/webhooks/123456789012345678/" + some(68)),
    ("telegram-token", "1234567890:AA" + some(33)),
    ("stripe-key", "sk_live_" + some(24)),
    ("stripe-webhook-secret", "whsec_" + some(32)),
    ("twilio-key", "SK" + some(32, HEX)),
    ("sendgrid-key", "SG." + some(22) + "." + some(43)),
    ("mailgun-key", "key-" + some(32, HEX)),
    ("mailchimp-key", some(32, HEX) + "-us12"),
    ("square-token", "sq0atp-" + some(22)),
    ("shopify-token", "shpat_" + some(32, HEX)),
    ("square-token", "EAAA" + some(59) + "7"),
    ("notion-token", "secret_" + some(41) + "Q7"),
    ("notion-token", "ntn_" + some(46)),
    ("flyio-token", "fo1_" + some(43)),
    ("flyio-token", "FlyV1 fm2_" + some(200)),
    ("flyio-token", "fm2_" + some(200)),
    ("dropbox-token", "sl." + some(137)),
    ("dropbox-token", "sl.u." + some(1200)),
    ("netlify-token", "nfp_" + some(36)),
    ("contentful-token", "CFPAT-" + some(43)),
    ("mapbox-token", "sk.eyJ" + some(70) + "." + some(22)),
    ("firebase-server-key", "AAAA" + some(7) + ":APA91b" + some(134)),
    ("linear-key", "lin_api_" + some(40)),
    ("postman-key", "PMAK-" + some(24, HEX) + "-" + some(34, HEX)),
    ("new-relic-key", "NRAK-" + some(27, UPPER)),
    ("grafana-token", "glsa_" + some(32) + "_" + some(8, HEX)),
    ("datadog-key", "DD_API_KEY=" + some(32, HEX)),
    ("anthropic-key", "sk-ant-api03-" + some(90)),
    ("openai-project-key", "sk-proj-" + some(120)),
    ("openai-key", "sk-" + some(48)),
    ("huggingface-token", "hf_" + some(34, LETTERS[:52])),
    ("groq-key", "gsk_" + some(52)),
    ("jwt", "eyJ" + some(33) + ".eyJ" + some(60) + "." + some(43)),
    ("age-secret-key", "AGE-SECRET-KEY-1" + some(58, UPPER)),
    ("authorization-header", "curl -H 'Authorization: Bearer " + some(40) + "'"),
    ("url-password", "postgres://app:kr4kenR0ck@db.example.org/x"),
    ("url-password", "redis://:p4ssF0rRedis@cache:6379/0"),
    ("url-password", "https://user:kj3h4kj3h4@git.example.org/x.git"),
    ("connection-password", '"Server=db;Database=x;User Id=sa;Password=Tr0ub4dor&3;"'),
    ("assigned-secret", 'password = "Sup3rS3cret!x"'),
    ("assigned-secret", "DB_PASSWORD=kJ8" + "kmQ2pX9zR"),
    ("assigned-secret", "DB_PASSWORD=aabb" + "ccDD33ee4F5G"),  # by chance, with characters that come twice
    ("assigned-secret", 'config["api_key"] = "' + some(24) + '1"'),
    ("assigned-secret", "define('AUTH_KEY', '" + some(40) + "9');"),
    ("assigned-secret", 'private val apiKey: String = "' + some(32, HEX) + '"'),
    ("assigned-secret", '<add key="ApiKey" value="' + some(32, HEX) + '" />'),
    ("assigned-secret", "clientSecret: '" + some(30) + "7',"),
    ("assigned-secret", 'var ClientSecret = @"' + some(31) + '7";'),
    ("assigned-secret", "HEROKU_API_KEY=" + "7f3e1c52-9d4b-4a86-b0c7-" + some(12, HEX)),
    ("assigned-secret", "API_KEY=" + some(27, LETTERS[:26]) + "70218"),
    ("assigned-secret", 'ENCRYPTION_KEY = bytes.fromhex("' + some(64, HEX) + '")'),
    ("assigned-secret", 'signing_key = SecretStr(b64decode("' + some(39) + '7="))'),
    ("assigned-secret", 'byte[] secretKey = Convert.FromBase64String("' + some(43) + '7");'),
    ("discord-token", "bot.run('MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ." + some(26) + "z7')"),
    ("supabase-token", "sbp_" + some(40, HEX)),
    ("planetscale-token", "pscale_tkn_" + some(43)),
    ("huggingface-token", "hf_" + some(33) + "7"),
    ("xai-key", "xai-" + some(80)),
    ("perplexity-key", "pplx-" + some(48)),
]


@pytest.mark.parametrize(("kind", "line"), TOKENS, ids=[f"{kind}-{at}" for at, (kind, _) in enumerate(TOKENS)])
def test_tokens_are_replaced(kind: str, line: str) -> None:
    redacted, kinds = redact(f"before\n{line}\nafter\n")
    assert kinds == (kind,)
    before, middle, after, _ = redacted.split("\n")
    assert (before, after) == ("before", "after")
    assert f"[redacted:{kind}]" in middle
    secret = max(line.replace("'", " ").replace('"', " ").replace("@", " ").replace("=", " ").split(), key=len)
    assert secret[-12:] not in middle


# A password that is a plain word or short counts where nothing but a password can stand.
PLACES: list[tuple[str, str]] = [
    ("command-password", "curl -u admin:letmein https://api.example.org"),
    ("command-password", "curl -fsSLuadmin:letmein https://api.example.org"),
    ("command-password", "  - run: curl -X POST --user 'ann:letmein' https://api.example.org"),
    ("command-password", 'subprocess.run(["curl", "-u", "admin:letmein", url])'),
    ("command-password", "curl \\\n  -u admin:letmein \\\n  https://api.example.org"),
    ("command-password", "mysql -u root -pletmein shop"),
    ("command-password", "mysqldump --user=root --password=letmein shop > shop.sql"),
    ("command-password", "psql --password=ab1x"),
    ("command-password", "deploy --db-password letmein --host db"),
    ("command-password", "deploy --password 'letmein'"),
    ("command-password", 'args = ["--password", "letmein"]'),
    ("command-password", "docker login -u ann -p letmein registry.example.org"),
    ("command-password", "sshpass -pletmein ssh ann@host"),
    ("command-password", "redis-cli -h cache -a letmein ping"),
    ("command-password", "ldapsearch -x -D cn=admin -w letmein"),
    ("command-password", "sqlcmd -S db -U sa -P letmein"),
    ("command-password", "keytool -genkey -storepass letmein"),
    ("command-password", "openssl pkcs12 -passin pass:letmein -in a.p12"),
    ("command-password", "smbclient //host/share -U ann%letmein"),
    ("command-password", "java -Dspring.datasource.password=letmein -jar shop.jar"),
    ("command-password", 'echo "root:letmein" | chpasswd'),
    ("command-password", "echo letmein | docker login -u ann --password-stdin"),
    ("environment-password", "PGPASSWORD=letmein psql -h db"),
    ("environment-password", "export MYSQL_PWD='letmein'"),
    ("environment-password", "  MYSQL_ROOT_PASSWORD: letmein"),
    ("environment-password", "      - POSTGRES_PASSWORD=letmein"),
    ("environment-password", "ENV MYSQL_ROOT_PASSWORD letmein"),
    ("environment-password", 'os.environ["PGPASSWORD"] = "letmein"'),
    ("environment-password", "- name: MYSQL_ROOT_PASSWORD\n  value: letmein"),
    ("environment-password", "SHOP_PASSWORD=letme1n"),
    ("sql-password", "CREATE USER ann WITH PASSWORD 'letmein';"),
    ("sql-password", "ALTER USER 'root'@'localhost' IDENTIFIED BY 'letmein';"),
    ("sql-password", "create login ann with password = N'letmein'"),
    ("netrc-password", "machine db.example.org login ann password letmein"),
    ("auth-password", 'requests.get(url, auth=("ann", "letme1n"))'),
    ("authorization-header", "-H 'Authorization: Basic YW5uOmxldG1laW4='"),
    ("registry-auth", '{"auths": {"registry.example.org": {"auth": "YW5uOmxldG1laW4="}}}'),
    ("registry-auth", "auths:\n  registry.example.org:\n    auth: YW5uOmxldG1laW4=\n"),
    ("assigned-secret", 'password = "letme1n"'),
    ("assigned-secret", '"source": ["password = \\"letme1n\\"\\n"]'),
    ("assigned-secret", 'set imap_pass="letme1n"'),
    ("command-password", '"mkdir a\\ncurl -u \\"ann:letmein\\" https://api.example.org"'),
    ("environment-password", '"source": ["export PGPASSWORD=letmein\\n"]'),
    ("option-file-password", "[client]\nuser = ann\npassword = letmein"),
]


@pytest.mark.parametrize(("kind", "text"), PLACES, ids=[f"{kind}-{at}" for at, (kind, _) in enumerate(PLACES)])
def test_passwords_are_replaced_where_nothing_else_can_stand(kind: str, text: str) -> None:
    redacted, kinds = redact(text)
    assert kinds == (kind,)
    secret = re.search(r"letme[i1]n|ab1x|YW5uOmxldG1laW4=", text)
    assert secret is not None
    assert redacted == text.replace(secret[0], f"[redacted:{kind}]")


def test_there_are_many_kinds() -> None:
    assert len({kind.name for kind in TOKEN_KINDS}) >= 60
    assert len({kind for kind, _ in TOKENS}) >= 50


KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *(some(64) for _ in range(12)), "-----END RSA PRIVATE KEY-----"])


@pytest.mark.parametrize(
    "text",
    [
        f"key = '''\n{KEY}\n'''\nlast\n",
        "\n".join("    " + line for line in KEY.split("\n")) + "\nlast\n",
        '{"key": "' + KEY.replace("\n", "\\n") + '"}\nlast\n',
        KEY.rsplit("\n", 1)[0] + "\nlast\n",
        KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK") + "\nlast\n",
    ],
    ids=["plain", "indented", "json", "end missing", "pgp"],
)
def test_private_keys_are_replaced_line_for_line(text: str) -> None:
    redacted, kinds = redact(text)
    assert kinds == ("private-key",)
    assert redacted.count("\n") == text.count("\n")
    assert redacted.endswith("\nlast\n")
    body = [line.strip() for line in KEY.split("\n")[1:-1]]
    assert not any(line in redacted for line in body)


HARMLESS = """
BEGIN = "-----BEGIN PRIVATE KEY-----"
if not text.startswith("-----BEGIN RSA PRIVATE KEY-----"): raise ValueError
password = os.environ["DB_PASSWORD"]
password: str = Field(default="", min_length=8)
token = request.headers.get("Authorization")
secret_name = "projects/my-project/secrets/db2"
SECRET_KEY_ENV_VAR = "RAGPILOT_API_KEY_2"
api_key = settings.services.search.api_key_v2
token_type = "Bearer2024x"
DATABASE_URL = "postgres://user:password@localhost/db"
DATABASE_URL = "postgres://${USER}:${PASSWORD}@host/db"
url = f"https://{user}:{password}@example.org"
password = "<your-password-1>"
password = "changeme123"
api_key = "YOUR_API_KEY_1"
passwordField.value = "••••••••"
tokenizer = "cl100k_base_v2_x"
author_token_symbol = "TokenKind.IdentifierOrKeyword12"
secretSantaGreeting = "Welcome2024ToTheSecretSantaParty"
accessTokenStyle = "modules/accounts2/TokenTable.module.css"
token = read_token("accounts/primary2024")
secret = client.access_secret_version("projects/shop-1/secrets/payments-2")
api_key = os.getenv("SHOP_API_KEY_2")
"auth": "Bearer"
auth: basicauth
ModuleNamesOfTheLanguage9x.config.AnotherVeryLongNameOfAFunction
TOKEN = "[a-zA-Z_][a-zA-Z0-9_-]*"
secrets: inherit
password: ${{ secrets.DEPLOY_PASSWORD_2 }}
credentials = service_account.Credentials.from_file(path)
commit = "3f786850e387550fdab836ed7e6dc881de23001b"
sha256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
uuid = "123e4567-e89b-12d3-a456-426614174000"
publicKeyToken="b77a5c561934e089"
key-value pairs and sk-learn, task-1234567890123456789012345678901234567890
ssh://git@github.com:22/org/repo.git
http://[::1]:8080/@scope/package
curl -u user:pass https://api.example.org
curl -u "$USER:$PASSWORD" https://api.example.org
curl -u <user>:<password> https://api.example.org
curl -u $TOKEN: https://api.example.org
mysql -u root -p shop
mysql -uroot -p$MYSQL_PWD shop
mkdir -p a/b && docker run -p 8080:80 mysql
docker login -u $USER -p $PASSWORD
tool --password=<password>
tool --password=PASSWORD
tool --password="${PASSWORD}"
tool [--user USER] [--password PASSWORD]
  --password VALUE   the password of the database
The --password option is required unless --token is given.
Use --password instead, or --token.
parser.add_argument("--password", help="of the database")
parser.add_argument("--password", default=None)
PGPASSWORD=$PGPASSWORD psql
POSTGRES_PASSWORD=changeme
POSTGRES_PASSWORD: postgres
POSTGRES_PASSWORD: ${{ secrets.DATABASE }}
DB_PASSWORD = os.environ["DB_PASSWORD"]
DB_PASSWORD = read_password()
System.setProperty("MYSQL_PASSWORD", dbPassword);
os.environ["PGPASSWORD"] = word
RESET_PASSWORD = "reset"
ENABLE_PASSWORD=true
ERROR_WRONG_PASSWORD=1045
OLDPWD=/home/ann
CREATE USER ann WITH PASSWORD '<password>';
session.get(url, auth=(name, password))
session.get(url, auth=("user", "pass"))
Authorization: Basic authentication
echo $PASSWORD | docker login --password-stdin
"""


def test_ordinary_code_stays_as_it_is() -> None:
    for line in HARMLESS.splitlines():
        assert redact(line) == (line, ())
    assert redact(HARMLESS) == (HARMLESS, ())


def test_false_alarms_are_rare_in_real_code() -> None:
    """In this project and some of its dependencies: a handful of files, all of them with sample URLs."""
    packages = Path(sysconfig.get_paths()["purelib"])
    project = Path(__file__).parents[2]
    roots = [project / "ragpilot", project / "server", packages / "httpx", packages / "pydantic", packages / "click"]
    roots += [packages / "quart", packages / "rich", packages / "pathspec"]
    files = [file for root in roots for file in root.rglob("*.py")]
    alarms = [str(file) for file in files if redact(file.read_text("utf-8"))[1]]
    assert len(files) > 300
    assert len(alarms) <= 3, alarms


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_lines_never_move(text: str) -> None:
    assert redact(text)[0].count("\n") == text.count("\n")


def test_what_overlaps_is_replaced_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "find_in_files", lambda _: iter([(2, 8, "later"), (0, 4, "first"), (0, 3, "shorter")]))
    assert redact("0123456789") == ("[redacted:first]89", ("first",))


def test_redacting_twice_changes_nothing() -> None:
    once, kinds = redact("\n".join(line for _, line in TOKENS))
    assert kinds
    assert redact(once) == (once, ())


SIZE = 500_000
HOSTILE = {
    "one letter": "a" * SIZE,
    "base64": base64.b64encode(random.Random(1).randbytes(SIZE)).decode()[:SIZE],  # noqa: S311
    "base64 lines": base64.encodebytes(random.Random(2).randbytes(SIZE)).decode()[:SIZE],  # noqa: S311
    "spaces": " " * SIZE,
    "half tokens": "eyJ." * (SIZE // 4),
    "half keys": "-----BEGIN PRIVATE KEY-----\n" * (SIZE // 28),
    "half assignments": "token='" * (SIZE // 7),
    "half urls": "://a:b" * (SIZE // 6),
    "names": "password" * (SIZE // 8),
    "an open string": 'secret="' + "a1" * (SIZE // 2),
    "dots": "MNO." * (SIZE // 4),
    "commands": "curl -u a " * (SIZE // 10),
    "commands without blanks": "curl/" * (SIZE // 5),
    "options": "--password a " * (SIZE // 13),
    "dashes": "-a" * (SIZE // 2),
    "variables": "MY_PASS" * (SIZE // 7),
    "statements": "create user " * (SIZE // 12),
    "machines": "machine a login a " * (SIZE // 18),
    "echoes": "echo a | " * (SIZE // 9),
    "continued lines": "curl \\\n" * (SIZE // 7),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear(name: str) -> None:
    assert_linear(redact, HOSTILE[name])


# --- names


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "a/.env.production", ".env.local", ".ENV", "prod.env", ".envrc", "café/.env.local", ".env.test"),
        *("id_rsa", ".ssh/id_ed25519", "id_rsa.bak", "server.pem", "tls.key", "app.p12", "release.jks", "x.ppk"),
        *("credentials.json", "config/credentials.yml.enc", "my-credentials.json", "client_secret_12.json", ".npmrc"),
        *(".netrc", ".pypirc", ".git-credentials", ".aws/credentials", ".aws/config", ".docker/config.json", ".pgpass"),
        *(
            "secrets.yaml",
            "config/secrets.toml",
            "service-account.json",
            "service-account-prod.json",
            ".dev.vars",
            "x-firebase-adminsdk-y.json",
            "prod.tfvars",
        ),
        *(
            "terraform.tfstate",
            "terraform.tfstate.backup",
            ".htpasswd",
            "auth/htpasswd",
            ".htpasswd.prod",
            "vault.kdbx",
            ".bash_history",
            "kubeconfig",
        ),
    ],
)
def test_files_that_hold_secrets(path: str) -> None:
    assert is_secret_file(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".env.example", ".env.sample", "a/.env.template", ".env.dist", "env.ts", "env.py", "example.env", "env.d.ts"),
        *("id_rsa.pub", "secrets.py", "credentials.go", "tokens.json", "key.ts", "src/secrets/manager.py", "auth.json"),
        *(
            "environment.ts",
            "keys.md",
            "credentials.example.json",
            "docker/config.json",
            "password_reset.html",
            "htpasswd.c",
        ),
    ],
)
def test_files_that_do_not(path: str) -> None:
    assert not is_secret_file(path)
