"""Ingest: a deposit service, from manifest to report.

A batch (``ingest.batch``) is the payload that a depositor submits: a file, a container, or a manifest of many. It makes
one job for each object (``ingest.object``), whose stages estimate, provision, download, process, record and notify.
When all objects have settled, the batch reports; when failed objects have been requeued and settle, it reports again.

    spinney node spinney.apps.ingest:app
    spinney ingest submit deposit.checkm --profile maps

It uses the engine as an application of anybody would, by its public modules only: ``spinney`` to define stages;
``spinney.jobs``, ``spinney.operations`` and ``spinney.errors`` to read and change jobs with the rights of a person;
``spinney.command_line`` and ``spinney.routes`` for commands and routes of its own; ``spinney.tables`` for tables of its
own; ``spinney.reports`` to send mail and webhooks, ``spinney.safe_http`` to fetch from addresses that users name.

- ``application``: its job types and queues. ``batches``, ``objects``, ``access`` and ``upkeep``: their stages.
- ``config``: settings and profiles. ``deposits``: the parameters of jobs, and the states that people see.
- ``manifests``, ``fetching``, ``identifiers``, ``storage``, ``inventory``, ``report``: the building blocks of the
  stages. None of them depends on jobs. ``spinney.containers`` and ``spinney.files`` are others.
- ``verbs``: the operations for those who run the service. ``cli`` runs them locally or through ``routes``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.apps.ingest.application import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Load ``app`` with all its stages on first use, so that importing one package does not import the others."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # These modules give the application its stages.
    from spinney.apps.ingest import objects  # noqa: F401
    from spinney.apps.ingest.access import package_job  # noqa: F401
    from spinney.apps.ingest.application import app
    from spinney.apps.ingest.batches import stages  # noqa: F401
    from spinney.apps.ingest.upkeep import cleanup, fixity  # noqa: F401

    return app
