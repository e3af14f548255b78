"""Spinney's exceptions, for applications to raise and to catch, and helpers for messages: ``did_you_mean`` suggests the
nearest name, ``listed`` lists the allowed ones, ``counted`` gives a count with its noun."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.client.errors import ServerUnavailable as ServerUnavailable
    from spinney.client.errors import UnexpectedResponse as UnexpectedResponse
    from spinney.model.errors import AuditBroken as AuditBroken
    from spinney.model.errors import BadLogin as BadLogin
    from spinney.model.errors import BadName as BadName
    from spinney.model.errors import BadParameters as BadParameters
    from spinney.model.errors import CommitUncertain as CommitUncertain
    from spinney.model.errors import Cycle as Cycle
    from spinney.model.errors import DiskFull as DiskFull
    from spinney.model.errors import DuplicateKey as DuplicateKey
    from spinney.model.errors import Forbidden as Forbidden
    from spinney.model.errors import NodeRefused as NodeRefused
    from spinney.model.errors import NoSuch as NoSuch
    from spinney.model.errors import NoSuchJob as NoSuchJob
    from spinney.model.errors import NotVisible as NotVisible
    from spinney.model.errors import Refused as Refused
    from spinney.model.errors import SpinneyError as SpinneyError
    from spinney.model.errors import StaleFence as StaleFence
    from spinney.model.errors import StoreLocked as StoreLocked
    from spinney.model.errors import StoreUnavailable as StoreUnavailable
    from spinney.model.errors import StoreUnusable as StoreUnusable
    from spinney.model.errors import SubmissionUnfinished as SubmissionUnfinished
    from spinney.model.errors import TooManyAttempts as TooManyAttempts
    from spinney.model.errors import UnknownType as UnknownType
    from spinney.model.errors import UnlawfulTransition as UnlawfulTransition
    from spinney.model.errors import UsageError as UsageError
    from spinney.model.values.hints import did_you_mean as did_you_mean
    from spinney.model.values.hints import listed as listed
    from spinney.model.values.texts import counted as counted
else:
    __all__, __getattr__, __dir__ = on_demand(
        __name__,
        {
            "spinney.client.errors": "ServerUnavailable UnexpectedResponse",
            "spinney.model.errors": (
                "AuditBroken BadLogin BadName BadParameters CommitUncertain Cycle DiskFull DuplicateKey "
                "Forbidden NodeRefused NoSuch NoSuchJob NotVisible Refused SpinneyError StaleFence StoreLocked "
                "StoreUnavailable StoreUnusable SubmissionUnfinished TooManyAttempts UnknownType UnlawfulTransition "
                "UsageError"
            ),
            "spinney.model.values.texts": "counted",
            "spinney.model.values.hints": "did_you_mean listed",
        },
    )
