"""Secrets by their form: connection strings, code, manifests, settings, statements; and what only looks like them."""

from __future__ import annotations

import base64
import json
import random

import pytest

from ragpilot.ingest.secrets import redact
from tests.linear import assert_linear

S = "Zx81kQ02mNpLL"  # what is looked for; it opens nothing
LONG = "Zx81kQ02mNpLL9Q7w"
PLAIN = "letmein"
HASH = "yTqPZ1xaZx81kQ02mNpLLa"

CONNECTIONS = [
    f'dsn = "host=db user=app password={S} dbname=x"',
    f'conn = psycopg2.connect("dbname=shop user=app password={S} host=db")',
    f'connect("host=db password={S}")',
    f"dsn = \"host=db password='{S}' user=app\"",
    f'dsn = "host=db user=app password={PLAIN}"',
    f'sql.Open("postgres", "user=app password={PLAIN} dbname=x sslmode=disable")',
    f'dsn = ("host=db user=app "\n       "password={PLAIN} dbname=x")',
    f'dsn := "host=db " +\n\t"password={PLAIN}"',
    f"psql 'host=db password={PLAIN} user=app'",
    f"spring.datasource.url=jdbc:postgresql://db/shop?user=app&password={PLAIN}",
    f'url = "jdbc:mysql://h/db?user=r&password={S}"',
    f'url = "jdbc:mysql://h/db?password={PLAIN}&useSSL=false"',
    f"<url>jdbc:mysql://h/db?user=r&amp;password={PLAIN}</url>",
    f'"jdbc:sqlserver://h:1433;databaseName=x;user=sa;password={S};encrypt=true"',
    f'"jdbc:oracle:thin:scott/{S}@//h:1521/x"',
    f'"jdbc:oracle:oci:scott/{S}@h"',
    f'"postgresql+psycopg://db/shop?user=u&password={PLAIN}"',
    f'curl -d "user=ann&password={S}" https://api.example.org/login',
    f'"Server=db;Database=x;User Id=sa;Password={S};"',
    f'"Driver={{ODBC Driver 18}};Server=db;Uid=sa;Pwd={S};"',
]

CODE = [
    f'ds.setPassword("{PLAIN}");',
    f'config.set_password("{PLAIN}")',
    f'ds.setDbPassword("{PLAIN}");',
    f'new User("bob").withPassword("{PLAIN}");',
    f'Credentials.builder().password("{S}").build()',
    f'store.setPassword("{PLAIN}".toCharArray());',
    f'@Value("${{db.password:{PLAIN}}}") String p;',
    f"password: ${{DB_PASSWORD:{PLAIN}}}",
    f"export PW=${{DB_PASSWORD:-{PLAIN}}}",
    f"secret: ${{JWT_SECRET:{S}}}",
    f'if password == "{S}": pass',
    f'if (user.password === "{S}") {{',
    f'if (password.equals("{S}")) {{',
    f'if ("{S}".equals(password)) {{',
    f'if (password.equalsIgnoreCase("{S}")) {{',
    f'return "{S}" == user.password',
    f'hmac.compare_digest(password, "{S}")',
    f'if (strcmp(password, "{S}") == 0)',
    f'password = """{S}"""',
    f"password = '''{S}'''",
    f'password = (\n    "{S}"\n)',
    f'{{"password": ("{S}")}}',
    f'PASSWORDS = ["{S}", "{S}"]',
    f'PASSWORDS = [\n    "{S}",  # of ann\n    "{S}",\n]',
    f'PASSWORDS: list[str] = ["{S}"]',
    f'PASSWORDS = {{"ann": "{S}", "bob": "{S}"}}',
    f'passwords := []string{{"{S}"}}',
    f'String[] PASSWORDS = {{"{S}"}};',
    f'val passwords = listOf("{S}", "{S}")',
    f"const passwords: string[] = ['{S}']",
    f"passwords:\n  - {S}\n  - {S}\n",
    f'API_KEYS = ["{LONG}", "{LONG}"]',
]

