"""The tool that writes, over fakes: what is indexed, what is refused, and what is told of a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

from ragpilot.actors import token_hash
from ragpilot.config import ActorSettings, CorpusSettings
from ragpilot.errors import RootError
from ragpilot.types import IngestReport, LeftOut
from server import mcp_ingest, mcp_tool
from server.logs import SECURITY
from tests.server.agents import SECRET, Told, address, agent, text_of
from tests.server.support import LOCAL_TOKEN, PROGRESS, REPORT, ScriptedIngestion, Stand, running, settings_of, until


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a folder, a file, links that leave it and one that does not; beside it, what must not be read."""
    root = tmp_path / "root"
    for folder in (root / "src", tmp_path / "outside"):
        folder.mkdir(parents=True)
    (root / "src/a.py").write_text("a = 1\n")
    (tmp_path / "outside/secret.py").write_text("secret = 1\n")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out.py").symlink_to(tmp_path / "outside/secret.py")
    (root / "in").symlink_to(root / "src")
    (root / "loop").symlink_to(root / "loop")
    return root


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The lines of the security level."""
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno == SECURITY:
                lines.append(record.getMessage().rpartition(" (")[0])

    handler = Handler()
    logging.getLogger().addHandler(handler)
    yield lines
    logging.getLogger().removeHandler(handler)


async def ingest(stand: Stand, arguments: dict[str, Any], told: Told | None = None) -> CallToolResult:
    async with running(await stand.app()) as server, agent(address(server), token=LOCAL_TOKEN) as client:
        return await client.call_tool("rag_ingest", arguments, progress_callback=told)


def standing(tree: Path, ingestion: ScriptedIngestion) -> Stand:
    return Stand(settings=settings_of(corpora=[CorpusSettings(roots=[str(tree)])]), ingestion=ingestion)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("../outside", "must not hold '..'"),
        ("src/../../outside", "must not hold '..'"),
        ("src/..", "must not hold '..'"),
        ("..\\outside", "must not hold '..'"),
        ("/etc", "not absolute"),
        ("//etc", "not absolute"),
        ("C:\\Windows", "not absolute"),
        ("\\\\host\\share", "not absolute"),
        ("out", "must lie inside a root"),
        ("out/secret.py", "must lie inside a root"),
        ("out.py", "must lie inside a root"),
        ("loop", "leads nowhere"),
        ("src/absent.py", "names nothing inside the roots"),
        ("~/x", "names nothing inside the roots"),
        ("x" * 300, "leads nowhere"),
        ("", "'path' must be"),
        (" ", "'path' must be"),
        ("a\0b", "'path' must be"),
        (7, "'path' must be"),
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused_and_logged(
    tree: Path, audit: list[str], path: Any, words: str
) -> None:
    ingestion = ScriptedIngestion()
    result = await ingest(standing(tree, ingestion), {"path": path})
    assert result.is_error
    assert "outside" not in text_of(result)
    assert words in text_of(result)
    assert not ingestion.runs
    shown = ascii({"path": path})[:300]
    assert audit == [f"rag_ingest by local, {shown}: invalid_request"]


@pytest.mark.asyncio
async def test_an_absolute_path_is_refused_even_inside_the_root(tree: Path) -> None:
    ingestion = ScriptedIngestion()
    assert "not absolute" in text_of(await ingest(standing(tree, ingestion), {"path": str(tree / "src")}))
    assert not ingestion.runs


@pytest.mark.asyncio
@pytest.mark.parametrize(("path", "place"), [("src", "src"), ("./src/a.py", "src/a.py"), ("in", "src"), (".", None)])
async def test_a_path_inside_is_indexed_to_its_end(tree: Path, audit: list[str], path: str, place: str | None) -> None:
    report = IngestReport(
        "default", "partial", 2, 1, 0, 3, 9, 9, (LeftOut("x.png", "binary"), LeftOut("y.png", "binary")),
        (LeftOut("z.py", "unreadable", SECRET),), 1.25, 0.5, ("A warning.",), notes=("It is cut anew.",),
    )  # fmt: skip
    ingestion, told = ScriptedIngestion(events=(PROGRESS, report)), Told()
    result = await ingest(standing(tree, ingestion), {"path": path}, told)
    assert not result.is_error
    assert text_of(result) == (
        "default: 2 new, 1 changed, 3 removed; 9 passages in all; 1.2 s.\n"
        "Left out: 2 binary (not text): x.png, y.png\nFailed: z.py: unreadable\nIt is cut anew.\n"
        "Warning: A warning."
    )
    found = result.structured_content
    assert (found["outcome"], found["leftOut"], found["failed"]) == (
        "partial", {"binary": 2}, [{"path": "z.py", "reason": "unreadable"}],
    )  # fmt: skip
    ((actor, corpus, where, rebuild, bodies),) = ingestion.runs
    assert (actor.name, corpus, rebuild, bodies) == ("local", "default", False, False)
    assert where == (None if place is None else (tree / place).resolve())
    assert told.messages[0] == "Looking at files"
    shown = ascii({"path": path})
    assert audit == [f"rag_ingest by local, {shown}: partial"]


@pytest.mark.asyncio
async def test_a_path_that_is_indexed_and_gone_is_taken(tree: Path, audit: list[str]) -> None:
    ingestion = ScriptedIngestion(indexed=("gone.py",))
    assert not (await ingest(standing(tree, ingestion), {"path": "src/gone.py"})).is_error
    assert [run[2] for run in ingestion.runs] == [tree / "src/gone.py"]
    assert audit == ["rag_ingest by local, {'path': 'src/gone.py'}: complete"]


@pytest.mark.asyncio
@pytest.mark.parametrize("arguments", [{"path": "."}, {"path": "src"}])
async def test_who_may_read_no_collection_has_none_to_index(arguments: dict[str, str]) -> None:
    robot = ActorSettings(name="robot", principals=[], permissions=["ingest"], tokens=[token_hash("of-robot")])
    stand = Stand(settings=settings_of(actors=[robot]))
    async with running(await stand.app()) as server, agent(address(server), token="of-robot") as client:
        result = await client.call_tool("rag_ingest", arguments)
    assert (result.is_error, text_of(result)) == (True, "There is no collection that you may index.")
    assert not stand.ingestion.runs


@pytest.mark.asyncio
async def test_a_second_run_is_refused_while_one_is_under_way(tree: Path, audit: list[str]) -> None:
    ingestion = ScriptedIngestion(gate=asyncio.Semaphore(0))
    async with (
        running(await standing(tree, ingestion).app()) as server,
        agent(address(server), token=LOCAL_TOKEN) as client,
    ):
        first = asyncio.create_task(client.call_tool("rag_ingest", {"path": "."}))
        await until(lambda: ingestion.runs)
        second = await client.call_tool("rag_ingest", {"path": "src"})
        assert second.is_error
        assert text_of(second) == "A run of ingestion is under way. Wait for its end and ask again."
        ingestion.gate.release()  # type: ignore[union-attr]
        assert (await first).structured_content["outcome"] == "complete"
    assert audit == [
        "rag_ingest by local, {'path': 'src'}: ingest_running",
        "rag_ingest by local, {'path': '.'}: complete",
    ]


@pytest.mark.asyncio
async def test_a_run_that_takes_long_goes_on_behind_its_caller(
    tree: Path, audit: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_ingest, "UNWATCHED_SECONDS", 0.05)
    ingestion = ScriptedIngestion(gate=asyncio.Semaphore(0))
    async with (
        running(await standing(tree, ingestion).app()) as server,
        agent(address(server), token=LOCAL_TOKEN) as client,
    ):
        result = await client.call_tool("rag_ingest", {"path": "."})
        assert (result.is_error, result.structured_content["outcome"]) == (False, "running")
        assert "goes on in the server" in text_of(result)
        assert ingestion.ended == 0
        # One who sees progress waits for the end; one who leaves ends nothing either.
        ingestion.gate.release()  # type: ignore[union-attr]
        await until(lambda: ingestion.ended == 1)
        ingestion.events = (PROGRESS, PROGRESS, REPORT)
        told = Told()
        call = asyncio.create_task(client.call_tool("rag_ingest", {"path": "."}, progress_callback=told))
        await until(lambda: len(ingestion.runs) == 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: len(audit) == 2)
        assert ingestion.ended == 1
        for _ in range(2):
            ingestion.gate.release()  # type: ignore[union-attr]
        await until(lambda: ingestion.ended == 2)
    assert [line.rpartition(": ")[2] for line in audit] == ["running", "left by its caller"]


@pytest.mark.asyncio
async def test_a_run_under_way_shows_in_its_collection_to_those_who_may_index(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    corpora = [CorpusSettings(roots=[str(tree)]), CorpusSettings(name="docs", roots=[str(tmp_path / "docs")])]
    ingestion = ScriptedIngestion(gate=asyncio.Semaphore(0))
    stand = Stand(settings=settings_of(corpora=corpora), ingestion=ingestion)
    async with (
        running(await stand.app()) as server,
        agent(address(server), token=LOCAL_TOKEN) as client,
        agent(address(server)) as asker,
    ):

        async def shown(by: Client) -> tuple[list[bool], str]:
            found = await by.call_tool("rag_collections")
            return [one["indexing"] for one in found.structured_content["collections"]], text_of(found)

        call = asyncio.create_task(client.call_tool("rag_ingest", {"path": ".", "collection": "docs"}))
        await until(lambda: ingestion.runs)
        flags, words = await shown(client)
        assert (flags, words.count("being indexed now")) == ([False, True], 1)
        assert (await shown(asker))[0] == [False, False]
        ingestion.gate.release()  # type: ignore[union-attr]
        await call
        assert (await shown(client))[0] == [False, False]


@pytest.mark.asyncio
async def test_progress_grows_towards_a_total_through_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tool, "PROGRESS_SECONDS", 0.0)
    told: list[tuple[float, float | None]] = []

    async def report(progress: float, total: float | None = None, message: str | None = None) -> None:
        assert message
        told.append((progress, total))

    progress = mcp_tool.Progress(report, watched=True)
    await progress.tell("Looking at files", always=True)
    await progress.tell_of("scan", "Looking at files", done=0, total=0)
    await progress.tell_of("chunks", "Reading", done=3, total=10)
    await progress.tell("Still at it")
    await progress.tell_of("chunks", "Reading", done=10, total=10)
    await progress.tell_of("headers", "Embedding", done=0, total=4)
    await progress.tell_of("headers", "Embedding", done=4, total=4)
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers))
    assert told[0] == (1.0, None)
    assert told[1][1] is None
    assert [round(number - told[1][0]) for number, _ in told[2:]] == [3, 3, 10, 10, 14]
    assert [round(total - told[1][0]) for _, total in told[2:] if total] == [10, 10, 10, 14, 14]


@pytest.mark.asyncio
async def test_a_run_that_cannot_start_and_one_that_finds_nothing(tree: Path) -> None:
    broken = ScriptedIngestion(failure=RootError("The root is a file.", hint="Name a folder."))
    result = await ingest(standing(tree, broken), {"path": "."})
    assert (result.is_error, text_of(result)) == (True, "The root is a file. Name a folder.")
    nothing = ScriptedIngestion(events=(IngestReport("default", "nothing", 0, 0, 0, 0, 0, 0, (), (), 0.1, 0.1),))
    result = await ingest(standing(tree, nothing), {"path": "src"})
    assert not result.is_error
    assert text_of(result) == "default: no document there; 0 passages in all; 0.1 s.\nNothing is indexed there."


@pytest.mark.asyncio
async def test_what_is_left_out_is_named_with_the_reason(tree: Path) -> None:
    files = [LeftOut(f"ignored/{n}.py", "ignored") for n in range(1_200)]
    files += [LeftOut("big.py", "too large", SECRET), LeftOut(".env", "secret file"), LeftOut("x", "some new reason")]
    report = IngestReport("default", "complete", 1, 0, 0, 0, 9, 9, tuple(files), (), 0.1, 0.1)
    result = await ingest(standing(tree, ScriptedIngestion(events=(report,))), {"path": "."})
    assert text_of(result).splitlines()[1:] == [
        "Left out: 1,200 ignored (ignored by .gitignore, .ragpilotignore or the usual excludes): ignored/0.py, "
        "ignored/1.py, ignored/2.py, ignored/3.py, ignored/4.py and 1,195 more",
        "Left out: 1 too large (larger than the 1,000,000 bytes that a file may have (ingest.max_file_bytes)): big.py",
        "Left out: 1 secret file (known by its name to hold secrets, and never indexed): .env",
        "Left out: 1 some new reason: x",
    ]
    found = result.structured_content
    assert found["leftOut"] == {"ignored": 1_200, "too large": 1, "secret file": 1, "some new reason": 1}
    assert len(found["leftOutFiles"]) == 20
    assert [one["path"] for one in found["leftOutFiles"][:3]] == ["big.py", ".env", "x"]
    assert SECRET not in str(found)


@pytest.mark.asyncio
@pytest.mark.parametrize("linked", [False, True])
async def test_no_place_of_the_machine_is_told(tree: Path, tmp_path: Path, linked: bool) -> None:
    root = tree
    if linked:
        root = tmp_path / "link"
        root.symlink_to(tree)
    warnings = (
        f"Nothing is indexed: all there is in {tree}/src/a.py was left out.",
        f"{tree} is empty.",
        f"{tree}-other stays.",
    )
    told = [
        "Warning: Nothing is indexed: all there is in src/a.py was left out.",
        "Warning: root is empty.",
        f"Warning: {'the folder above/root-other'} stays.",
    ]
    report = IngestReport("default", "nothing", 0, 0, 0, 0, 0, 0, (), (), 0.1, 0.1, warnings)
    result = await ingest(standing(root, ScriptedIngestion(events=(report,))), {"path": "."})
    assert text_of(result).splitlines()[1:] == told
    assert str(tmp_path) not in str(result.structured_content)
    failure = RootError(f"The root {root} is no folder.", hint=f"Name the folder that holds it: {tmp_path}")
    refused = await ingest(standing(root, ScriptedIngestion(failure=failure)), {"path": "."})
    assert text_of(refused) == "The root root is no folder. Name the folder that holds it: the folder above"


@pytest.mark.asyncio
async def test_places_in_several_roots_keep_the_name_of_their_root(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    corpus = CorpusSettings(roots=[str(tree), str(tmp_path / "docs")])
    report = IngestReport("default", "nothing", 0, 0, 0, 0, 0, 0, (), (), 0.1, 0.1, (f"{tree}/a, {tmp_path}/docs/b.",))
    stand = Stand(settings=settings_of(corpora=[corpus]), ingestion=ScriptedIngestion(events=(report,)))
    assert text_of(await ingest(stand, {"path": "."})).endswith("Warning: root/a, docs/b.")


@pytest.mark.asyncio
async def test_a_collection_narrows_where_the_path_is_looked_for(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    corpora = [CorpusSettings(roots=[str(tree)]), CorpusSettings(name="docs", roots=[str(tmp_path / "docs")])]
    for arguments, corpus in (
        ({"path": "src"}, "default"),
        ({"path": "."}, "default"),
        ({"path": ".", "collection": "docs"}, "docs"),
    ):
        ingestion = ScriptedIngestion()
        await ingest(Stand(settings=settings_of(corpora=corpora), ingestion=ingestion), arguments)
        assert [run[1] for run in ingestion.runs] == [corpus]
    ingestion = ScriptedIngestion()
    stand = Stand(settings=settings_of(corpora=corpora), ingestion=ingestion)
    result = await ingest(stand, {"path": "src", "collection": "docs"})
    assert result.is_error
    assert not ingestion.runs
