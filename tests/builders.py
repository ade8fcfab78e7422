"""Values for tests, with everything that a test does not care about filled in."""

from __future__ import annotations

import uuid

from ragpilot.ingest.read import content_hash
from ragpilot.lexical import document_vector
from ragpilot.types import AskRequest, Chunk, ContextBlock, Hit, IndexedChunk

EVERYONE = frozenset({"team:everyone"})


def chunk(
    path: str = "src/app.py",
    text: str = "def run():\n    return 1",
    *,
    symbol: str | None = None,
    header: str | None = None,
    source_type: str = "code-python",
    start: int = 1,
    end: int = 2,
    readers: frozenset[str] = EVERYONE,
    corpus: str = "default",
    mtime_ns: int = 1_700_000_000_000_000_000,
    indexed_at: int = 1_700_000_000,
) -> Chunk:
    document_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{corpus}/{path}"))
    return Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{corpus}/{path}/{symbol}/{start}/{text}")),
        document_id=document_id,
        corpus=corpus,
        path=path,
        source_type=source_type,
        symbol=symbol,
        title=symbol or path,
        header=header if header is not None else f"{path.replace('/', ' ').replace('.', ' ')} {symbol or ''}".strip(),
        text=text,
        start_line=start,
        end_line=end,
        readers=readers,
        content_hash=content_hash(text.encode("utf-8", "surrogatepass")),
        mtime_ns=mtime_ns,
        size=len(text),
        indexed_at=indexed_at,
    )


def indexed(item: Chunk) -> IndexedChunk:
    return IndexedChunk(item, document_vector(item.text, path=item.path, symbol=item.symbol, header=item.header))


def hit(item: Chunk | None = None, *, score: float = 0.6, rank: int = 1) -> Hit:
    return Hit(item or chunk(), score, rank)


def block(number: int, item: Hit) -> ContextBlock:
    return ContextBlock(number, item, item.chunk.text, len(item.chunk.text) // 4, item.chunk.text)


def request(question: str, **given: object) -> AskRequest:
    return AskRequest(question=question, request_id="request-1", **given)  # type: ignore[arg-type]
