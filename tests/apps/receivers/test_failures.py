"""Staff get failures grouped by cause, and no mail twice for the same failures."""

from contextlib import closing
from pathlib import Path

import pytest

from contract.words import RealClock, Site
from spinney.apps.receivers import app, failures
from spinney.apps.receivers.application import exports
from spinney.errors import UsageError
from spinney.store.sql import open_store
from spinney.testing import StageHarness

SETTINGS = """[mail]
host = "127.0.0.1"
sender = "Receivers <receivers@example.org>"
staff = ["ann@example.org", "ben@example.org"]
url = "https://r.example.org/"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A store with failed exports of three receivers, two of them for one reason."""
    from new_store import new_store

    url = new_store(
        tmp_path / "spinney.db",
        lambda store: store.register([kind.spec for kind in app.types.values()], app.queues),
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINNEY_STORE", url)
    monkeypatch.setattr(app, "_settings", None, raising=False)
    (tmp_path / "receivers.toml").write_text(SETTINGS)
    made = Site(open_store(url), RealClock())
    made.knows(*(kind.spec for kind in app.types.values()))
    return made


def fail(site: Site, message: str, n: int = 1) -> None:
    site.submit(exports.name, *({"receiver": f"SG-{number}"} for number in range(n)))
    for lease in site.claim():
        site.fail(lease, message=message)


def test_failures_are_mailed_once_grouped_by_cause(site: Site) -> None:
    with closing(site.store):
        assert StageHarness().run(failures.mail_failures).submitted == []
        fail(site, "no room on the disk", 2)
        fail(site, "the table of tags is broken")

        sent = StageHarness().run(failures.mail_failures)
        again = StageHarness().run(failures.mail_failures)
        fail(site, "no room on the disk")
        later = StageHarness().run(failures.mail_failures)

    (mail,) = sent.submitted
    assert mail.params["to"] == ["ann@example.org", "ben@example.org"]
    assert mail.params["subject"] == "Receivers: 3 failed jobs, 2 causes"
    assert "2 x receivers.export, export:" in mail.params["text"]
    assert "no room on the disk" in mail.params["text"]
    assert "https://r.example.org/apps/receivers/failures" in mail.params["text"]
    (key, same, other) = (each.submitted[0].key for each in (sent, again, later))
    assert key == same != other  # the key is the outbox's: the same mail is not sent twice


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('staff = ["nobody"]', "mail.staff"),
        ('url = "example.org"', "mail.url"),
        ('host = ""', "mail: '' names no mail server; name one"),
    ],
)
def test_wrong_settings_are_refused(wrong: str, says: str, site: Site, tmp_path: Path) -> None:
    site.store.close()
    name = wrong.partition(" ")[0]
    lines = [wrong if line.startswith(name) else line for line in SETTINGS.splitlines()]
    (tmp_path / "receivers.toml").write_text("\n".join(lines))

    with pytest.raises(UsageError, match=says):
        failures.settings.load()
