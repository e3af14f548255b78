"""The application: its job types, its queues and its locks.

The stages are in ``check_stages``, ``sequences`` and ``upkeep``, which import this module; import ``app`` from the
package, which loads them all. The settings are read when this module is loaded, so a node has to be started again
before another ``host_limit`` counts."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney import Defer, Spinney
from spinney.apps.monitor import settings
from spinney.apps.settings_tables import require_mail_settings
from spinney.jobs import INTERNAL
from spinney.reports import Outbox
from spinney.tables import TablesUnusable

AWAY_S = 10.0
"""How long a stage waits before it tries again whether the database of the tables answers."""

app = Spinney(submit=INTERNAL)
"""Its job types are internal: people start checks through ``requests``, which names their services."""

CHECKS = app.queue("monitor", sharing="quota", turn=10)
"""The queue of checks. Each sequence is a share: they take turns of up to ten services, and none may hold all workers
while others wait."""
UPKEEP = app.queue("monitor-upkeep")
"""The queue of everything else: sequences, mails, thinning and harvests. It is apart from the checks, so that
a new sequence is expanded at once although thousands of checks wait."""
HOST_LOCK = "monitor-host:"
"""The prefix of the lock that a check holds while one of its tasks runs, one for each host. Its capacity is
the setting ``host_limit``: at most so many checks of services of one host run at a time, over all nodes."""
app.lock(f"{HOST_LOCK}*", capacity=settings.load().network.host_limit)

sequences = app.pipeline(
    "monitor.sequence",
    queue=UPKEEP,
    children="settled",
    description="Check services: a job for each of them",
)
"""One job for each request to check services. It continues when all of its checks have settled, whatever
became of them, so that ``summary`` counts failed ones, too."""
checks = app.pipeline("monitor.check", queue=CHECKS, description="Check one service: a stage for each task")
"""One job for each service of a sequence."""


@contextmanager
def tables_awaited() -> Iterator[None]:
    """Let a stage wait while the database of the tables does not answer, or it or the settings cannot be used until an
    operator has done what the message says: all jobs of that stage sleep, and one of them tries whether it works again.
    So an outage or a typing error uses no attempts, and what is to be checked is checked afterwards."""
    try:
        yield
    except (TablesUnusable, settings.SettingsUnusable) as error:
        raise Defer(AWAY_S, str(error), lane=True) from error


outbox = Outbox(app, mail=lambda: require_mail_settings(settings.load().mail, settings.FILE))
