"""The operations of an ingest service as values: each verb has its parameters as fields, and runs on a service.

The command line and the server share them: ``cli`` makes one and runs it on a local service, or sends it to ``routes``,
which runs it with the name and the rights of the caller. Both show the same answer. A payload that is submitted
(``deposits``) is a stream beside its description.
"""

from spinney.apps.ingest.verbs import archive, batches, operations
from spinney.apps.ingest.verbs.base import Verb, written

VERBS: tuple[type[Verb], ...] = (
    batches.Status,
    batches.Batches,
    batches.Objects,
    batches.Object,
    batches.Report,
    operations.Requeue,
    operations.Delete,
    operations.Sweep,
    operations.Hold,
    operations.Release,
    operations.Pause,
    operations.Unpause,
    archive.Find,
    archive.Fixity,
    archive.Profiles,
    archive.Fetch,
    archive.Token,
)

__all__ = ["VERBS", "Verb", "written"]
