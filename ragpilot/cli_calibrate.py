"""`ragpilot calibrate`: floor and gate for an embedder that brings none of its own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ragpilot import cli_output as out
from ragpilot.exit_codes import DONE
from ragpilot.terminal_text import clean_line

if TYPE_CHECKING:
    from ragpilot.cli import Start
    from ragpilot.config import Environment
    from ragpilot.ports import Embedder
    from ragpilot.types import Calibration


@click.command(short_help="Fit floor and gate to the configured embedder.")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@click.pass_obj
def calibrate(start: Start, *, as_json: bool) -> int:
    """Fit floor and gate to the configured embedder, so that questions about anything else are refused.

    Needed once for each embedding model but the embedded one: models differ in how near they put texts that have
    nothing to do with each other. Some 600 short texts and questions that come with RagPilot are embedded; nothing of
    yours is read. The result is kept, and used by every corpus that is indexed with exactly this model.
    """
    return asyncio.run(run_calibrate(start.load(), as_json=as_json))


async def run_calibrate(environment: Environment, *, as_json: bool, embedder: Embedder | None = None) -> int:
    """Measure, keep and print. Raises EmbedderError and StateError."""
    from ragpilot.bootstrap.embedders import embedder_of
    from ragpilot.calibrations import keep
    from ragpilot.evaluation.calibration import calibrate as fit
    from ragpilot.evaluation.calibration_data import load_material
    from ragpilot.events import to_wire

    material = load_material()
    async with aclosing(embedder or await embedder_of(environment)) as measured:
        count = 2 * len(material.chunks) + len(material.answerable) + len(material.background)
        out.note(f"Embedding {count} texts and questions with {measured.identity.name} …")
        found = await fit(measured, material, now=datetime.now(UTC))
        own = measured.gate
    file = None if own else keep(environment.shared, found)
    if as_json:
        out.as_json({**to_wire(found), "kept": None if file is None else str(file)})
        return DONE
    _print(found)
    if own:
        out.note(f"Nothing is kept: RagPilot brings its own gate for this model, {own.threshold:.2f}.")
    else:
        out.line(f"Kept in {file}.")
        _tell_server(environment)
    return DONE


def _print(found: Calibration) -> None:
    from ragpilot.evaluation.calibration import tells_apart

    gate, refused = found.gate, (found.background_refused, found.answerable_refused)
    out.line(f"{clean_line(found.embedder.name)}, {found.embedder.dimensions} dimensions")
    out.line(f"  floor {found.floor:.2f}")
    out.line(
        f"  gate  {gate.threshold:.2f} at {gate.reference_chunks:,} chunks, {gate.per_decade:.2f} more at ten times"
    )
    out.line("  refuses {:.1%} of unrelated questions, {:.1%} of those that have an answer".format(*refused))
    if not tells_apart(found):
        out.note("Warning: this model does not tell questions well apart; expect wrong refusals, or too few.")


def _tell_server(environment: Environment) -> None:
    from ragpilot.runtime import owner

    holder = owner(environment.state)
    if holder is not None and holder.role == "serve":
        out.note(f"{holder} has read its bounds when it started: restart it.")
