"""The version of a store's schema, and whether this code may work with it.

A schema is named by its last revision. A revision has a part *before* that only adds, so that nodes of the previous
version continue to work beside it, and perhaps a part *after* that removes what only they needed (``upgrades``). The
row ``works_with`` of ``meta`` names the last revision whose part *after* has run: code of an older schema may not work
with the store any more. So code of schema C works with a store of schema S if ``works_with`` <= C <= S.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spinney.model.errors import StoreUnusable

SCHEMA_VERSION = "0001"
"""The schema that this code works with."""
WORKS_WITH = "works_with"
COPYING = "copying"
"""The mark of a store that a copy is being written to; its value is the source."""
INDEX = "index:"
"""The prefix of marks for indexes of a revision that are still to be built: ``index:0004:jobs_by_x``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """The state of the schema of a store."""

    schema: str
    """The last revision whose part *before* has run; empty where none has."""
    meta: Mapping[str, str] = field(default_factory=dict)
    """The rows of ``meta``."""

    @property
    def works_with(self) -> str:
        """The oldest schema whose code may work with the store. Without a row of its own this is the store's schema."""
        return self.meta.get(WORKS_WITH, self.schema)

    def unbuilt(self, schema: str) -> list[str]:
        """Return the indexes that code of this schema relies on and that are still to be built, by name.
        Older code works without them."""
        meta = (mark.split(":") for mark in self.meta if mark.startswith(INDEX))
        return sorted(name for _, revision, name in meta if revision <= schema)


def require_workable(name: str, schema_state: SchemaState, *, schema: str = SCHEMA_VERSION) -> None:
    """Raise StoreUnusable, with what to do, unless code of this schema may work with the store."""
    if COPYING in schema_state.meta:
        raise StoreUnusable(
            f"{name} is part of a copy of {schema_state.meta[COPYING]} that is not finished; if none is at work, run "
            f"'spinney store copy' again"
        )
    if schema_state.schema < schema:
        raise StoreUnusable(
            f"{name} has schema {schema_state.schema or 'none'}, this Spinney needs {schema}; run 'spinney init'"
        )
    if schema < schema_state.works_with:
        raise StoreUnusable(
            f"{name} has schema {schema_state.schema}, this Spinney needs {schema} and may no longer "
            "work with it (only "
            f"those of {schema_state.works_with} or later may); upgrade Spinney on this host"
        )
    unbuilt = schema_state.unbuilt(schema)
    if unbuilt:
        raise StoreUnusable(
            f"{name} still lacks its index {unbuilt[0]}; wait for the 'spinney init' that builds it, or run it again"
        )


def incomplete(name: str, missing: str | None) -> StoreUnusable:
    """Return the error for a store in which a statement does not find a table or column, although its schema is the one
    that this code works with."""
    return StoreUnusable(
        f"{name} does not match this version of Spinney ({missing}): if it is being restored, wait until that is done; "
        f"if it was made by a Spinney from before the release of 0.1.0, make a new store"
    )
