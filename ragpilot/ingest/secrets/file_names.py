"""Files that hold secrets by their name: never read into the index."""

from __future__ import annotations

import re

_NAMES = frozenset(
    """
    .flaskenv .dev.vars .rclone.conf credentials.tfrc.json
    .env .envrc .npmrc .netrc _netrc .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .s3cfg .boto .dockercfg
    .git-credentials .htpasswd .htdigest .vault_pass .vault-token .terraformrc terraform.rc .rhosts .authinfo
    .fetchmailrc .msmtprc .mutt_secrets .databrickscfg .kaggle.json .passwd .smbcredentials .yarnrc.auth
    htpasswd htdigest
    id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk id_xmss identity.key
    credentials credentials.json credentials.yml credentials.yaml credentials.toml credentials.ini credentials.xml
    credentials.csv credentials.properties credentials.txt credentials.db client_secret.json client_secrets.json
    service-account.json service_account.json serviceaccount.json service-account-key.json gcp-key.json
    application_default_credentials.json accesstokens.json azureprofile.json
    secrets.yml secrets.yaml secrets.json secrets.toml secrets.ini secrets.env secrets.properties secrets.txt
    secrets.xml
    secret.yml secret.yaml secret.json secret.toml secret.ini secret.env secret.properties secret.txt
    passwords.txt password.txt passwords.csv passwd.txt token.json token.txt apikey.txt api_key.txt
    master.key kubeconfig kubeconfig.yml kubeconfig.yaml rclone.conf wallet.dat
    .bash_history .zsh_history .sh_history .psql_history .mysql_history .rediscli_history .node_repl_history
    .python_history .sqlite_history .irb_history
    .vault-pass .vault_password .vault-password vault-password.txt vault_password.txt vault.pass .dockerconfigjson
    .ftpconfig sftp-config.json sftp.json filezilla.xml sitemanager.xml recentservers.xml winscp.ini .pgpass.conf
    .erlang.cookie oauth_token.json aws-credentials aws_credentials keystore.properties key.properties
    local.settings.json cookies.txt
    """.split()
)
_SUFFIXES = tuple(
    """
    .pem .key .p12 .pfx .p8 .pk8 .jks .keystore .truststore .bks .ppk .kdb .kdbx .ovpn .gpg .pgp .agekey .keytab
    .tfstate .tfstate.backup .tfvars .tfvars.json .mobileprovision .publishsettings .enc .vault .secret .secrets
    .credentials .htpasswd
    """.split()
)
_UNDER_FOLDERS = frozenset(
    {
        (".aws", "config"),
        (".docker", "config.json"),
        (".kube", "config"),
        (".config/gh", "hosts.yml"),
        (".gem", "credentials"),
        (".cargo", "credentials.toml"),
        (".m2", "settings-security.xml"),
        ("etc", "shadow"),
        ("etc", "gshadow"),
    }
)
_STAGE = r"(?:prod|production|live|stag(?:e|ing)|dev|development|local|test|qa|uat)"
_PATTERN = re.compile(
    rf"(?:credentials|secrets?)[._-]{_STAGE}\.(?:json|ya?ml|toml|ini|properties|xml)"
    rf"|{_STAGE}[._-]secrets?\.ya?ml|kubeconfig[._-](?!.*\.(?:md|sh|tf)$).*|.*\.kubeconfig"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[._-].*(?<!\.pub)|client_secret[._-].*\.json|.*[._-]service[._-]?account.*\.json"
    r"|service[._-]?account[._-].*\.json|\.dev\.vars\..*"
    r"|.*[._-]credentials\.(?:json|ya?ml|toml|ini|csv|xml|properties)|.*[._-]secrets?\.(?:json|toml|ini|properties)"
    r"|\.ht(?:passwd|digest)[._-].*|.*-firebase-adminsdk-.*\.json|.*\.terraform\.tfstate.*"
)
_ENVIRONMENT = re.compile(r".*\.env(?:[._-].*)?|env\.(?:local|production|staging|prod|secret)")
_HARMLESS = re.compile(
    r".*[._-](?:examples?|samples?|template|tpl|tmpl|dist|defaults?|schema)(?:\.\w{1,8})?|(?:example|sample|template)[._-].*"
)
_KEPT = re.compile(
    r"(?P<of>.+?)(?:~|[._-](?:bak|backup|old|orig|save|saved|copy|swp|rej|[0-9]{1,8})|\.(?:bak|old|orig)\.?\d{1,4})"
)
"""What editors and people keep of a file that they change."""
_OF_SSH = frozenset({"config", "known_hosts", "authorized_keys", "environment", "rc", "known_hosts.old"})
_CODE = tuple(".py .ts .tsx .js .jsx .mjs .go .rs .java .kt .cs .rb .php .md .d.ts".split())


def is_secret_file(path: str) -> bool:
    """Whether a file's name says that it holds secrets; a template of such a file does not."""
    *folders, name = path.lower().split("/")
    if name.endswith(_CODE) or name.endswith(".pub"):
        return False
    if _HARMLESS.fullmatch(name) or ("templates" in folders and name.endswith((".yaml", ".yml"))):
        return False  # of Helm's charts
    kept = _KEPT.fullmatch(name)
    if kept is not None and is_secret_file("/".join([*folders, kept["of"]])):
        return True
    if folders[-1:] == [".ssh"] and "." not in name and name not in _OF_SSH:
        return True
    if name in _NAMES or name.endswith(_SUFFIXES) or _PATTERN.fullmatch(name) or _ENVIRONMENT.fullmatch(name):
        return True
    return any((("/".join(folders[-depth:])), name) in _UNDER_FOLDERS for depth in (1, 2))
