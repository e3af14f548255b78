"""Secrets that a job type has no more, but its earlier jobs have: their values stay redacted."""

from dataclasses import replace

from spinney.define.params.redaction import has_secrets, secret_paths
from spinney.model.types import TypeSpec


def carried_on(stored: TypeSpec | None, declared: TypeSpec) -> TypeSpec:
    """Return the declaration with the secrets of the stored one that it does not have itself, and with those that the
    stored one has from declarations before it.

    A parameter that is declared secret again leaves the list. The order is fixed, so that a declaration that
    changes nothing equals the stored one, and no process has to read its registry again."""
    if stored is None or not (stored.former_secrets or has_secrets(stored.schema)):
        return declared
    former = {*stored.former_secrets, *declared.former_secrets, *secret_paths(stored.schema)}
    former -= {*secret_paths(declared.schema)}
    return replace(declared, former_secrets=tuple(sorted(former, key=repr)))
