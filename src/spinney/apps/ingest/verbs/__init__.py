"""The operations of an ingest service as values: each verb has its parameters as fields, and runs on a service.

The command line and the server share them: ``cli`` makes one and runs it on a local service, or sends it to ``routes``,
which runs it with the name and the rights of the caller. Both show the same answer. None of them prints.

- ``batches``, ``archive``: show batches, objects, reports, profiles and stored objects, and fetch the latter.
- ``requeues``, ``holds``, ``deletions``: change batches and objects.
- ``submission``, ``arrivals``: a payload that is submitted is a stream beside its description.
- ``service`` is what all of them run on; ``lookup`` finds batches and objects by the names that people use; ``setup``
  makes what a new service needs.
"""

from spinney.apps.ingest.verbs import archive, batches, deletions, holds, requeues
from spinney.apps.ingest.verbs.base import Verb, written

VERBS: tuple[type[Verb], ...] = (
    batches.Status,
    batches.Batches,
    batches.Objects,
    batches.Object,
    batches.Report,
    requeues.Requeue,
    deletions.Delete,
    deletions.Sweep,
    holds.Hold,
    holds.Release,
    holds.Pause,
    holds.Unpause,
    archive.Find,
    archive.Fixity,
    archive.Profiles,
    archive.Fetch,
    archive.Token,
)

__all__ = ["VERBS", "Verb", "written"]
