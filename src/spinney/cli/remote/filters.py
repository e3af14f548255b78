"""Filters as the API writes them."""

from dataclasses import fields

from spinney.client.verbs.filters import JobFilter
from spinney.model.errors import UsageError
from spinney.model.jobs import Filter
from spinney.model.lineage import depth

_WORDS = {
    "states": "state",
    "type": "type",
    "queue": "queue",
    "stage": "stage",
    "collection": "collection",
    "submitter": "submitter",
    "root_id": "root",
    "parent_id": "parent",
    "roots_only": "roots",
    "node": "node",
    "message": "message",
    "fingerprint": "failure",
    "created_after_us": "created_after",
    "created_before_us": "created_before",
}


def which(filter_: Filter) -> JobFilter:
    """The same filter. Raises UsageError for what no server is asked."""
    found: JobFilter = {}
    for field in fields(Filter):
        value = getattr(filter_, field.name)
        if value is None or value is False:
            continue
        if field.name not in _WORDS:
            raise UsageError(
                f"a server is not asked for jobs by {field.name!r}; do it on a host that has the store"
            )
        found[_WORDS[field.name]] = list(value) if isinstance(value, tuple) else value  # type: ignore[literal-required]
    return found


def top(lineage: str) -> tuple[int, bool]:
    """The job of a lineage, and whether it is at the top of its tree."""
    return int(lineage.rpartition(".")[2]), depth(lineage) == 0