FILES = [
    f'variable "db_password" {{\n  type    = string\n  default = "{PLAIN}"\n}}',
    f'variable "db_password" {{ default = "{PLAIN}" }}',
    f'variable "api_token" {{\n  description = "of {{x}}"\n  default     = "{S}"\n}}',
    f"define('AUTH_KEY', '{S}');",
    f"define( 'SECURE_AUTH_SALT',  '{S}' );",
    f"NONCE_SALT='{S}'",
    f'npmAuthIdent: "{PLAIN}"',
    f"npmAuthToken: {PLAIN}",
    f'{{"github-oauth": {{"github.com": "{S}"}}}}',
    f'{{"gitlab-token": {{"gitlab.example.org": "{S}", "b.example.org": "{S}"}}}}',
    f'{{"http-basic": {{"repo.example.org": {{"username": "u", "password": "{PLAIN}"}}}}}}',
    f"composer config -g github-oauth.github.com {S}",
    f'curl --header "Cookie: session={S}" https://api.example.org',
    f"curl -H 'Cookie: a=1; sid={S}; lang=en' https://api.example.org",
    f'curl -b "session={S}" https://api.example.org',
    f"curl --cookie 'lang=en; session={S}' https://api.example.org",
    f"http GET https://api.example.org Cookie:session={S}",
    f'subprocess.run(["curl", "-H", "Cookie: session={S}", url])',
    f'curl -H "Authorization: {S}" https://api.example.org',
    f"curl -H Authorization:{S} https://api.example.org",
    "INSERT INTO users (id, password) VALUES\n  (1, 'letmein'),\n  -- ann's\n  (2, 'letmein');",
    "execute(\"INSERT INTO users (name, password) \"\n    \"VALUES ('ann', 'letmein')\")",
    '$sql = \'INSERT INTO users (name, password) VALUES ("ann", "letmein")\';',
    "INSERT INTO users SET name = 'ann', password = 'letmein';",
    "UPDATE users SET password = 'letmein' WHERE id = 1;",
    "UPDATE `users` SET name = 'ann; bob', user_pass='letmein' WHERE id = 1;",
    f'curl -H "Authorization: Token token={S}" https://api.example.org',
    f'curl -H "X-Auth-Token: {S}" https://api.example.org',
    "INSERT INTO users (email, password) VALUES ('a@example.org', 'letmein');",
    "insert into `shop`.`users` (`password`, `name`) values ('letmein', 'it''s'), ('letmein', NULL);",
    "INSERT INTO users (id, pw, user_pass) VALUES (1, now(), MD5('letmein'))",
    "INSERT INTO users (name, password) VALUES ('ann', crypt('letmein', gen_salt('bf')));",
    "INSERT INTO clients (id, api_token) VALUES (DEFAULT, 'Zx81kQ02mNpLL');",
]


@pytest.mark.parametrize("text", CONNECTIONS + CODE + FILES)
def test_secrets_are_replaced_by_their_form(text: str) -> None:
    redacted, kinds = redact(text)
    secret = next(secret for secret in (LONG, S, PLAIN) if secret in text)
    assert len(kinds) == 1
    assert redacted == text.replace(secret, f"[redacted:{kinds[0]}]")
    assert redact(redacted) == (redacted, ())


@pytest.mark.parametrize(
    "value",
    [
        "$apr1$yTqPZ1xa$" + HASH,
        "$2y$10$" + HASH + "0" * 31,
        "$6$rounds=5000$saltsalt$" + HASH * 3 + "abcdefghijklmnopqrst",
        "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$" + HASH,
    ],
)
def test_hashes_of_passwords_are_replaced(value: str) -> None:
    assert redact(f"admin:{value}\n") == ("admin:[redacted:password-hash]\n", ("password-hash",))
    assert redact(f"VALUES ('{value}')") == ("VALUES ('[redacted:password-hash]')", ("password-hash",))


def test_hashes_of_password_files_and_directories_are_replaced() -> None:
    digest = base64.b64encode(bytes(range(20))).decode()
    assert redact(f"admin:{{SHA}}{digest}")[0] == "admin:{[redacted:password-hash]"
    assert redact(f"userPassword: {{SSHA}}{digest[:-1]}QUJDREVG")[1] == ("password-hash",)


def test_keys_of_wordpress_may_hold_any_character() -> None:
    key = "x]+9{Zx <81kQ02%mNp)LL&|x;;pq...<*** xxx"
    assert (
        redact(f"define('LOGGED_IN_SALT',   '{key}');")[0] == "define('LOGGED_IN_SALT',   '[redacted:wordpress-key]');"
    )


# --- manifests

