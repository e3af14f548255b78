"""Ingest is a deposit service for a digital library: it takes payloads, stores their objects, and reports.

A batch (``ingest.batch``) is the payload that a depositor submits: a file, a container, or a manifest of many. It makes
one job for each object (``ingest.object``), whose stages estimate, provision, download, process, record and notify.
When all objects have settled, the batch reports; when failed objects have been requeued and settle, it reports again.

    spinney node spinney.apps.ingest:app
    spinney ingest submit deposit.checkm --profile maps

It uses the engine as an application of anybody would, by its public modules only: ``spinney`` to define stages;
``spinney.jobs``, ``spinney.operations`` and ``spinney.errors`` to read and change jobs with the rights of a person;
``spinney.command_line`` and ``spinney.routes`` for commands and routes of its own; ``spinney.tables`` for tables of its
own; ``spinney.reports`` to send mail and webhooks, ``spinney.safe_http`` to fetch from addresses that users name.

The application and what its users call:

``application``  the job types and queues
``batches``      the stages of a batch: read a payload, make a job for each object, report
``objects``      the stages of an object, from the estimate of its size to the callback
``access``       packages of stored objects, made on request
``upkeep``       the hourly cleanup and the daily fixity check
``verbs``        the operations for those who run the service, as values
``cli``          the commands ``spinney ingest``, which run verbs locally or through a server
``routes``       the verbs over HTTP
``merritt``      the service as a consumer of Merritt's ingest queue

Building blocks, none of which depends on jobs:

``manifests``    lists of files or objects, in Checkm and JSON
``fetch``        files fetched from servers that depositors name
``identifiers``  ARKs and their minters
``storage``      versions of objects, on a file system or in S3 (OCFL)
``inventory``    what is in the archive, in SQL tables
``report``       the report of a batch as text, page, mail and files

What stages share:

``config``         settings, profiles, and the resources that a process opens once
``deposits``       the parameters of jobs, the identity of objects, and the states that people see
``admission``      how errors of a stage end its attempt, also those of a disk that is full or read-only
``byte_progress``  the progress of stages that read many bytes

``spinney.containers`` and ``spinney.files`` are further building blocks. No stage keeps anything in memory that the
next one needs: what a stage hands on is in the job's data, in its folder, in the storage or in the inventory, and each
can run again after a kill at any point.

Specified by ``tests/apps/ingest``: a folder for each package, ``tests/apps/ingest/whole`` for the use cases from
manifest to report with a node that is killed, and ``tests/apps/ingest/served`` for the routes.
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
