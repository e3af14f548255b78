"""The operations of an ingest service are values: each verb has its parameters as fields, and runs on a service.

The command line and the server share them: ``cli`` makes one and runs it on a local service, or sends it to ``routes``,
which runs it with the name and the rights of the caller. Both show the same answer. None of them prints.

``base``          the base class of verbs, and the fields that several share
``service``       what every verb runs on: a person's control of the engine, the settings, the folders
``lookup``        batches, objects and profiles by the names that people use
``batches``       verbs that show batches, objects and reports
``elements``      the data of an object's job that staff see
``archive``       verbs for stored objects: find, check, fetch
``requeues``      the verb that requeues objects
``holds``         verbs that hold and release
``deletions``     verbs that delete batches with their files
``submission``    the description of a payload that is submitted
``arrivals``      a payload received and checked, and made a batch, in an order that survives a kill
``setup``         what a new service needs: folders, tables, storage roots

Whether a caller may see or change something is checked here, by the rights of the ``Service``, so that the command line
and the server need not.

Specified by ``tests/apps/ingest/verbs``, ``tests/apps/ingest/served/test_verbs.py`` (every verb, for every role) and
``tests/apps/ingest/served/test_attacks.py``.
"""

# These modules define the verbs.
from spinney.apps.ingest.verbs import archive, batches, deletions, holds, requeues  # noqa: F401
from spinney.apps.ingest.verbs.base import Verb as Verb
from spinney.apps.ingest.verbs.base import written as written

VERBS = tuple(Verb.__subclasses__())
"""All verbs, each of which has a route."""
