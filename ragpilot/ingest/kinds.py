"""What a file is: its source type, by name, first line and content."""

from __future__ import annotations

import re

HEAD = 65_536
"""Characters of a text that decide its type."""


def _table(text: str) -> dict[str, str]:
    """``type: ext ext`` lines as extension -> type."""
    pairs = (line.split(":") for line in text.strip().splitlines())
    return {name: kind.strip() for kind, names in pairs for name in names.split()}


_BY_SUFFIX = _table("""
    code-python: py pyi pyw pyx pxd
    code-typescript: ts tsx mts cts
    code-javascript: js jsx mjs cjs
    code-csharp: cs csx
    code-java: java
    code-go: go
    code-rust: rs
    code-c: c h
    code-cpp: cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh
    code-ruby: rb rake gemspec ru
    code-php: php phtml
    code-kotlin: kt kts
    code-swift: swift
    code-scala: scala sc sbt
    code-bash: sh bash zsh ksh bats
    code-powershell: ps1 psm1 psd1
    code-batch: bat cmd
    code-lua: lua
    code-perl: pl pm
    code-r: r
    code-dart: dart
    code-elixir: ex exs
    code-erlang: erl hrl
    code-haskell: hs lhs
    code-clojure: clj cljs cljc edn
    code-groovy: groovy gradle
    code-objectivec: m mm
    code-fsharp: fs fsi fsx
    code-visualbasic: vb bas
    code-ocaml: ml mli
    code-zig: zig
    code-nim: nim
    code-julia: jl
    code-solidity: sol
    code-starlark: bzl star
    code-terraform: tf hcl
    code-lisp: lisp el scm rkt
    code-fortran: f f90 f95 f03
    code-cobol: cob cbl
    code-pascal: pas dpr
    code-assembly: asm s
    code-verilog: v sv vhd vhdl
    code-awk: awk
    code-tcl: tcl
    docs-markdown: md markdown mdown mkd mdx
    docs-text: rst adoc asciidoc txt text org tex textile pod 1 2 3 5 7 8
    notebook: ipynb
    template: html htm xhtml hbs handlebars mustache ejs njk jinja jinja2 j2 twig liquid cshtml razor jsp erb haml pug
    template: tmpl ftl vue svelte
    style: css scss sass less styl
    config: toml yaml yml json json5 jsonc ini cfg conf config properties env xml plist csproj fsproj vbproj sln props
    config: xaml targets mk cmake dockerfile service editorconfig nix xsd wsdl resx pom lock raml
    data-schema: sql ddl proto graphql gql graphqls prisma avsc thrift dbml capnp fbs
""")

_BY_NAME = _table("""
    config: dockerfile containerfile makefile gnumakefile justfile procfile caddyfile cmakelists.txt meson.build go.mod
    config: go.work requirements.txt constraints.txt pipfile cargo.lock manifest.in codeowners .editorconfig
    config: .gitattributes .gitmodules .bazelrc .babelrc .eslintrc .prettierrc .stylelintrc .flake8 .pylintrc
    config: .coveragerc .nvmrc .python-version .tool-versions .htaccess nginx.conf
    code-ruby: rakefile gemfile vagrantfile podfile brewfile guardfile capfile fastfile
    code-groovy: jenkinsfile
    code-starlark: build build.bazel workspace workspace.bazel tiltfile
    code-python: sconstruct sconscript wscript
    code-bash: .bashrc .zshrc .profile .bash_profile pkgbuild
""")

_BY_INTERPRETER = _table("""
    code-python: python pypy uv
    code-bash: sh bash zsh ksh dash ash bats
    code-javascript: node nodejs
    code-typescript: deno ts-node tsx bun
    code-ruby: ruby
    code-perl: perl
    code-php: php
    code-lua: lua luajit
    code-r: rscript
    code-awk: awk gawk
    code-tcl: tclsh wish
    code-groovy: groovy
    code-julia: julia
    code-elixir: elixir
    config: make
""")

_SHEBANG = re.compile(r"#!\s{0,4}(\S{1,200})((?:\s+\S+){0,6})")
_SPECIFICATION = re.compile(
    r"""^(?:---[^\n]*\n)?[ \t{]{0,8}["']?(?:openapi["']?[ \t]*:[ \t]*["']?3\.|swagger["']?[ \t]*:[ \t]*["']?2\.)""",
    re.MULTILINE,
)
_SPECIFICATION_IN_ONE_LINE = re.compile(r'"(?:openapi"\s{0,4}:\s{0,4}"3\.|swagger"\s{0,4}:\s{0,4}"2\.)')
_PARTS_OF_ONE = re.compile(r"""["']?\b(?:paths|webhooks|components|definitions)["']?\s{0,4}:""")
_CPP_HEADER = re.compile(
    r"^\s*(?:class\s+\w|namespace\s|template\s*<|using\s+\w|public:|private:|extern\s+\"C\")", re.MULTILINE
)
_OBJECTIVE_C_HEADER = re.compile(r"^\s*@(?:interface|protocol|class|import)\b", re.MULTILINE)


def source_type(path: str, head: str) -> str:
    """The source type of a text file (DESIGN vocabulary). ``head``: its text, or the first ``HEAD`` characters of it.

    Names decide before first lines, except for API descriptions, which look like any YAML or JSON from outside.
    """
    name = path.rsplit("/", 1)[-1].lower()
    found = _by_name(name) or _by_shebang(head)
    if found == "config" and name.endswith((".yaml", ".yml", ".json")) and is_api_description(head[:HEAD]):
        return "api-spec"
    if name.endswith(".ts") and head.startswith(("<?xml", "<!DOCTYPE TS")):
        return "config"  # Qt's translations share TypeScript's suffix
    if name.endswith(".h"):
        if _CPP_HEADER.search(head[:HEAD]):
            return "code-cpp"
        return "code-objectivec" if _OBJECTIVE_C_HEADER.search(head[:HEAD]) else "code-c"
    return found or "docs-text"


def is_api_description(head: str) -> bool:
    """Whether YAML or JSON text describes an API: OpenAPI 3 or Swagger 2, said at its top level."""
    if _SPECIFICATION.search(head):
        return True
    one_line = head.lstrip().startswith("{") and _SPECIFICATION_IN_ONE_LINE.search(head)
    return bool(one_line and _PARTS_OF_ONE.search(head))


def _by_name(name: str) -> str | None:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.startswith(("dockerfile.", "makefile.", "containerfile.", ".env.")):
        return "config"
    if name.startswith(("requirements", "constraints")) and name.endswith((".txt", ".in")):
        return "config"
    stem, dot, suffix = name.rpartition(".")
    if not dot or (not stem and suffix not in _BY_SUFFIX):
        return "config" if name.endswith("rc") and name.startswith(".") else None
    return _BY_SUFFIX.get(suffix)


def _by_shebang(head: str) -> str | None:
    if not head.startswith("#!"):
        return None
    match = _SHEBANG.match(head)
    if match is None:
        return None
    program = match[1].rsplit("/", 1)[-1]
    if program == "env":
        words = [word for word in match[2].split() if not word.startswith("-") and "=" not in word]
        program = words[0].rsplit("/", 1)[-1] if words else ""
    return _BY_INTERPRETER.get(program.lower().rstrip("0123456789.-"))
