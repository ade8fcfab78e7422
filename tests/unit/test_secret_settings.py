"""Secrets in settings without quotes, in entries of an environment, and behind look-ups in it."""

from __future__ import annotations

import pytest

from ragpilot.ingest.secrets import redact
from tests.linear import assert_linear

VALUES = ["P@ssw0rd1Ya", "hunter2Ya", "monkey195Ya", "jDPlsqYlZ0SYa"]
KEYS = ["password", "passwd", "pwd", "secret", "db_password", "passphrase", "spring.datasource.password", "pass"]
KEYS += ["db.pass", "keystore.pass", "redis-pass", "dbPassword", "smtpPass", "clientSecret", "app.jwt.secret"]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS)
def test_values_need_no_quotes(key: str, value: str) -> None:
    hidden = "[redacted:assigned-secret]"
    for form in (
        f"{key}: %s\n",
        f"{key}=%s\n",
        f"db:\n  host: db1\n  {key}: %s  # of the shop\n  port: 5432\n",
        f"- {key}: %s\r\n  user: ann\r\n",
        f"[db]\nuser = ann\n{key} = %s\n",
        f"Write this:\n\n```yaml\n{key}: %s\n```\n",
        f'{key}: "%s"\n',
    ):
        assert redact(form % value) == (form % hidden, ("assigned-secret",))


FOUND = [
    'passwd: "%MqzUpvpKSRCj%"',
    'password = "%MqzUpvpKSRCj%"',
    "password: %MqzUpvpKSRCj%",
    'pass = "%hunter2Ya%"',
    "{ user: 'ann', pass: '%hunter2Ya%' }",
    "api_key: %Zk39fKq02mXw%",
    "- name: API_TOKEN\n  value: %hunter2Ya9x%",
    '- name: API_TOKEN\n  value: "%hunter2Ya9x%"',
    "- value: '%hunter2Ya9x%'\n  name: API_TOKEN",
    "- value: %hunter2Ya%\n  name: SHOP_PASSWORD",
    '- name: "SHOP_SECRET_KEY"\n  value: %hunter2Ya9x%',
    '{"name": "API_TOKEN", "value": "%hunter2Ya9x%"}',
    'os.environ.get("SECRET_KEY") or "%Zk39fKq02mXw%"',
    'os.environ.get("SECRET_KEY", None) or "%Zk39fKq02mXw%"',
    'password = os.getenv("P", default="%hunter2Ya%")',
    'os.getenv("DB_PASS", default="%hunter2Ya%")',
    'const s = process.env.JWT_SECRET || "%Zk39fKq02mXw%";',
    "secret: process.env['JWT'] ?? '%Zk39fKq02mXw%',",
    "ENV['API_TOKEN'] ||= '%Zk39fKq02mXw%'",
    "ENV.fetch('SECRET') { '%Zk39fKq02mXw%' }",
    "'secret' => env('S', '%Zk39fKq02mXw%'),",
    'Credentials.builder().password("%hunt#er2Ya%").build()',
    'Client.builder().apiKey("%Zk39fKq02mXw%").build()',
    'DriverManager.getConnection(url, "u", "%letmein%")',
    'DriverManager.getConnection("jdbc:x://h/db", "u", "%hunter2Ya%")',
    'new PDO($dsn, "root", "%hunter2Ya%")',
    "headers['Authorization'] = 'Bearer %Zk39fKq02mXwq8%'",
    "helm upgrade shop . --set db.password=%letmein%",
    "helm upgrade shop . --set image.tag=v12,db.password=%hunter2Ya%,replicas=2",
    "https://api.example.org/c?api_key=%Zk39fKq02mXw%",
]


@pytest.mark.parametrize("text", FOUND)
def test_secrets_are_replaced_by_entry_and_fallback(text: str) -> None:
    before, secret, behind = text.split("%")
    redacted, kinds = redact(before + secret + behind)
    assert redacted == f"{before}[redacted:{kinds[0]}]{behind}"
    assert kinds in (("assigned-secret",), ("environment-password",), ("authorization-header",))


