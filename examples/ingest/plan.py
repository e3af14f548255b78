"""The options of the demo, its output folder, and the settings of its service, which is set up by the commands that the
guide names."""

import json
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from examples.demo_tools import run_command
from spinney.apps.ingest.config import settings
from spinney.errors import UsageError

CACHES = frozenset({"__pycache__", "site-packages", "dist-packages"})
"""Folders that are left out of the standard library, since they contain other programs' files."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The folder to deposit, and the output folder with the places of everything in it."""

    source: Path
    leave_out: frozenset[str]
    """The names of entries that are not deposited, at any depth."""
    out: Path
    crash: bool
    """Whether the node is killed in the middle."""
    smtp: tuple[str, int] | None
    """Host and port of the mail server that gets the reports; None: no mail is sent."""

    @property
    def log(self) -> Path:
        return self.out / "node.log"


def plan(environment: Mapping[str, str]) -> Plan:
    """Return the plan from ``SOURCE``, ``OUT``, ``CRASH`` and ``SMTP``, without creating anything.

    The caches of ``CACHES`` are left out of the standard library alone; a folder that is named is deposited whole.
    Raises UsageError for a source that is no folder, for folders that lie within each other, since the output would be
    deposited too, and for an invalid mail server.
    """
    named = environment.get("SOURCE")
    source = Path(named or sysconfig.get_path("stdlib")).expanduser().resolve()
    if not source.is_dir():
        raise UsageError(f"SOURCE={named} is no folder; name one, as in make demo SOURCE=/some/folder")
    out = Path(environment.get("OUT") or "demo-out").resolve()
    if out == source or source in out.parents or out in source.parents:
        raise UsageError(
            f"{source} and {out} lie within each other; put the output elsewhere with OUT=/some/folder"
        )
    return Plan(
        source=source,
        leave_out=frozenset() if named else CACHES,
        out=out,
        crash=environment.get("CRASH", "") not in ("", "0"),
        smtp=_smtp(environment.get("SMTP", "")),
    )


def _smtp(text: str) -> tuple[str, int] | None:
    """Return host and port of a mail server; None for empty text. Raises UsageError."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"SMTP={text} names no mail server; write SMTP=127.0.0.1:2525")
    return host, int(port)


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
