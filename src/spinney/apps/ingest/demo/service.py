"""The settings of the demo's service, which is set up by the commands that the guide names."""

import json

from spinney.apps.demo_tools import run_command
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.demo.plan import Plan

PROFILE = "demo"
ARCHIVE = "archive"
"""The folder of stored objects."""
DEPOSITOR = "depositor@example.org"
# JSON strings are valid in TOML. The disk of a machine that runs the demo may be fuller than an archive's should be.
_SETTINGS = """home = "home"
storage = {{ main = {{ url = {archive} }} }}
minters = {{ main = {{ naan = "99999", shoulder = "fk4" }} }}
working = {{ limit = 0.99, warning = 0.99 }}
"""
_MAIL = 'mail = {{ host = {host}, port = {port}, security = "none", sender = "Demo <demo@example.org>" }}\n'
_PROFILE = """collection = "demo"
hosts = [{host}]
report = {{ batch = ["{depositor}"], admins = [], kind = "attached" }}
"""


def set_up(plan: Plan, host: str) -> settings.Settings:
    """Write settings and profile, make the store, and return the settings as the service reads them.

    ``host``: the file server, which may be fetched from although it is this machine. Raises UsageError where ``init``
    fails, which has printed why.
    """
    text = _SETTINGS.format(archive=json.dumps(str(plan.out / ARCHIVE)))
    if plan.smtp is not None:
        text += _MAIL.format(host=json.dumps(plan.smtp[0]), port=plan.smtp[1])
    (plan.out / settings.FILE).write_text(text)
    profiles = plan.out / "home" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / f"{PROFILE}.toml").write_text(_PROFILE.format(host=json.dumps(host), depositor=DEPOSITOR))
    run_command("init")
    run_command("ingest", "init")
    return settings.load()
