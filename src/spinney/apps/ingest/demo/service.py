"""The settings of the demo's service, and the submission of a batch.

The service is set up by the commands that the guide names, and used through the same verbs as ``spinney
ingest``.
"""

import json
import subprocess
from pathlib import Path

from spinney.apps.demo_tools import COMMAND
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.demo.plan import Plan
from spinney.apps.ingest.verbs import arrivals
from spinney.apps.ingest.verbs.requeues import Requeue
from spinney.apps.ingest.verbs.service import Service
from spinney.apps.ingest.verbs.submission import Submit

PROFILE = "demo"
ARCHIVE = "archive"
"""The folder of stored objects."""
DEPOSITOR = "depositor@example.org"
_TAKES_SPACE = "0.99"
"""The disk of a machine that runs the demo may be fuller than that of an archive should be."""


def set_up(plan: Plan, host: str) -> settings.Settings:
    """Write settings and profile, make the store, and return the settings as the service reads them.

    ``host``: the file server, which may be fetched from although it is this machine. Raises CalledProcessError where
    ``init`` fails, which has printed why.
    """
    mail = "" if plan.smtp is None else _mail(*plan.smtp)
    (plan.out / settings.FILE).write_text(
        f'home = "home"\n{mail}\n[storage.main]\nurl = {_text(str(plan.out / ARCHIVE))}\n\n'
        '[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n\n'
        f"[working]\nlimit = {_TAKES_SPACE}\nwarning = {_TAKES_SPACE}\n"
    )
    profiles = plan.out / "home" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / f"{PROFILE}.toml").write_text(
        f'collection = "demo"\nhosts = [{_text(host)}]\n\n'
        f'[report]\nbatch = ["{DEPOSITOR}"]\nadmins = []\nkind = "attached"\n'
    )
    for words in (["init"], ["ingest", "init"]):
        subprocess.run([*COMMAND, *words], check=True, stdout=subprocess.DEVNULL)
    return settings.load()


def submit(service: Service, manifest: Path) -> arrivals.Accepted:
    """Submit a manifest as the demo's depositor, and return the batch that was accepted."""
    with manifest.open("rb") as payload:
        submission = Submit(name=manifest.name, profile=PROFILE, submitter=DEPOSITOR)
        return arrivals.submit(service, payload, submission)


def requeue(service: Service, bid: str) -> int:
    """Requeue the failed objects of a batch, and return how many."""
    return sum(item["requeued"] for item in Requeue(names=[bid]).run(service)["items"])


def _mail(host: str, port: int) -> str:
    """Return the table ``[mail]`` of the settings, for a server without TLS, as test servers are."""
    return f'\n[mail]\nhost = {_text(host)}\nport = {port}\nsecurity = "none"\nsender = "Demo <demo@example.org>"\n'


def _text(value: str) -> str:
    """Return a TOML string; JSON strings are valid in TOML."""
    return json.dumps(value)
