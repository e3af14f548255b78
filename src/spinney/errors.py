"""Spinney's exceptions, for applications to raise and to catch, and helpers for messages: ``did_you_mean`` suggests the
nearest name, ``listed`` lists the allowed ones."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.client.errors import ServerUnavailable, UnexpectedResponse
    from spinney.model.errors import (
        AuditBroken,
        BadLogin,
        BadName,
        BadParameters,
        CommitUncertain,
        Cycle,
        DuplicateKey,
        Forbidden,
        NodeRefused,
        NoSuch,
        NoSuchJob,
        NotVisible,
        Refused,
        SpinneyError,
        StaleFence,
        StoreLocked,
        StoreUnavailable,
        StoreUnusable,
        TooManyAttempts,
        UnknownType,
        UnlawfulTransition,
        UsageError,
    )
    from spinney.model.values.hints import did_you_mean, listed

__all__ = [
    "AuditBroken",
    "BadLogin",
    "BadName",
    "BadParameters",
    "CommitUncertain",
    "Cycle",
    "DuplicateKey",
    "Forbidden",
    "NoSuch",
    "NoSuchJob",
    "NodeRefused",
    "NotVisible",
    "Refused",
    "ServerUnavailable",
    "SpinneyError",
    "StaleFence",
    "StoreLocked",
    "StoreUnavailable",
    "StoreUnusable",
    "TooManyAttempts",
    "UnexpectedResponse",
    "UnknownType",
    "UnlawfulTransition",
    "UsageError",
    "did_you_mean",
    "listed",
]

_HOMES = {
    "spinney.client.errors": (
        "ServerUnavailable",
        "UnexpectedResponse",
    ),
    "spinney.model.errors": (
        "SpinneyError",
        "UsageError",
        "BadName",
        "BadParameters",
        "UnknownType",
        "UnlawfulTransition",
        "NoSuchJob",
        "Refused",
        "NoSuch",
        "NotVisible",
        "Forbidden",
        "BadLogin",
        "TooManyAttempts",
        "DuplicateKey",
        "Cycle",
        "StaleFence",
        "StoreUnusable",
        "StoreUnavailable",
        "StoreLocked",
        "CommitUncertain",
        "AuditBroken",
        "NodeRefused",
    ),
    "spinney.model.values.hints": (
        "did_you_mean",
        "listed",
    ),
}
__getattr__, __dir__ = on_demand(__name__, _HOMES)
