"""Source types, by path and content."""

from __future__ import annotations

import pytest

from ragpilot.ingest.kinds import source_type


@pytest.mark.parametrize(
    ("path", "head", "expected"),
    [
        ("src/a.py", "", "code-python"),
        ("a.tsx", "", "code-typescript"),
        ("a.d.ts", "", "code-typescript"),
        ("i18n/de.ts", "<?xml version='1.0'?><!DOCTYPE TS>", "config"),
        ("a.mjs", "", "code-javascript"),
        ("A.CS", "", "code-csharp"),
        ("a.h", "int f(void);\n", "code-c"),
        ("a.h", "namespace x {\nclass Y;\n}\n", "code-cpp"),
        ("a.h", "#import <X/X.h>\n@interface Y : NSObject\n", "code-objectivec"),
        ("bin/tool", "#!/usr/bin/env -S python3 -u\n", "code-python"),
        ("bin/tool", "#!/bin/bash\n", "code-bash"),
        ("bin/tool", "#!/usr/bin/env VAR=1 node\n", "code-javascript"),
        ("bin/tool", "#!/opt/strange\n", "docs-text"),
        ("app/card.component.html", "", "template"),
        ("Cart.vue", "", "template"),
        ("a.scss", "", "style"),
        ("README.md", "", "docs-markdown"),
        ("README", "", "docs-text"),
        ("docs/x.rst", "", "docs-text"),
        ("docs/x.adoc", "", "docs-text"),
        ("n.ipynb", "{}", "notebook"),
        ("Dockerfile", "", "config"),
        ("Dockerfile.prod", "", "config"),
        ("Makefile", "", "config"),
        (".env.example", "", "config"),
        (".eslintrc", "{}", "config"),
        ("requirements-dev.txt", "", "config"),
        ("notes.txt", "", "docs-text"),
        ("schema.sql", "", "data-schema"),
        ("x.proto", "", "data-schema"),
        ("x.graphql", "", "data-schema"),
        ("api.yaml", "# comment\nopenapi: 3.1.0\ninfo: {}\n", "api-spec"),
        ("api.yaml", "swagger: '2.0'\n", "api-spec"),
        ("api.json", '{\n  "openapi": "3.0.3",\n  "paths": {}}', "api-spec"),
        ("api.json", '{"info":{"title":"x"},"swagger":"2.0","paths":{}}', "api-spec"),
        ("values.yaml", "docs:\n  text: 'openapi: 3.0 is a format'\n", "config"),
        ("package.json", '{"dependencies": {"openapi": "3.0.0"}}', "config"),
        ("openapi.py", "openapi: 3.0\n", "code-python"),
        ("strange.xyz", "words", "docs-text"),
    ],
)
def test_source_types(path: str, head: str, expected: str) -> None:
    assert source_type(path, head) == expected
