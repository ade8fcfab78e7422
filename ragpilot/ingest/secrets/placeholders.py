"""What stands where a secret would: variables, templates, samples and the words for what belongs there."""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(
    r".*(?:example|placeholder|changeme|change[-_]me|dummy|redacted|your[-_]|my[-_]?(?:secret|token|key|pass)|xxx"
    r"|\*\*\*|\.\.\.|<|>|\$\{|\$\(|\{\{|%\(|%s|\(\?|\{\d|^~?\.{0,2}/|\[.*\]|\\\\|\{\w*\}|12345678|insert|todo|not[-_]a|fake[-_]?(?:token|secret|pass)).*"
    r"|\$\w+|%\w+%"
    r"|(?:pass(?:word|wd)?|pwd|secret|token|key|user(?:name)?|admin|root|guest|test|postgres|mysql|foo|bar|none|null|true|false)\d{0,3}",
    re.IGNORECASE,
)
_NO_LITERAL = re.compile(
    r"[$%@~:!#-].*|.*(?:\$[A-Za-z_{(]|[`{}]|://).*|[A-Z]+(?:[_-][A-Z]+)*|\W*"
    r"|(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*(?:\(.*)?|[A-Za-z_]\w*\(.*"
    r"|(?i:the|a|an|and|or|is|for|to|in|of|as|if|with|your|my|his|new|old|user|name|some|any|no|yes|on|off|string|str"
    r"|text|value|char|bool|boolean|int|object|literal|plain|file|prompt|stdin|env|environment|ask|default|required"
    r"|optional|enabled?|disabled?|never|always|auto|reset|invalid|missing|empty|undefined|nil|self|secure|encrypted"
    r"|hash(?:ed)?|word|phrase|pass(?:code|phrase)|parola|here|baz|qux|bla|x+|p|pw|pass(?:word|wd)?s?|hidden|masked"
    r"|filtered|provided|given|blank|confirm|visible|match(?:es)?"
    r"|(?:(?:new|old|current|wrong|bad|good|some|the|an?|confirm|repeat|invalid|valid|other|another|correct|raw|plain"
    r"|sample)[-_]?){1,3}(?:password|passwd|passphrase))",
    re.DOTALL,
)
_LEAST = 3


def is_placeholder(value: str) -> bool:
    """Whether a value is made to be replaced, or is one of the words that every sample uses."""
    return _PLACEHOLDER.fullmatch(value) is not None


def is_literal(value: str) -> bool:
    """Whether what stands in a password's place is one: no placeholder, variable, expression or mere word for it."""
    return len(value) >= _LEAST and _NO_LITERAL.fullmatch(value) is None and not is_placeholder(value)
