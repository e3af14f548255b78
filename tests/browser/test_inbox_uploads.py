"""Uploads to an inbox from the page: a killed server, a closed page, a full disk, and what is refused.

Where something is to break, the browser sends slowly (``slow``), and what has come is looked up on the disk."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import CDPSession, Page, Request, Route, expect

from browser.conftest import NewPage, Violations
from browser.site import Site
from cli.shell import Shell, furnish
from small_disk import small_disk
from spinney.commands.control import Control
from spinney.features.accounts.commands import AddUser
from spinney.folders import folders
from spinney.folders.upload_folder import UPLOADS, UploadFolder
from spinney.folders.upload_pieces import PIECE_BYTES
from spinney.model.access import Rights, Role
from spinney.model.settings.inboxes import Upload
from spinney.store.sql import open_store
from spinney.web.request_context import now_us
from waiting import until

PASSWORD = "a spinney is a small wood"
FORM = "/inboxes/cards/upload"
LONG = 2 * PIECE_BYTES + 12_345
SLOW_BYTES_S = 3_000_000


@dataclass
class House:
    """A store with a server in a process of its own, at an address that stays."""

    shell: Shell
    port: int = 0
    server: "subprocess.Popen[str] | None" = None

    @property
    def root(self) -> Path:
        return self.shell.folder / "spinney.folders"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        """Return when it listens."""
        with (self.shell.folder / "server.log").open("a") as log:  # a pipe that nobody reads would stop it
            self.server = subprocess.Popen(
                [sys.executable, "-m", "spinney", "serve", "--port", str(self.port)],
                cwd=self.shell.folder,
                env=self.shell.environment(),
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.server.stdout is not None
        while not (match := re.search(r"serves http://127\.0\.0\.1:(\d+)", self.server.stdout.readline())):
            assert self.server.poll() is None, (self.shell.folder / "server.log").read_text()
        self.port = int(match[1])

    def kill(self) -> None:
        assert self.server is not None
        self.server.send_signal(signal.SIGKILL)
        self.server.communicate()

    def signed_in(self, page: Page) -> Page:
        """The page at the form of the inbox."""
        page.goto(f"{self.url}{FORM}")
        page.get_by_label("Name").fill("wanda")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{self.url}{FORM}")
        return page


def received(root: Path) -> int:
    """How much has come of the open uploads."""
    return sum(place.stat().st_size for place in (root / UPLOADS / "open").glob("*/bytes"))


def file_of(root: Path, page: Page) -> bytes:
    """What the job that the page was led to has in its folder."""
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    return (folders.path(root, int(page.url.rsplit("/", 1)[1])) / "card.bin").read_bytes()


def slow(page: Page) -> CDPSession:
    """From now on this page sends slowly; ``fast`` ends it."""
    session = page.context.new_cdp_session(page)
    pace = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": SLOW_BYTES_S}
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", pace)
    return session


def fast(session: CDPSession) -> None:
    pace = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", pace)


def offsets(page: Page) -> list[int]:
    """Where the pieces begin that this page sends from now on."""
    jobs: list[int] = []

    def look(request: Request) -> None:
        if request.method == "PUT":
            jobs.append(int(parse_qs(urlsplit(request.url).query)["offset"][0]))

    page.on("request", look)
    return jobs


def upload(page: Page, *files: Path) -> None:
    page.locator("#f-file").set_input_files(list(files))
    page.get_by_role("button", name="Upload", exact=True).click()


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A file of several pieces."""
    path = tmp_path / "card.bin"
    path.write_bytes(os.urandom(LONG))
    return path


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(furnish(tmp_path))
    made.shell.ok("inbox", "add", "cards", "/srv/cards", "double", "-p", "n=1")
    with closing(open_store(f"sqlite:///{tmp_path}/spinney.db")) as store:
        control = Control(store=store, clock=now_us, wake_nodes=lambda: None, by="test")
        control.do(AddUser(name="wanda", rights=Rights(role=Role.SUBMITTER), password=PASSWORD))
    made.serve()
    yield made
    made.kill()


@pytest.fixture
def inbox(site: Site) -> Path:
    """The folder root of the site, which has an inbox."""
    site.shell.ok("inbox", "add", "cards", str(site.folder / "cards"), "double", "-p", "n=1", "--replace")
    return site.folder / "spinney.folders"


def test_an_upload_goes_on_by_itself_when_a_killed_server_is_back(
    new_page: NewPage, house: House, card: Path
) -> None:
    page = house.signed_in(new_page(loud=True))
    network, sent = slow(page), offsets(page)
    upload(page, card)
    until(lambda: received(house.root))
    house.kill()
    came = received(house.root)
    assert 0 < came < LONG
    expect(page.get_by_text(re.compile("cannot be reached.*goes on where it stopped"))).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()

    fast(network)
    house.serve()
    assert file_of(house.root, page) == card.read_bytes()
    assert came in sent
    assert received(house.root) == 0


def test_an_answer_that_is_lost_makes_no_second_job(new_page: NewPage, inbox: Path, card: Path) -> None:
    """The server has taken the last bytes, and the browser does not learn of it."""
    page = new_page(loud=True)
    lost: list[int] = []

    def lose(route: Route) -> None:
        if (
            lost
            or route.request.method != "PUT"
            or not route.request.url.endswith(f"offset={2 * PIECE_BYTES}")
        ):
            return route.continue_()
        lost.append(route.fetch().json()["job_id"])
        return route.abort("connectionreset")

    page.route("**/uploads/*", lose)
    page.goto(FORM)
    upload(page, card)
    assert file_of(inbox, page) == card.read_bytes()
    assert lost == [int(page.url.rsplit("/", 1)[1])]


