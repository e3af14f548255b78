"""Whether all who are at work can read what is about to be registered."""

from spinney.model.errors import Refused
from spinney.model.types import Isolation, TypeSpec
from spinney.store.sql.connection.database import Tx

EXTERNAL_SINCE = "0007"
"""The schema with which external stages came. Code of an older one can read no type that has some."""


def require_readable_by_nodes(tx: Tx, spec: TypeSpec) -> None:
    """Raise Refused where a node is at work that cannot read what an external stage is: it could work no more."""
    if all(stage.isolation is not Isolation.EXTERNAL for stage in spec.stages):
        return
    older = tx.one(
        "select name, host, version from nodes where state <> 'left' and coalesce(schema_version, '') < ? limit 1",
        (EXTERNAL_SINCE,),
    )
    if older is not None:
        raise Refused(
            f"job type {spec.name!r} has an external stage, which node {older[0]} on {older[1]} (Spinney {older[2]}) "
            f"does not understand; upgrade that node first"
        )
