"""From a question to the source types that it is probably about: cheap heuristics, one class."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LANGUAGES: dict[str, str] = {
    "code-python": r"python|py|pytest|django|flask|asyncio|pydantic|fastapi|numpy|pandas",
    "code-typescript": r"typescript|ts|tsx|angular|nestjs|rxjs|react",
    "code-javascript": r"javascript|js|jsx|node(?:\.?js)?|express|npm|react",
    "code-csharp": r"c#|csharp|dotnet|\.net|asp\.net|linq|nuget",
    "code-java": r"java|maven|gradle|spring|junit|jvm",
    "code-go": r"golang|goroutines?|gomod",
    "code-rust": r"rust|cargo|crates?|tokio|serde",
    "code-c": r"header files?|\.c|\.h|struct pointer",
    "code-cpp": r"c\+\+|cpp|cmake|stl",
    "code-ruby": r"ruby|rails|gems?|rspec|rack",
    "code-php": r"php|laravel|composer|symfony",
    "code-kotlin": r"kotlin|kt",
    "code-bash": r"bash|shell scripts?|sh script",
    "code-swift": r"swift|swiftui|xcode",
    "code-scala": r"scala|sbt|akka",
}

_TOPICS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"endpoints?|apis?|routes?|rest|openapi|swagger|http (?:get|post|put|patch|delete)|request body", ("api-spec",)),
    (r"(?:get|post|put|patch|delete|head|options) /\S+", ("api-spec",)),
    (r"components?|directives?|widgets?|views?", ("code-typescript", "template")),
    (r"templates?|html|markup|forms?|placeholders?|buttons?", ("code-typescript", "template")),
    (r"css|scss|sass|less|styles?|stylesheets?|themes?|colou?rs?|fonts?|layout", ("style",)),
    (r"sql|schemas?|tables?|columns?|migrations?|protobuf|protos?|grpc|graphql|quer(?:y|ies)", ("data-schema",)),
    (r"config(?:uration|ured|ure|s)?|settings?|environment variables?|env vars?|options?|yaml|toml|ini", ("config",)),
    (r"docker(?:file)?|compose|ci|pipelines?|workflows?|makefiles?|dependenc(?:y|ies)|package\.json", ("config",)),
    (r"notebooks?|jupyter|ipynb", ("notebook",)),
    (
        r"readme|docs?|documentation|documented|guides?|tutorials?|changelog|release notes?|licen[cs]e"
        r"|install(?:ation|ed|ing)?|getting started|contributing|roadmap|faq",
        ("docs-markdown", "docs-text"),
    ),
)


def _whole(pattern: str) -> re.Pattern[str]:
    """``pattern`` as words of their own: not inside a longer word, not as part of a dotted or dashed name."""
    return re.compile(rf"(?<![\w./-])(?:{pattern})(?![\w+#-])", re.IGNORECASE)


class SourceTypeClassifier:
    """Infers source types from words of the question. What it infers is boosted; nothing is ever hidden for it."""

    def __init__(self) -> None:
        self._rules: list[tuple[re.Pattern[str], tuple[str, ...]]] = [
            *((_whole(pattern), types) for pattern, types in _TOPICS),
            *((_whole(pattern), (source_type,)) for source_type, pattern in _LANGUAGES.items()),
        ]

    def classify(self, question: str) -> frozenset[str]:
        """The source types that the question names or implies; empty when it implies none."""
        return frozenset(self._inferred(question))

    def _inferred(self, question: str) -> Iterable[str]:
        for pattern, source_types in self._rules:
            if pattern.search(question):
                yield from source_types
