"""The application: its job types and queues. The stages are in ``check_stages``, ``sequences`` and ``upkeep``."""

from spinney import Spinney
from spinney.apps.monitor import settings
from spinney.errors import UsageError
from spinney.jobs import INTERNAL
from spinney.reports import MailSettings, Outbox

app = Spinney(submit=INTERNAL)
"""People start checks through ``requests``, which names their services."""

CHECKS = app.queue("monitor", sharing="quota", turn=10)
"""The queue of checks. Each sequence is a share: they take turns of up to ten services, and none may hold all workers
while others wait."""
UPKEEP = app.queue("monitor-upkeep")
HOST_LOCK = "monitor-host:"
"""The prefix of the lock that a check holds while one of its tasks runs, one for each host."""
app.lock(f"{HOST_LOCK}*", capacity=settings.load().network.host_limit)

sequences = app.pipeline(
    "monitor.sequence",
    queue=UPKEEP,
    children="settled",
    description="Check services: a job for each of them",
)
checks = app.pipeline("monitor.check", queue=CHECKS, description="Check one service: a stage for each task")


def mail_settings() -> MailSettings:
    """Return the mail server's settings, read at each try. Raises UsageError where there are none."""
    mail = settings.load().mail
    if mail is None:
        raise UsageError("the monitor's settings have no [mail]; name the server, and retry")
    return MailSettings(host=mail.host, port=mail.port, security=mail.security)


outbox = Outbox(app, mail=mail_settings)
