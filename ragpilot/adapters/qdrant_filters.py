"""The conditions of requests to a Qdrant server; among them the readers predicate, which stands nowhere else."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from qdrant_client import models

from ragpilot.types import Actor, VectorName

RECORD_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, "ragpilot/collection-record"))
"""The point that holds a collection's revision. It has no readers, so no actor can read it."""


def readable_by(actor: Actor, *narrower: models.Condition) -> models.Filter:
    """What ``actor`` may read: chunks whose readers share a member with the actor's principals.

    Nothing for an actor without principals: a match of no values is no match, while a filter without any condition
    would match everything.
    """
    readers = models.FieldCondition(key="readers", match=models.MatchAny(any=sorted(actor.principals)))
    return models.Filter(must=[readers, *narrower])


def of_documents(document_ids: Iterable[str], *, except_ids: Iterable[str] = ()) -> models.Filter:
    """For writers: all chunks of these documents, apart from those with ``except_ids``."""
    documents = models.FieldCondition(key="document_id", match=models.MatchAny(any=list(document_ids)))
    return models.Filter(must=[documents], must_not=[having_ids(except_ids)])


def lacking(name: VectorName) -> models.Filter:
    """For writers: chunks without this vector."""
    return models.Filter(must_not=[models.HasVectorCondition(has_vector=name), having_ids([RECORD_ID])])


def chunks() -> models.Filter:
    """For writers: every chunk."""
    return models.Filter(must_not=[having_ids([RECORD_ID])])


def having_ids(ids: Iterable[str]) -> models.HasIdCondition:
    """Chunks with one of these ids; none for an empty list."""
    return models.HasIdCondition(has_id=list(ids))
