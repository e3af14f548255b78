"""Wrong and hostile input: who may submit what, names, folders, files of one name at once, arguments of commands."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from new_store import new_store
from spinney import Fail
from spinney.apps.receivers import app, arrivals
from spinney.apps.receivers.application import exports, imports, reruns, syncs, uploads
from spinney.apps.receivers.database.receiver_database import ReceiverDatabase
from spinney.apps.receivers.demo.simulation import BEGUN, TAGS, file_name
from spinney.apps.receivers.detections import listed_files
from spinney.control import Control
from spinney.errors import BadParameters, Forbidden
from spinney.jobs import Outcome
from spinney.model.access import Rights, Role
from spinney.store.sql import open_store
from spinney.testing import StageHarness

from .service import SERIALS, Service, raw_files


def test_through_a_server_nobody_names_a_file_of_its_host_and_submitters_only_upload(tmp_path: Path) -> None:
    url = new_store(
        tmp_path / "x.db",
        lambda store: store.register([kind.spec for kind in app.types.values()], app.queues),
    )
    with closing(open_store(url)) as store:

        def submit(role: Role, type_: str, **params: Any) -> None:
            rights = Rights(role=role)
            control = Control(store=store, clock=lambda: 1, wake_nodes=lambda: None, by="ann", rights=rights)
            control.submit(type_, [params])

        submit(Role.SUBMITTER, uploads.name, uploader="ann@example.org")
        submit(Role.OPERATOR, exports.name, receiver="SG-1")
        with pytest.raises(BadParameters):
            submit(Role.ADMIN, uploads.name, source="/etc/passwd")
        for role, type_, params in (
            (Role.ADMIN, imports.name, {"source": "/etc/passwd"}),
            (Role.ADMIN, syncs.name, {"receiver": "SG-1"}),
            (Role.ADMIN, "receivers.failures", {}),
            (Role.SUBMITTER, exports.name, {"receiver": "SG-1"}),
            (Role.SUBMITTER, reruns.name, {"receiver": "SG-1", "first": 1, "last": 2}),
        ):
            with pytest.raises(Forbidden):
                submit(role, type_, **params)


@pytest.mark.parametrize("name", ["", "../x", "/etc/x", "--rsh=sh", ".x", "a\nb", "x" * 65])
def test_the_name_of_a_receiver_is_neither_a_path_nor_an_option(name: str) -> None:
    for kind in (exports, syncs):
        with pytest.raises(BadParameters):
            kind.texts([{"receiver": name}])
    with pytest.raises(BadParameters):
        reruns.texts([{"receiver": name, "first": 1, "last": 1}])


def test_a_folder_with_links_pipes_and_names_that_are_no_text(service: Service, tmp_path: Path) -> None:
    files = raw_files(tmp_path / "raw", pieces=2)
    odd = tmp_path / "raw" / "odd"
    odd.mkdir()
    os.mkfifo(odd / "pipe")
    (odd / "dangling").symlink_to("/nowhere")
    (odd / file_name(9, BEGUN)).symlink_to("/etc/passwd")
    Path(os.fsdecode(bytes(odd) + b"/\xff\t\n.txt")).write_text("p,1,2,3,4,5\n")
    service.start_node()

    job = service.upload(tmp_path / "raw")

    assert service.ended(job) == "completed", service.spinney("tree", job)
    assert "2 receivers, 1 file put aside" in service.spinney("show", job)
    (bad,) = (service.place / "spinney.folders").rglob("bad_files.txt")
    assert bad.read_text() == "odd/\\udcff\\t\\n.txt\tits name is not that of a raw file of a receiver\n"
    assert all(service.content(serial)[1] for serial in files)

    (tmp_path / "nothing").mkdir()
    empty = service.upload(tmp_path / "nothing")
    assert service.ended(empty) == "completed"
    assert "no files were in it" in service.spinney("show", empty)


def test_a_list_in_the_folder_of_an_upload_leads_to_no_files_of_others(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(service.place)
    own = service.place / "receivers" / "files" / "SG-1"
    files = tmp_path / "job" / "made" / "files"
    files.mkdir(parents=True)

    def listed(path: Path) -> list[Path]:
        (files / "SG-1.json").write_bytes(orjson.dumps([str(path)]))
        return listed_files(tmp_path / "job", "SG-1")

    assert listed(own / "000003" / "a.txt.gz") == [own / "000003" / "a.txt.gz"]
    for path in (
        own.with_name("SG-2") / "000001" / "a.txt.gz",
        own / ".." / "SG-2" / "a.txt",
        Path("/etc/passwd"),
    ):
        with pytest.raises(Fail, match="files that are not its own"):
            listed(path)


def test_different_files_of_one_name_that_come_at_once_are_each_kept(tmp_path: Path) -> None:
    name, count = file_name(3, BEGUN), 8
    for number in range(count):
        (tmp_path / f"card{number}").mkdir()
        (tmp_path / f"card{number}" / name).write_bytes(f"p,1,{number},4,-60,-90\n".encode() * 200_000)

    def store(number: int) -> tuple[str, Path]:
        ((receiver, (path,)),) = arrivals.store(
            tmp_path / f"card{number}", lambda receiver: tmp_path / receiver
        ).items()
        return receiver, Path(path)

    with ThreadPoolExecutor(count) as pool:
        stored = list(pool.map(store, range(count)))

    for number, (_, path) in enumerate(stored):
        assert path.read_bytes() == (tmp_path / f"card{number}" / name).read_bytes()
    assert len({path for _, path in stored}) == count


@pytest.fixture
def detected(service: Service, tmp_path: Path) -> Path:
    """A raw file that was detected, without a node."""
    (file,) = raw_files(tmp_path / "raw", pieces=1, seconds=30)[SERIALS[0]]
    data = service.place / "receivers" / "databases" / f"SG-{SERIALS[0]}.sqlite"
    ReceiverDatabase(data, TAGS).detect([file], now_s=0.0)
    return file


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("rerun", "../x", "1"), "there is no receiver x"),
        (("rerun", f"SG-{SERIALS[0]}", "7", "3"), "session 3 is before 7"),
        (("export", ""), "there is no receiver"),
        (("export-jobs", "nowhere/x.sqlite"), "cannot be written"),
        (("upload", "tags.csv", "--uploader", "nobody"), "'uploader' must be"),
        (("old-jobs",), "history.sqlite cannot be read"),
    ],
)
def test_commands_refuse_what_is_wrong_with_a_sentence(
    words: tuple[str, ...], sentence: str, service: Service, detected: Path
) -> None:
    if words == ("old-jobs",):
        (service.place / "receivers" / "history.sqlite").write_bytes(b"no database" * 100)
    done = service.call("receivers", *words)
    assert done.returncode == 2, done
    assert sentence in done.stderr, done
    assert "internal error" not in done.stderr


def test_staff_may_choose_the_queue(service: Service, detected: Path) -> None:
    receiver = f"SG-{SERIALS[0]}"
    for words in (("export", receiver), ("rerun", receiver, "3")):
        job = service.spinney("receivers", *words, "--priority").strip()
        assert service.show(job)["job"]["queue"] == "receivers-priority"


def test_sessions_that_are_not_there_are_not_detected_afresh(
    service: Service, detected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(service.place)
    result = StageHarness().run(reruns, receiver=f"SG-{SERIALS[0]}", first=77, last=78)
    assert (result.outcome, result.message) == (
        Outcome.ERROR,
        f"SG-{SERIALS[0]} has no boot session from 77 to 78",
    )


def test_a_damaged_database_of_one_receiver_hides_no_other(service: Service, detected: Path) -> None:
    (service.place / "receivers" / "databases" / "SG-BROKEN.sqlite").write_bytes(b"no database" * 1000)
    for words in (("list",), ("file", detected.name)):
        done = service.call("receivers", *words)
        assert f"SG-{SERIALS[0]}" in done.stdout
        assert "the database of SG-BROKEN cannot be read" in done.stderr
        assert done.returncode == 1
