"""Which jobs: the filter of lists, counts and verbs."""

from collections.abc import Sequence
from typing import TypedDict


class JobFilter(TypedDict, total=False):
    """Every field that is given must fit."""

    state: Sequence[str] | None
    type: str | None
    queue: str | None
    stage: str | None
    collection: str | None
    submitter: str | None
    root: int | None
    """Only in the tree of this job, itself included."""
    parent: int | None
    roots: bool
    """Only jobs at the top of a tree."""
    node: str | None
    message: str | None
    """Only those whose message holds this text."""
    failure: str | None
    """The beginning of a fingerprint."""
    created_after: int | None
    """Microseconds since 1970 UTC."""
    created_before: int | None
