"""``spinney --server URL ingest …``: the same commands, with a server and a node at work."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from cli.remote.conftest import Both

from .house import House

FILES = {"page-1.txt": b"page 1\n", "page-2.txt": b"page 2\n"}
SAME = (
    "batches",
    "batches --json",
    "batches --state completed --limit 1",
    "status {bid}",
    "status {bid} --json",
    "objects {bid}",
    "objects {bid} --json",
    "objects {bid} --state failed",
    "object {job} --json",
    "object {job}",
    "find",
    "find --json",
    "find --file-name page-1.txt",
    "profiles",
    "profiles --json",
    "fixity",
    "fixity --json",
    "fixity --damaged",
    "report {bid}",
    "report {bid} --json",
    "report {bid} --html",
    "report {bid} --number 1",
    "requeue {bid} --dry-run",
    "requeue {bid} --dry-run --json",
    "sweep --days 0 --dry-run",
    "sweep --days 0 --dry-run --json",
    "check {payload}",
)
WRONG = (
    "status 999",
    "status nothing",
    "object 999",
    "find --digest nothing",
    "report {bid} --number 9",
    "fetch nothing",
    "fetch ark:/99999/nothing",
    "token nothing",
    "release maps",
    "hold mapps --reason x",
    "pause nothing --reason x",
    "requeue nobody",
    "delete {bid}",
    "submit {payload} --profile mapps",
    "submit {payload} --profile maps --digest x",
)


@dataclass(frozen=True)
class Deposited:
    """A batch that somebody limited to its collection has handed in through the server."""

    house: House
    both: Both
    token: str
    bid: str
    job: str
    payload: str

    def arguments(self, words: str) -> list[str]:
        return ["ingest", *words.format(bid=self.bid, job=self.job, payload=self.payload).split()]


@pytest.fixture(scope="module")
def deposited(working: House) -> Iterator[Deposited]:
    both = Both(working.shell)
    with both.listening():
        working.shell.ok("user", "add", "ann", "--role", "submitter", "--collection", "maps", "--no-password")
        token = working.shell.ok("token", "make", "ann", "--user", "ann").split()[-1]
        payload = working.manifest("atlas.checkm", FILES)
        output = working.shell.ok(
            "--server",
            both.url,
            "ingest",
            "submit",
            payload,
            "--profile",
            "maps",
            "--json",
            SPINNEY_TOKEN=token,
        )
        bid = json.loads(output)["bid"]
        working.until(bid, "completed", reports=1)
        yield Deposited(working, both, token, bid, str(working.lines("objects", bid)[0]["job"]), payload)


@pytest.mark.parametrize("words", SAME)
def test_the_same_is_told_through_a_server(deposited: Deposited, words: str) -> None:
    here, afar = (
        deposited.both.here(*deposited.arguments(words)),
        deposited.both.afar(*deposited.arguments(words)),
    )

    assert (afar.returncode, afar.stdout, afar.stderr) == (here.returncode, here.stdout, here.stderr)
    assert here.returncode == 0, here.stderr


@pytest.mark.parametrize("words", WRONG)
def test_the_same_is_refused_through_a_server(deposited: Deposited, words: str) -> None:
    here, afar = (
        deposited.both.here(*deposited.arguments(words)),
        deposited.both.afar(*deposited.arguments(words)),
    )

    assert (afar.returncode, afar.stdout, afar.stderr) == (here.returncode, here.stdout, here.stderr)
    assert here.returncode != 0


def test_who_is_limited_hands_in_and_fetches_in_the_own_name(deposited: Deposited) -> None:
    def output(*words: str) -> str:
        return deposited.house.shell.ok(
            "--server", deposited.both.url, "ingest", *words, SPINNEY_TOKEN=deposited.token
        )

    assert json.loads(output("status", deposited.bid, "--json"))["submitter"] == "ann"
    (entry,) = map(json.loads, output("find", "--file-name", "page-1.txt", "--json").splitlines())
    ticket = json.loads(output("fetch", entry["ark"], "--wait", "--json"))
    assert ticket["status"] == "ready"
    assert json.loads(output("token", ticket["token"], "--json")) == ticket
    assert "ready" in output("fetch", entry["ark"], "--wait")
    assert "completed" in output("submit", deposited.payload, "--profile", "maps", "--wait")
    assert "page-1.txt" in output("report", deposited.bid, "--now")


@contextmanager
def without_answers(both: Both) -> Iterator[str]:
    """The address of a proxy that hands one request to the server, and breaks off when the answer comes."""

    def forward(sender: socket.socket, server: socket.socket) -> None:
        while piece := sender.recv(65536):
            server.sendall(piece)

    def hand_over() -> None:
        sender, _ = listener.accept()
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(both.shell.folder / "server.sock"))
            forwarding = threading.Thread(target=forward, args=(sender, server))
            forwarding.start()
            server.recv(1)
            sender.shutdown(socket.SHUT_RDWR)  # which ends the thread
            forwarding.join()
        sender.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = threading.Thread(target=hand_over)
        proxy.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        proxy.join()


def test_what_was_cut_off_after_it_was_accepted_is_handed_in_again_and_makes_no_second_batch(
    deposited: Deposited,
) -> None:
    shell, both = deposited.house.shell, deposited.both
    words = ("ingest", "submit", deposited.house.file("cut.txt"), "--kind", "file", "--profile", "maps")
    with without_answers(both) as url:
        cut_off = shell.refused(1, "--server", url, *words, SPINNEY_TOKEN=deposited.token)
    option = cut_off.partition("It may have been accepted: submit it again with ")[2].split(",")[0].split()
    assert option[0] == "--key"

    again = [
        json.loads(shell.ok("--server", both.url, *words, *option, "--json", SPINNEY_TOKEN=deposited.token))[
            "bid"
        ]
        for _ in range(2)
    ]

    batches = [entry["batch"] for entry in deposited.house.lines("batches") if entry["payload"] == "cut.txt"]
    assert len(batches) == 1
    assert again == batches * 2


def test_under_a_key_the_same_makes_one_batch_at_hand(deposited: Deposited) -> None:
    house = deposited.house
    words = (house.file("once.txt"), "--kind", "file", "--key", "once")
    bid = house.submit(*words)
    assert house.submit(*words) == bid
    assert "was used for another request" in house.refused(
        2, "submit", *words, "--profile", "maps", "--title", "x"
    )
    assert "--key must be 1 to 200" in house.refused(
        2, "submit", *words[:3], "--profile", "maps", "--key", "zwei Worte"
    )
    house.until(bid, "completed")


def test_staff_stop_mend_and_delete_through_a_server(deposited: Deposited) -> None:
    def done(*words: str) -> str:
        return deposited.both.done("ingest", *words)

    assert "are held" in done("hold", "swift", "--reason", "counting")
    assert "is released" in done("release", "swift")
    assert done("pause", "--reason", "moving house") == "ingest is paused\n"
    assert done("unpause") == "ingest continues\n"
    held = deposited.house.file("b.txt")
    bid = json.loads(done("submit", held, "--kind", "file", "--profile", "slow", "--json"))["bid"]
    deposited.house.until(bid, "held")
    assert done("release", "--batch", bid) == f"{bid} is released\n"
    deposited.house.until(bid, "completed")
    assert "with 1 object" in done("delete", bid, "--completed")


def test_what_takes_the_hosts_own_folders_is_refused(deposited: Deposited) -> None:
    assert "not through a server" in deposited.both.refused(2, "ingest", "init")
    assert "--internal" in deposited.both.refused(2, "submit", "reports.mail", "--internal")


def test_an_inner_job_is_submitted_at_hand_only_when_it_is_meant(deposited: Deposited) -> None:
    mail = ["-p", "sender=a@example.org", "-p", 'to=["b@example.org"]', "-p", "subject=x", "-p", "text=x"]
    shell = deposited.house.shell
    assert "give --internal" in shell.refused(1, "submit", "reports.mail", *mail)
    shell.ok("hold", "--type", "reports.mail", "--reason", "sent by nobody")
    shell.ok("submit", "reports.mail", *mail, "--internal")
    shell.ok("schedule", "add", "mails", "reports.mail", "--every", "1d", *mail, "--internal")
    assert "may not submit it" in deposited.both.refused(1, "submit", "reports.mail", *mail)