def test_a_page_that_was_closed_goes_on_when_the_same_file_is_chosen_again(
    new_page: NewPage, inbox: Path, card: Path, violations: Violations
) -> None:
    page = new_page()
    page.goto(FORM)
    slow(page)
    upload(page, card)
    until(lambda: received(inbox))
    assert violations(page) == []
    page.close(run_before_unload=False)

    page = new_page(loud=True)
    page.goto(FORM)
    sent = offsets(page)
    expect(page.get_by_role("row", name="card.bin")).to_contain_text("16.8 MB")
    assert violations(page) == []
    upload(page, card)
    assert file_of(inbox, page) == card.read_bytes()
    assert 0 < sent[0] < LONG


def test_an_upload_that_is_cancelled_leaves_nothing(new_page: NewPage, inbox: Path, card: Path) -> None:
    page = new_page(loud=True)  # the request that was broken off may still hold the upload for a moment
    page.goto(FORM)
    slow(page)
    upload(page, card)
    until(lambda: received(inbox))
    page.get_by_role("button", name="Cancel this file").click()
    expect(page.get_by_role("list", name="Results")).to_contain_text("card.binThe upload was withdrawn")
    assert received(inbox) == 0


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_interrupted_upload_is_withdrawn_on_the_page(
    new_page: NewPage, inbox: Path, scripts: bool
) -> None:
    begun = UploadFolder(inbox).begin(Upload(id="", inbox="cards", name="old.zip", size=9, by="admin"))
    page = new_page(scripts=scripts)
    page.goto(FORM)
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("The upload of old.zip was withdrawn")).to_be_visible()
    assert begun.id not in [left.id for left in UploadFolder(inbox).opened_by("admin")]


def test_files_of_every_length_become_jobs_and_what_is_refused_is_told(
    page: Page, inbox: Path, tmp_path: Path
) -> None:
    """The server computes the digest as well, and would refuse a file for which the script has a wrong one."""
    sizes = (0, 1, 55, 56, 64, 119, 120, (4 << 20) + 3, PIECE_BYTES, PIECE_BYTES + 1)
    for size in sizes:
        (tmp_path / f"{size}.bin").write_bytes(os.urandom(size))
    page.goto(FORM)
    upload(page, *(tmp_path / f"{size}.bin" for size in sizes))
    results = page.get_by_role("list", name="Results").get_by_role("listitem")
    expect(results).to_have_count(len(sizes))
    for size, line in zip(sizes, results.all(), strict=True):
        expect(line).to_have_text(re.compile(rf"^{size}\.binbecame job \d+$"))
        job = int(line.get_by_role("link").inner_text().removeprefix("job "))
        kept = folders.path(inbox, job) / f"{size}.bin"
        assert kept.read_bytes() == (tmp_path / f"{size}.bin").read_bytes()
    expect(page.get_by_role("status").get_by_text("10 of 10 uploaded")).to_be_visible()


def test_a_file_that_is_refused_is_told_with_the_sentence_of_the_server(
    new_page: NewPage, inbox: Path, tmp_path: Path
) -> None:
    page = new_page(loud=True)  # the browser says that the answer was 422
    (tmp_path / "-rf").write_bytes(b"refused")
    (tmp_path / "good.bin").write_bytes(b"taken: " + os.urandom(8))
    page.goto(FORM)
    upload(page, tmp_path / "-rf", tmp_path / "good.bin")
    results = page.get_by_role("list", name="Results").get_by_role("listitem")
    expect(results).to_have_text([re.compile("-rf.*begins with '-'"), re.compile(r"good\.binbecame job")])
    assert page.evaluate("[...document.querySelector('#f-file').files].map((file) => file.name)") == ["-rf"]


def test_an_empty_file_leads_to_its_job(page: Page, site: Site, tmp_path: Path) -> None:
    site.shell.ok(
        "inbox",
        "add",
        "cards",
        str(site.folder / "cards"),
        "double",
        "-p",
        "n=1",
        "--replace",
        "--duplicates",
        "accept",
    )
    (tmp_path / "card.bin").touch()
    page.goto(FORM)
    upload(page, tmp_path / "card.bin")
    assert file_of(site.folder / "spinney.folders", page) == b""


def test_a_file_that_changes_while_it_is_sent_is_refused(new_page: NewPage, inbox: Path, card: Path) -> None:
    page = new_page(loud=True)
    page.goto(FORM)
    network = slow(page)
    upload(page, card)
    until(lambda: received(inbox))
    card.write_bytes(b"another")
    fast(network)
    expect(page.get_by_role("list", name="Results")).to_contain_text(
        "changed or removed meanwhile; choose it"
    )
    page.goto(FORM)
    page.get_by_role("row", name="card.bin").get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("The upload of card.bin was withdrawn")).to_be_visible()


def test_an_upload_waits_on_a_full_disk_and_goes_on_when_there_is_room(
    new_page: NewPage, tmp_path: Path, card: Path, request: pytest.FixtureRequest
) -> None:
    with small_disk(tmp_path / "spinney.folders", 32) as disk:
        house: House = request.getfixturevalue("house")
        page = house.signed_in(new_page(loud=True))
        network = slow(page)
        upload(page, card)
        until(lambda: received(house.root))
        disk.fill()
        expect(
            page.get_by_text(re.compile("is full; make room there.*goes on where it stopped"))
        ).to_be_visible()
        assert received(house.root) < LONG
        fast(network)
        disk.empty()
        assert file_of(house.root, page) == card.read_bytes()
