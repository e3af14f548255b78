"""Failures of jobs, grouped by their fingerprint."""

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.model.values.lists import All


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A group of jobs that have failed with the same cause."""

    fingerprint: str
    type: str
    stage: str
    exception: str
    """The qualified name of the exception, with the handler's status code; else the outcome, or ``poison``."""
    message: str
    """The message of the first failure, without its numbers and paths."""
    first_us: int
    last_us: int
    jobs: int
    """How many are failed with it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroups(All[Failure]):
    """All jobs that are failed or orphaned, as of one snapshot."""

    items: Sequence[Failure]
    """The groups, the largest first, up to the limit."""
    jobs: int
    """How many failed by an attempt of their own."""
    causes: int
    """How many different fingerprints these have."""
    consequences: int
    """How many others failed because of their subjobs or of jobs that they need (or before causes were stored)."""