HARMLESS = [
    *("password: changeme", "password: changeme123", "password: ${DB_PASSWORD}", "password: <password>"),
    *("password: null", "password: true", "password: string", "password?: string;", "password: Argon2Hash"),
    *("password: db-secret-name", "password: db1-secret-name", "password: app2-db.creds", "secret: app1-tls"),
    *("password: The password of the user", "password: Used once, for step2Of the set-up", "password: !vault |"),
    *("password: {{ .Values.dbPassword2 }}", "password: /run/secrets/db1", "password: *defaults2", "password: Str50"),
    *("password: settings.Password2", "secret: true", "secretName: hunter2Ya", "passed: hunter2Ya", "secret: sha256"),
    *("bypass: hunter2Ya", "bypass=hunter2Ya", "pass_through: hunter2Ya", "pass_through = 'hunter2Ya'", "pass: number"),
    *(
        "compass: hunter2Ya",
        "PASS: tests/check2Ya",
        "PASS: CheckAll2Ya",
        "    pass",
        "pass: 12",
        "tests_passed: Run2Yax",
    ),
    *("passport: hunter2Ya", "passenger = 'hunter2Ya'", "password_hint: hunter2Ya", "token_type: Bearer2Ya4fK9"),
    "class User:\n    name: str\n    password: Argon2Hash\n    pwd: SecretStr1\n",
    "login(\n    user=name,\n    password=hunter2Ya\n)",
    "login({\n  user,\n  password: hunter2Ya\n})",
    "password = hunter2Ya\nlogin(password)\n",
    "user = ann\npassword = hunter2Ya\n",
    "struct User {\n    name: String,\n    password: Hash2Ya\n}",
    "valueFrom:\n  secretKeyRef:\n    name: db-secret\n    key: db-password-2\n",
    "- name: API_TOKEN\n  valueFrom:\n    secretKeyRef: {name: token2Ya9xK, key: hunter2Ya9xK}\n",
    "- name: SHOP_REGION\n  value: hunter2Ya9xK\n",
    "- name: API_TOKEN\n  value: ${API_TOKEN}\n",
    "- name: TOKEN_URL_2\n  value: hunter2Ya9xK\n",
    '- name: API_TOKEN\n  value: "<your-token-2>"\n',
    '{"name": "password", "value": "the_field_2"}',
    'os.environ.get("SHOP_REGION") or "hunter2Ya9xK"',
    'os.environ.get("SECRET_KEY") or "dev"',
    'os.environ.get("SECRET_KEY") or "changeme123"',
    'os.getenv("SECRET_NAME", default="payments2Ya")',
    "process.env.TOKEN_FILE || '/run/secrets/t0ken'",
    "process.env.API_KEY || ''",
    "process.env.API_KEY || 'your-api-key-1'",
    "ENV.fetch('SECRET') { raise 'SECRET2 is missing' }",
    "ENV['API_TOKEN'] ||= other_token2",
    "env('APP_SECRET', null)",
    'builder.apiKey("your-api-key-1")',
    'builder.apiKey("payments.api.key2")',
    "DriverManager.getConnection(url, user, password)",
    'DriverManager.getConnection(url, "root", "")',
    'pool.getConnection(url, "u", "password")',
    "new PDO($dsn, $user, $password)",
    'new PDO($dsn, "root", getenv("DB_PASS"))',
    "headers['Authorization'] = 'Bearer ' + token2",
    "headers['Authorization'] = 'Bearer <token1>'",
    "headers['Authorization'] = 'Bearer your-token-1'",
    "helm upgrade shop . --set db.password=$DB_PASSWORD,image.tag=hunter2Ya",
    "https://api.example.org/c?api_key=YOUR_KEY_1",
    'newPassword = "HTTPSProxyForUsers"',
    'password = "NewPasswordForUser"',
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_near_stays(text: str) -> None:
    assert redact(text) == (text, ())


@pytest.mark.parametrize(
    "part",
    [
        "password: a1",
        "password: hunter2Ya\n",
        "name: A\n value: ",
        "process.env.A",
        "pass=",
        " - \n",
        "--set a=b,",
        "getConnection(",
    ],
)
def test_time_is_linear(part: str) -> None:
    assert_linear(redact, part * (500_000 // len(part)))
