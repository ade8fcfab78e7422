"""`ragpilot embed-bench`: the embedders that can be had here, side by side on one data set."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from ragpilot import cli_output as out
from ragpilot.config import EmbedderSettings, Environment
from ragpilot.errors import ConfigError, EmbedderError, InvalidRequestError
from ragpilot.exit_codes import DONE, FAILED
from ragpilot.terminal_text import clean_line

if TYPE_CHECKING:
    from ragpilot.cli import Start
    from ragpilot.evaluation.embedding_bench import Figures, Text

SECONDS: Final = 600.0
"""The longest that one embedder is measured; a model on a slow machine is given up."""

_COLUMNS: Final = (
    ("embedder", "name", "{}"),
    ("dim", "dimensions", "{}"),
    ("within", "within", "{:.3f}"),
    ("between", "between", "{:.3f}"),
    ("separation", "separation", "{:.3f}"),
    ("auroc", "auroc", "{:.3f}"),
    ("top-1", "top_1", "{:.1%}"),
    ("top-3", "top_3", "{:.1%}"),
    ("ms/text", "milliseconds_per_text", "{:.1f}"),
    ("ms/question", "milliseconds_per_question", "{:.1f}"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One embedder: what it reached, or why it could not be measured."""

    label: str
    figures: Figures | None
    problem: str = ""


@click.command("embed-bench", short_help="Compare embedders: separation, recall, speed.")
@click.option("--data", metavar="FILE", type=click.Path(path_type=Path),
              help='JSON Lines of {"group", "text"}; default: 80 texts about software.')  # fmt: skip
@click.option("--with", "others", metavar="KIND[:MODEL][@URL]", multiple=True,
              help="One more embedder: its kind, model and url as in config.toml; can be repeated.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@click.pass_obj
def embed_bench(start: Start, data: Path | None, others: tuple[str, ...], *, as_json: bool) -> int:
    """Compare embedders: the embedded one, the configured one, a local server's, and those named by --with.

    Every text is asked as a question for the others.

    \b
    within, between  mean cosine of two texts of one group, and of two groups
    separation       the difference of both: higher is better
    auroc            the chance that two related texts are nearer to each
                     other than two unrelated ones: 1 is best, 0.5 is chance
    top-1, top-3     how often a text of its group is nearest to a text, or
                     among the nearest three: higher is better

    Cosines of different embedders are not comparable; auroc, top-1 and top-3 are.
    """  # noqa: D301 - the escape is what keeps the lines above as they are
    return asyncio.run(run_embed_bench(start.load(), start.place(data), others, as_json=as_json))


async def run_embed_bench(
    environment: Environment, data: Path | None, others: Sequence[str] = (), *, as_json: bool
) -> int:
    """Measure one after the other, so that none takes another's time. Gives 1 where none could be measured."""
    from ragpilot.evaluation.embedding_bench import load_texts

    candidates = candidates_of(environment, [parse(text) for text in others])
    texts = load_texts(data)
    rows = []
    for chosen in candidates:
        out.note(f"Measuring {label_of(chosen)} …")
        rows.append(await _row(environment, chosen, texts))
    if as_json:
        out.as_json({"texts": len(texts), "embedders": [_wire(row) for row in rows]})
    else:
        out.line(table(rows))
        out.note("What the columns mean: `ragpilot embed-bench --help`.")
    return DONE if any(row.figures for row in rows) else FAILED


def candidates_of(environment: Environment, others: Sequence[EmbedderSettings]) -> list[EmbedderSettings]:
    """The embedders to compare, each once: the embedded, the configured, a local model server's, the others."""
    from ragpilot.bootstrap.embedders import usual_embedders

    usual = usual_embedders(environment.settings.embedder)
    return list({label_of(chosen): chosen for chosen in (*usual, *others)}.values())


def parse(text: str) -> EmbedderSettings:
    """``KIND[:MODEL][@URL]`` as settings. Raises InvalidRequestError."""
    from ragpilot.bootstrap.embedders import WITHOUT

    match = re.fullmatch(r"(?P<kind>[a-z]+)(:(?P<model>.+?))?(@(?P<url>https?://.+))?", text)
    try:
        if match is None:
            raise ValueError
        chosen = EmbedderSettings.model_validate(match.groupdict())
    except ValueError:
        kinds = ", ".join(get_args(EmbedderSettings.model_fields["kind"].annotation))
        hint = f"KIND is one of {kinds}; :MODEL and @URL may follow."
        raise InvalidRequestError(f"--with {text!r} names no embedder.", field="with", hint=hint) from None
    for name in WITHOUT.get(chosen.kind, ()):
        if getattr(chosen, name) is not None:
            raise InvalidRequestError(f"--with {text!r}: {chosen.kind} takes no {name}.", field="with")
    return chosen


def label_of(chosen: EmbedderSettings) -> str:
    """An embedder in few words."""
    from ragpilot.bootstrap.embedders import DEFAULT_MODELS

    model = chosen.model or DEFAULT_MODELS.get(chosen.kind)
    return " ".join(filter(None, (chosen.kind, model, chosen.url and f"at {chosen.url}")))


def table(rows: Sequence[Row]) -> str:
    """The figures, a line an embedder; below them those that could not be measured, and why."""
    measured = [(row.label, row.figures) for row in rows if row.figures]
    shared = {name for name, times in Counter(figures.name for _, figures in measured).items() if times > 1}
    cells = [[title for title, _, _ in _COLUMNS]]
    for label, figures in measured:
        named = label if figures.name in shared else figures.name
        cells.append([named, *(form.format(getattr(figures, name)) for _, name, form in _COLUMNS[1:])])
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    lines = ["  ".join([name.ljust(widths[0]), *map(str.rjust, figures, widths[1:])]) for name, *figures in cells]
    return "\n".join([*lines, *(f"not measured: {row.label}: {row.problem}" for row in rows if not row.figures)])


async def _row(environment: Environment, chosen: EmbedderSettings, texts: Sequence[Text]) -> Row:
    from ragpilot.bootstrap.embedders import embedder_of
    from ragpilot.evaluation.embedding_bench import measure

    settings = environment.settings.model_copy(update={"embedder": chosen})
    # A state folder of its own: what is remembered of the configured embedder must not be written over.
    own = environment.model_copy(update={"settings": settings, "state": environment.state / "embed-bench"})
    label = label_of(chosen)
    try:
        async with asyncio.timeout(SECONDS), aclosing(await embedder_of(own)) as embedder:
            return Row(label, await measure(embedder, texts))
    except (EmbedderError, ConfigError) as error:
        return Row(label, None, clean_line(str(error)))
    except TimeoutError:
        return Row(label, None, f"it took longer than {SECONDS:g} s.")


def _wire(row: Row) -> dict[str, Any]:
    if row.figures is None:
        return {"embedder": row.label, "problem": row.problem}
    return {"embedder": row.label, **asdict(row.figures)}
