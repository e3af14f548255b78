"""Check that all active nodes can read a type that is about to be registered."""

from spinney.model.errors import Refused
from spinney.model.types import Isolation, TypeSpec
from spinney.store.sql.connection.database import Tx

EXTERNAL_SINCE = "0007"
"""The schema that introduced external stages. Code of an older one cannot read types with them."""


def require_readable_by_nodes(tx: Tx, spec: TypeSpec) -> None:
    """Raise Refused while a node has not left that cannot read external stages, because it could not work any more."""
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
