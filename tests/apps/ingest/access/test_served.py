"""Access, fixity and cleaning by the command line, with a node at work."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bagit
import pytest

from cli.shell import Shell
from long_tests import LONG
from reports.mail_server import Behaviour, mail_server
from waiting import until

from ..places import ALL, NEAR, endpoint_of
from .filled_service import MAIL, Service, service

HEAD = 'public_url = "https://archive.example.org"'
ACCESS = "[access]\nsmall_bytes = 1000\n"


@pytest.fixture(scope="module", params=ALL if LONG else (NEAR,), ids="-".join)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator["House"]:
    places = {"kinds": request.param, "endpoint": endpoint_of(request, request.param)}
    mails = Behaviour()
    with mail_server(mails) as port:
        to = f'port = {port}\nsecurity = "none"\n'
        made = service(
            tmp_path_factory.mktemp("served") / "service", HEAD, more=f"{MAIL}{to}{ACCESS}", **places
        )
        shell = Shell(made.folder)
        node = shell.start("node", "spinney.apps.ingest:app", "--name", "n1", "--slots", "1")
        yield House(made, shell, mails)
        node.terminate()
        _, err = node.communicate(timeout=30)
    assert node.returncode == 0, err


class House:
    """The service, and ``spinney`` in its folder."""

    def __init__(self, archive: Service, shell: Shell, mails: Behaviour) -> None:
        self.archive, self.shell, self.mails, self._objects = archive, shell, mails, 0

    def holds(self, files: dict[str, bytes]) -> str:
        """A new object; its ARK."""
        self._objects += 1
        ark = f"ark:/99999/fk4n{self._objects}"
        self.archive.holds(files, ark)
        return ark

    def document(self, *words: str) -> Any:
        return json.loads(self.shell.ok("ingest", *words, "--json"))

    def ran(self, schedule: str) -> dict[str, Any]:
        """A job of that schedule, made now, when it has settled."""
        until(
            lambda: self.shell.call("schedule", "show", schedule).returncode == 0
        )  # the node has declared it
        self.shell.ok("schedule", "run", schedule)
        (job,) = self.shell.listed("list", "--type", schedule, "--limit", "1")
        self.shell.call("wait", str(job["id"]))
        return json.loads(self.shell.ok("show", str(job["id"]), "--json"))["job"]


def test_a_request_ends_with_a_package_that_has_a_path_and_a_url(served: House, tmp_path: Path) -> None:
    ark = served.holds({"producer/map.tif": b"a map", "system/erc": b"who: me"})

    ticket = served.document("fetch", ark, "--wait")

    assert ticket["status"] == "ready"
    package = ark.replace(":/", "_").replace("/", "_") + "_v1.zip"
    assert ticket["url"] == f"https://archive.example.org/access/{ticket['token']}/{package}"
    with zipfile.ZipFile(ticket["path"]) as zipped:
        zipped.extractall(tmp_path)
    bagit.Bag(str(tmp_path / package.removesuffix(".zip"))).validate()
    assert served.document("token", ticket["token"]) == ticket
    assert served.document("fetch", ark) == ticket
    assert served.document("fetch", ark, "--format", "tar")["token"] != ticket["token"]
    assert "expires" in served.shell.ok("ingest", "token", ticket["token"])


def test_large_ones_are_held_apart(served: House) -> None:
    small, large = served.holds({"a": b"1"}), served.holds({"a": b"1" * 2000})
    served.shell.ok("ingest", "pause", "access-large", "--reason", "disks are moved")

    held, ready = served.document("fetch", large), served.document("fetch", small, "--wait")

    assert (held["status"], ready["status"]) == ("held", "ready")
    assert "anticipated" not in held
    served.shell.ok("ingest", "unpause", "access-large")
    assert served.document("fetch", large, "--wait")["status"] == "ready"


def test_damage_is_told_by_the_request_and_by_the_list(served: House) -> None:
    ark = served.holds({"a": b"whole"})
    served.archive.overwrite("a", b"holes", ark)

    result = served.shell.call("ingest", "fetch", ark, "--wait", "--json")

    ticket = json.loads(result.stdout)
    assert (result.returncode, ticket["status"]) == (1, "failed")
    assert "damaged" in ticket["message"]
    listed = served.shell.call("ingest", "fixity", "--damaged", "--json")
    assert listed.returncode == 1
    assert ark in [json.loads(line)["ark"] for line in listed.stdout.splitlines()]
    # When it is mended, the same request goes on under its token
    served.archive.overwrite("a", b"whole", ark)
    again = served.document("fetch", ark, "--wait")
    assert (again["status"], again["token"]) == ("ready", ticket["token"])


def test_an_audit_reads_what_is_due_and_finds_what_is_damaged(served: House) -> None:
    _, torn = served.holds({"a": b"1"}), served.holds({"a": b"2"})
    served.archive.overwrite("a", b"3", torn)

    run = served.ran("ingest.fixity")

    assert (run["state"], run["warnings"]) == ("completed", 1)
    assert torn in run["message"]
    with served.archive.inventory() as inventory:
        assert torn in inventory.damaged_since()
    assert served.document("fixity")["due"] == 0
    # Then the admins have a mail, and no other after the next run
    until(lambda: len(served.mails.received) == 1)
    assert served.mails.received[0].recipients == ["staff@example.org"]
    assert torn in served.mails.received[0].mail.get_body(("plain",)).get_content()
    served.ran("ingest.fixity")
    assert len(served.shell.listed("list", "--type", "reports.mail")) == 1


def test_what_has_expired_is_removed_and_made_anew_under_another_token(served: House) -> None:
    ark, kept = served.holds({"a": b"1"}), served.holds({"a": b"1"})
    stays = served.document("fetch", kept, "--wait")
    toml = served.archive.folder / "ingest.toml"
    before = toml.read_text()
    toml.write_text(before.replace(ACCESS, f"{ACCESS}keep_days = 1e-9\n"))
    old = served.document("fetch", ark)
    until(lambda: served.document("token", old["token"])["status"] == "expired")
    toml.write_text(before)

    ran = served.ran("ingest.cleaning")

    assert ran["state"] == "completed"
    folders = sorted(folder.name for folder in served.archive.settings.packages.iterdir())
    assert old["token"] not in folders
    assert stays["token"] in folders
    new = served.document("fetch", ark, "--wait")
    assert (new["status"], new["token"] != old["token"]) == ("ready", True)
    assert "no request with this token" in served.shell.refused(1, "ingest", "token", old["token"])
