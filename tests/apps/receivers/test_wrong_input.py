"""Wrong and hostile input: who may submit what, names, folders, files of one name at once, arguments of commands."""

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from examples.receivers.simulation import BEGUN, TAGS, file_name
from new_store import new_store
from spinney import Fail
from spinney.apps.receivers import app, arrivals
from spinney.apps.receivers.application import exports, imports, reruns, syncs, uploads
from spinney.apps.receivers.database.receiver_database import ReceiverDatabase
from spinney.apps.receivers.detections import listed_files
from spinney.commands.control import Control
from spinney.containers import Limits
from spinney.errors import BadParameters, Forbidden
from spinney.files import copies, disk_space
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


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A zip with these files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return content.getvalue()


def taken_apart(folder: Path, **limits: Any) -> tuple[dict[str, bytes], list[arrivals.BadFile]]:
    """The files that are made of those in ``folder / "up"``, and those that are put aside."""
    into = folder / "raw"
    chosen = Limits(**{"total_bytes": 1 << 30, **limits})
    bad = arrivals.take_apart(folder / "up", into, chosen, lambda size: None)
    files = [path for path in into.rglob("*") if path.is_file()]
    return {str(path.relative_to(into)): path.read_bytes() for path in files}, bad


@pytest.fixture
def up(tmp_path: Path) -> Path:
    """The folder of what arrives."""
    (tmp_path / "up").mkdir()
    return tmp_path / "up"


NESTED = zipped({f"{number}.zip": zipped({"a.txt": bytes(4000)}) for number in range(8)})


@pytest.mark.parametrize(
    ("limits", "reason", "kept"),
    [
        ({"total_bytes": 18_000}, "more than 18000 bytes", 4),
        ({"members": 12}, "more than 12 files and folders", 4),
    ],
)
def test_archives_within_an_archive_share_its_limits(
    limits: dict[str, int], reason: str, kept: int, up: Path
) -> None:
    assert len(zipped({"a.txt": bytes(4000)})) < 200
    (up / "card.zip").write_bytes(NESTED)
    (up / "other.zip").write_bytes(zipped({"b.txt": b"fine"}))

    files, bad = taken_apart(up.parent, **limits)

    assert files == {
        **{f"card.zip.d/{number}.zip.d/a.txt": bytes(4000) for number in range(kept)},
        "other.zip.d/b.txt": b"fine",
    }
    assert [each.path for each in bad] == [f"card.zip/{number}.zip" for number in range(kept, 8)]
    assert all(reason in each.reason for each in bad)


def test_a_bomb_within_archives_stops_at_the_ratio_of_the_outermost(up: Path) -> None:
    inner = zipped({"a.txt": bytes(9_000_000)})
    bomb = zipped({f"{number}.zip": inner for number in range(3)})
    (up / "card.zip").write_bytes(zipped({f"{number}.zip": bomb for number in range(3)}))

    files, bad = taken_apart(up.parent)

    assert len(files) == 1
    assert len(bad) == 8
    assert all("like a bomb" in each.reason for each in bad)


def test_who_sent_too_much_reads_of_settings_that_the_service_has(service: Service, tmp_path: Path) -> None:
    (service.place / "receivers.toml").write_text("unpacked_bytes = 11_000_000\n")
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "bomb.zip").write_bytes(zipped({file_name(9, BEGUN): bytes(10_500_000)}))
    with zipfile.ZipFile(cards / "large.zip", "w") as large:
        large.writestr(file_name(9, BEGUN), bytes(12_000_000))
    service.start_node()

    assert service.ended(service.upload(cards)) == "completed"

    (bad,) = (service.place / "spinney.folders").rglob("bad_files.txt")
    bomb, too_large = bad.read_text().splitlines()
    assert bomb.endswith("like a bomb; send the files unpacked")
    assert too_large.endswith("send it in parts, or have unpacked_bytes in receivers.toml raised")


def test_a_full_disk_keeps_nothing_of_what_was_unpacked(up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (up / "card.zip").write_bytes(NESTED)
    free = iter([1 << 30] * 10)
    monkeypatch.setattr(disk_space, "free_bytes", lambda path: next(free, 0))

    with pytest.raises(OSError, match="no room") as error:
        taken_apart(up.parent)

    assert disk_space.is_full(error.value)
    assert not (up.parent / "raw").exists()


def test_an_archive_beside_a_folder_with_the_name_of_its_own_loses_nothing(up: Path) -> None:
    (up / "card.zip").write_bytes(zipped({"a.txt": b"of the archive"}))
    (up / "card.zip.d").mkdir()
    (up / "card.zip.d" / "a.txt").write_bytes(b"of the folder")
    (up / "all.zip").write_bytes(
        zipped({"card.zip": zipped({"a.txt": b"of the inner archive"}), "card.zip.d/a.txt": b"beside it"})
    )

    files, bad = taken_apart(up.parent)

    assert bad == []
    assert files == {
        "card.zip.d/a.txt": b"of the folder",
        "card.zip.d1/a.txt": b"of the archive",
        "all.zip.d/card.zip.d/a.txt": b"beside it",
        "all.zip.d/card.zip.d1/a.txt": b"of the inner archive",
    }


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


def test_the_name_of_a_file_that_a_killed_attempt_has_copied_is_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / file_name(3, BEGUN)).write_text("p,1,5,4,-60,-90\n")
    synced: list[Path] = []

    def killed(paths: Sequence[Path]) -> None:
        raise KeyboardInterrupt

    for sync in (killed, synced.extend):
        monkeypatch.setattr(copies, "sync_together", sync)
        with suppress(KeyboardInterrupt):
            arrivals.store(tmp_path / "card", lambda receiver: tmp_path / "files" / receiver)

    (stored,) = (tmp_path / "files").rglob("*.txt")
    folders = {stored.parents[number] for number in range(3)}  # session, receiver, all receivers
    assert folders <= set(synced)


@pytest.fixture
def detected(service: Service, tmp_path: Path) -> Path:
    """A raw file that was detected, without a node."""
    (file,) = raw_files(tmp_path / "raw", pieces=1, seconds=30)[SERIALS[0]]
    data = service.place / "receivers" / "databases" / f"SG-{SERIALS[0]}.sqlite"
    ReceiverDatabase(data, TAGS).detect([file], now_s=BEGUN + 86_400)
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
    result = service.call("receivers", *words)
    assert result.returncode == 2, result
    assert sentence in result.stderr, result
    assert "internal error" not in result.stderr


@pytest.mark.parametrize(
    ("tags", "sentence"), [(None, "write the table of tags, "), (1, "; 1 tag in "), (2, "; 2 tags in ")]
)
def test_init_says_how_many_tags_there_are_or_what_to_write(
    tmp_path: Path, tags: int | None, sentence: str
) -> None:
    service = Service(tmp_path)
    if tags is None:
        (tmp_path / "tags.csv").unlink()
    else:
        service.write_tags(tags)
    assert sentence in service.spinney("receivers", "init")


def test_init_leaves_what_a_newer_node_has_registered(service: Service) -> None:
    """A repeated init, perhaps on a host with an older release, makes only what is missing."""
    with closing(open_store(f"sqlite:///{service.place / 'spinney.db'}")) as store:
        newer = replace(store.types()["receivers.export"], description="newer")
        store.register([newer], [])
        service.spinney("receivers", "init")
        assert store.types()["receivers.export"].description == "newer"


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
        result = service.call("receivers", *words)
        assert f"SG-{SERIALS[0]}" in result.stdout
        assert "the database of SG-BROKEN cannot be read" in result.stderr
        assert result.returncode == 1
