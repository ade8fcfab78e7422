"""What one asks of a project as a whole, as the headers of the passages that answer it. Pure.

"What does this project do?" and "How do I run the tests?" share neither words nor meaning with the passages that answer
them, which name the project and its commands; so ingestion names these passages by what readers look for there.
"""

from __future__ import annotations

OVERVIEW = (
    "overview: what is this? overview of this repository: what problem does this project solve, what does it do,"
    " why should I use this"
)
INSTALL = "how to install this project, set it up, download it, get started with it"
REQUIREMENTS = "requirements: which versions of languages and systems this project supports"
USE = "usage: how do I run this, start it, use it"
TEST = "testing: how to run the tests, the test suite of this project"
BUILD = "how to build this software, compile it from source"
DOCUMENT = "how to build the documentation"
LINT = "how to lint and format the code"
DEPLOY = "how to deploy this project"
CONTRIBUTE = "contributing: how to contribute to this project, report bugs and send pull requests"
CHANGES = "changelog of this project: release notes, what changed and what is new in a release"
CHECKS = "continuous integration: how ci is set up, which checks its pipeline runs on each commit and pull request"
SECURITY = (
    "security of this software: whom to tell of a security issue, how to report or disclose a vulnerability,"
    " security policy"
)
LICENSE = "license: is this open source, under which terms may this code be used, commercially too"
HELP = "getting help: where can I get help, ask a question about this software, chat, forum, documentation"
DEPENDENCIES = "dependencies: what this project depends on, which packages and libraries it needs"
PEOPLE = "authors and maintainers: who wrote this project, who maintains it, whom to contact"
EXAMPLES = "examples: example programs and sample code of this project"

OF_THE_PROJECT = frozenset(
    (
        *(OVERVIEW, INSTALL, REQUIREMENTS, USE, BUILD, DOCUMENT, LINT, DEPLOY, CONTRIBUTE, CHANGES, CHECKS, SECURITY),
        *(LICENSE, HELP, DEPENDENCIES, PEOPLE),
    )
)
"""What only the project as a whole has; tests and examples, any part of it may have."""
