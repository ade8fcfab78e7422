"""The conditions of requests to the engine; among them the readers predicate, which stands nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from qdrant_edge import FieldCondition, Filter, HasIdCondition, HasVectorCondition, MatchAny

from ragpilot.types import Actor, VectorName

PointId = int | UUID | str
"""As the engine takes an id; it gives ids as UUIDs."""


def readable_by(actor: Actor, *narrower: HasIdCondition | HasVectorCondition) -> Filter:
    """What ``actor`` may read: chunks whose readers share a member with the actor's principals.

    For an actor without principals this matches nothing: the engine's MatchAny of an empty list does so, while a
    filter without any condition would match everything.
    """
    readers = FieldCondition(key="readers", match=MatchAny(any=sorted(actor.principals)))
    return Filter(must=[readers, *narrower])


def of_documents(document_ids: Iterable[str], *, except_ids: Iterable[PointId] = ()) -> Filter:
    """For writers: all chunks of these documents, apart from those with ``except_ids``."""
    documents = FieldCondition(key="document_id", match=MatchAny(any=list(document_ids)))
    return Filter(must=[documents], must_not=[having_ids(except_ids)])


def lacking(name: VectorName) -> Filter:
    """For writers: chunks without this vector."""
    return Filter(must_not=[HasVectorCondition(name)])


def of_ids(ids: Iterable[PointId]) -> Filter:
    """For writers: the chunks with these ids."""
    return Filter(must=[having_ids(ids)])


def having_ids(ids: Iterable[PointId]) -> HasIdCondition:
    """Chunks with one of these ids; none for an empty list."""
    return HasIdCondition(set(ids))