ENCODED = base64.b64encode(S.encode()).decode()
SECRET = f"""\
apiVersion: v1
kind: Secret
metadata:
  name: shop
  labels:
    data: harmless-1
data:
  foo: {ENCODED}  # of the shop
  "b.c": '{ENCODED}'
stringData:
  bar: {PLAIN}
  file.conf: |
    user ann
    word {PLAIN}

  baz: "{PLAIN}"
type: Opaque
"""
REDACTED = """\
apiVersion: v1
kind: Secret
metadata:
  name: shop
  labels:
    data: harmless-1
data:
  foo: [redacted:kubernetes-secret]  # of the shop
  "b.c": '[redacted:kubernetes-secret]'
stringData:
  bar: [redacted:kubernetes-secret]
  file.conf: |
    [redacted:kubernetes-secret]


  baz: "[redacted:kubernetes-secret]"
type: Opaque
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\ndata:\n  foo: letmein\n"


def indented(text: str, by: str) -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("before", "by", "behind"),
    [
        ("", "", ""),
        (CONFIG_MAP + "---\n", "", "---\n" + CONFIG_MAP),
        ("Write this:\n\n```yaml\n", "", "```\n\nand that:\n\n```yaml\n" + CONFIG_MAP + "```\n"),
        ("{{- if .Values.x }}\n", "", "{{- end }}\n"),
        ("steps:\n  manifest: |\n", "    ", "  other:\n    data:\n      foo: letmein\n"),
    ],
    ids=["alone", "among others", "in a fence", "a template", "within another"],
)
def test_values_of_a_kubernetes_secret_are_replaced(before: str, by: str, behind: str) -> None:
    redacted, kinds = redact(before + indented(SECRET, by) + behind)
    assert kinds == ("kubernetes-secret",)
    assert redacted == before + indented(REDACTED, by) + behind


def test_items_of_a_list_are_each_of_their_kind() -> None:
    def item(kind: str) -> str:
        return f"- apiVersion: v1\n  data:\n    foo: {ENCODED}\n  kind: {kind}\n"

    redacted, _ = redact("items:\n" + item("ConfigMap") + item("Secret") + item("ConfigMap"))
    assert redacted.splitlines()[1:] == [
        *item("ConfigMap").splitlines(),
        *item("Secret").replace(ENCODED, "[redacted:kubernetes-secret]").splitlines(),
        *item("ConfigMap").splitlines(),
    ]


@pytest.mark.parametrize("kind_first", [True, False])
def test_secrets_are_found_in_json(*, kind_first: bool) -> None:
    def manifest(kind: str) -> dict[str, object]:
        head: dict[str, object] = {"apiVersion": "v1"}
        data: dict[str, object] = {"data": {"foo": ENCODED, "bar": ENCODED}}
        return head | ({"kind": kind} | data if kind_first else data | {"kind": kind})

    text = json.dumps({"items": [manifest("ConfigMap"), manifest("Secret"), manifest("ConfigMap")]})
    items = json.loads(redact(text)[0])["items"]
    hidden = "[redacted:kubernetes-secret]"
    assert [item["data"]["foo"] for item in items] == [ENCODED, hidden, ENCODED]
    assert items[1]["data"] == {"foo": hidden, "bar": hidden}


def test_secrets_are_found_in_one_line_of_yaml_and_in_json_that_begins_with_its_kind() -> None:
    hidden = "[redacted:kubernetes-secret]"
    text = f'kind: Secret\nstringData: {{foo: {PLAIN}, "b.c": "{PLAIN}"}}\n'
    assert redact(text)[0] == text.replace(PLAIN, hidden)
    text = f'{{"kind": "Secret", "apiVersion": "v1", "stringData": {{"foo": "{PLAIN}"}}}}'
    assert redact(text)[0] == text.replace(PLAIN, hidden)


def test_placeholders_of_a_secret_stay() -> None:
    sample = base64.b64encode(b"changeme").decode()
    text = f"kind: Secret\ndata:\n  a: {sample}\n  b: <base64>\n  c: {{{{ .Values.c | b64enc }}}}\n  d: ${{D}}\n"
    assert redact(text) == (text, ())


@pytest.mark.parametrize("start", ["\n", "\n    "])
def test_keys_of_putty_are_replaced_line_for_line(start: str) -> None:
    body = start.join(("io2B54RGrN7bgUm1zwRNFg67LBYD1o53u94A6Hcs5SENK2vbCGjCbkOZyZhntU9Z", "neEQ3jh5bgMsNFcB1nXG+A=="))
    text = f"Encryption: none{start}Private-Lines: 2{start}{body}{start}Private-MAC: 13823f48"
    redacted, kinds = redact(text)
    assert kinds == ("private-key",)
    assert redacted == text.replace(body, "[redacted:private-key]\n")


# --- what is near

HARMLESS = """
password = get_password()
password = input("Password: ")
password: string
password?: string | null
def login(user: str, password: str = "") -> None:
if password == other.password:
if password == "":
if password == confirm_password:
if (form.password !== form.confirmPassword) {
if (field.type === "password") {
if (password.equals(confirmation)) {
if input_type == "password1":
case "password": return 1
passwords = ["password1"]
passwords = ["password", "secret", "changeme1"]
COMMON_PASSWORDS = ["qwerty123", "iloveyou2"]
WEAK_PASSWORDS = {"passw0rd", "abc1234"}
passwords = load("fixtures/accounts2.json")
passwords = settings["accounts2.primary9"]
"password": {"type": "string", "pattern": "^[a-z0-9]{8,}$"}
password: ['', [Validators.required]]
"password": ["This field must not be blank 1"]
tokens = ["identifier1", "number2", "operator3"]
keys = ["ArrowLeft1", "customer_account_identifier_2"]
secrets: ["DEPLOY_KEY_2", "payments-database-credentials-2"]
ds.setPassword(password);
ds.setPassword("");
ds.setPassword(System.getenv("DB_PASSWORD"));
ds.setPassword("${DB_PASSWORD}");
user.setPassword("newPassword");
resetPassword("accounts/reset2");
page.password("Enter your password")
z.string().password("validation.password.short2")
@Value("${db.password}") String p;
@Value("${db.password:}") String p;
@Value("${db.password:changeme}") String p;
@Value("${password.encoder.name:bcrypt2}") String p;
echo ${PASSWORD:0:4} ${password:1} ${PASSWORD:-} ${PASSWORD:?must be set} ${PASSWORD:-$OTHER}
dsn = "host=db user=app password=%s dbname=x"
dsn = f"host={host} user={user} password={password} dbname=x"
dsn = "host=db user=app password=<password>"
dsn = "host=localhost user=postgres password=postgres dbname=postgres"
dsn = "host= user= password= port= database="
dsn = "host=$HOST user=$USER password=$PASSWORD"
connect(host=host, user=user, password=word, dbname=x)
User(username='ann', password=SecretStr('**********'))
username='ann' password=SecretStr('**********')
log.info("user=app password=hidden host=db")
jdbc:mysql://h/db?user=r&password=${DB_PASSWORD}
jdbc:mysql://h/db?user=root&password=<password>
jdbc:postgresql://db/shop?user=app&password={password}
jdbc:oracle:thin:@//h:1521/x
jdbc:oracle:thin:<user>/<password>@h
https://example.org/reset?token=abc&password=new
https://example.org/?redirect=/login&password=forgotten
check_body(b"username=user&password=secure%20password")
variable "db_password" { type = string }
variable "db_password" { default = "" }
variable "db_password" { default = var.other }
variable "password_length" { default = "16chars" }
variable "secret_name" { default = "payments-2" }
variable "region" { default = "eu-west-1a" }
define('AUTH_KEY', 'put your unique phrase here');
define('AUTH_KEY', getenv('AUTH_KEY'));
kind: SecretStore
kind: ExternalSecret
npmAuthToken: "${NPM_AUTH_TOKEN}"
npmAuthToken: ${NPM_AUTH_TOKEN:-}
"github-oauth": {"github.com": "<token>"}
INSERT INTO users (email, password) VALUES (?, ?);
INSERT INTO users (email, password) VALUES (:email, :password);
INSERT INTO users (email, password) VALUES ('a@example.org', '<password>');
INSERT INTO users (email, password) VALUES ('%s', '%s');
INSERT INTO notes (title, body) VALUES ('password', 'Zx81kQ02mNpLL');
"INSERT INTO users (name, password) VALUES ('" + name + "', '" + password + "')"
INSERT INTO users (name, password) SELECT name, password FROM old;
UPDATE users SET password = :password WHERE id = 1
curl -H "Cookie: session=$SESSION" https://api.example.org
curl -H "Cookie: lang=en" https://api.example.org
curl -b cookies.txt https://api.example.org
curl -b "session=$SESSION" https://api.example.org
http GET https://api.example.org Cookie:lang=en
UPDATE users SET name = 'password', note = 'Zx81kQ02mNpLL' WHERE id = 1
update users set password = crypt($1, gen_salt('bf'))
curl -H "Authorization: Bearer $TOKEN" https://api.example.org
curl -H "Authorization: Bearer <token>" https://api.example.org
curl -H "Authorization: Bearer ACCESS_TOKEN" https://api.example.org
curl -H "Content-Type: application/vnd.api2+json" https://api.example.org
curl -H "X-Request-Id: Zx81kQ02mNpLL" https://api.example.org
Private-Lines: 14 is what the header says.
cost = "$2y$10$" + salt
{SHA}-prefixed values, $apr1$ and $6$ are formats of crypt(3).
EAAA, sl. and secret_ are how tokens begin; secret_santa_list_of_the_whole_department_for_next_winter
nfp_reports, fo1_total, CFPAT-docs, sk.eyJ, ntn_x
"""


def test_what_is_near_stays_as_it_is() -> None:
    for line in HARMLESS.splitlines():
        assert redact(line) == (line, ())
    assert redact(HARMLESS) == (HARMLESS, ())


def test_encoded_data_is_no_token() -> None:
    """A line of Base64 that begins as a token of Square's does."""
    dice = random.Random(3)  # noqa: S311
    lines = [
        "EAAA" + base64.b64encode(dice.randbytes(45)).decode().replace("/", "a").replace("+", "b") for _ in range(5)
    ]
    for text in ("\n".join(lines), "\n".join(f'  "{line}"' for line in lines[:4]) + f'\n  "{lines[4][:30]}"'):
        assert redact(f"icon = (\n{text}\n)")[1] in ((), ("square-token",))
        assert redact(f"icon = (\n{text}\n)")[0].count("[redacted") <= 1


SIZE = 300_000
PARTS = {
    "pairs": "host=a password=",
    "pairs of quotes": "password='",
    "parameters": "&password=a1",
    "urls": "jdbc:oracle:thin:a/",
    "setters": "setPassword(",
    "setters of long names": "set_aaaaaaaaaaaaaa_aaaaaaaaaa_password(",
    "defaults": "${password:",
    "names of defaults": "${aaaa.password.",
    "compared": '"a" == password.',
    "quotes and signs": '"==',
    "digests": "compare_digest(password",
    "lists": "passwords = [",
    "types of lists": "passwords: list[list[list[",
    "items": 'passwords = ["' + '", "'.join(["a"] * 400) + '"',
    "items of lists": "passwords:\n- abcdefg\n- ",
    "parentheses": "password = ((",
    "triple quotes": 'password = """a',
    "variables": 'variable "password" {',
    "variables in lines": 'variable "password" {\n default\n',
    "manifests": "kind: Secret\n",
    "manifests of lists": "- kind: Secret\n  data:\n",
    "manifests in blocks": "kind: Secret\ndata:\n  a: |\n    b\n",
    "manifests within": "          a:\n kind: Secret\n",
    "manifests in json": '"apiVersion","kind":"Secret","data":{"a":"b"',
    "data in json": '"kind":"Secret","data":{',
    "registries": '"github-oauth": {"a": "',
    "commands of registries": "bearer.aaaaaaaaaaaaaaaaa",
    "keys of putty": "Private-Lines: 999\naaaa\n",
    "hashes": "$2y$10$$apr1$$6$a$",
    "headers": '-H "Cookie: a=b;',
    "updates": "update a set ",
    "updates of quotes": "update a set '",
    "gaps": "insert into a(password)" + "\n" * 60 + "values",
    "flow": "kind: Secret\ndata: {a: b, a: b,",
    "kinds in json": '"kind":"a","apiVersion"',
    "cookies": "curl -b a=b;",
    "statements": "insert into a (password) values ",
    "rows": "insert into a (password) values ('a'),(",
    "columns": "insert into a (password, a, ",
    "calls": "insert into a (password) values (a((((((",
    "keys of wordpress": "AUTH_KEY='",
    "tokens": "secret_EAAAsl.nfp_:APA91bsk.eyJ",
}


@pytest.mark.parametrize("name", PARTS)
def test_time_is_linear(name: str) -> None:
    assert_linear(redact, PARTS[name] * (SIZE // len(PARTS[name])))


@pytest.mark.parametrize("letter", [" ", "'", '"', "(", "=", "$", "{", "a1", "\n", "\n ", "- ", ","])
@pytest.mark.parametrize(
    "start", ["password = ", "INSERT INTO a (password) VALUES (", "kind: Secret\ndata:\n  a: ", "passwords: ["]
)
def test_time_is_linear_behind_a_beginning(start: str, letter: str) -> None:
    assert_linear(redact, start + letter * (100_000 // len(letter)))
