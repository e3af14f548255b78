"""Uploads on a real node: taken apart, checked, sorted, detected, exported; killed and mended in between."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from examples.receivers.simulation import BEGUN, TAGS, file_name
from long_tests import long_alone
from spinney.jobs import State
from spinney.testing import Child, StageHarness
from waiting import until

from .service import SERIALS, Service, archive, expected, raw_files


def test_an_archive_becomes_detections_products_and_a_list_of_bad_files(
    service: Service, tmp_path: Path
) -> None:
    files = raw_files(tmp_path / "raw")
    service.start_node(slots=2)

    job = service.upload(archive(files, tmp_path / "card.zip"))

    assert service.ended(job) == "completed", service.spinney("tree", job)
    assert {serial: service.content(serial) for serial in SERIALS} == expected(files, tmp_path)
    assert all(hits for _, hits in expected(files, tmp_path).values())
    shown = service.spinney("show", job)
    assert "2 receivers, 5 files put aside" in shown
    assert "5 files put aside: card.zip.d/bad/" in shown
    assert service.show(job)["job"]["warnings"] == 1
    for serial in SERIALS:
        assert f"Hits of SG-{serial}" in shown
        assert f"Plot of SG-{serial}" in shown
    (bad,) = (service.place / "spinney.folders").rglob("bad_files.txt")
    reasons = dict(line.split("\t") for line in bad.read_text().splitlines())
    assert len(reasons) == 5
    assert "damaged gzip" in reasons[f"card.zip.d/bad/{file_name(9, BEGUN + 2)}.gz"]
    assert "zeros" in reasons[f"card.zip.d/bad/{file_name(9, BEGUN + 1)}"]
    listed = [json.loads(line) for line in service.spinney("receivers", "list", "--json").splitlines()]
    assert [(row["receiver"], row["files"]) for row in listed] == [
        (f"SG-{SERIALS[1]}", 6),
        (f"SG-{SERIALS[0]}", 6),
    ]
    became = service.spinney("receivers", "file", files[SERIALS[0]][0].name)
    assert f"SG-{SERIALS[0]}" in became
    assert str(service.place / "receivers" / "files") in became

    again = service.upload(tmp_path / "card.zip")  # the same once more, as a person who is not sure

    assert service.ended(again) == "completed"
    assert {serial: service.content(serial) for serial in SERIALS} == expected(files, tmp_path)


def test_a_bug_is_opened_and_mended_and_the_tree_regrows(service: Service, tmp_path: Path) -> None:
    files = raw_files(tmp_path / "raw", pieces=2)
    service.write_tags(0)
    service.start_node()
    job = service.upload(archive(files, tmp_path / "card.zip"))
    assert service.ended(job) == "failed"
    lines = service.spinney("list", "--json", "--state", "failed").splitlines()
    failed = [json.loads(line) for line in lines]
    (detection, *_) = [row["id"] for row in failed if row["type"] == "receivers.detect"]
    assert "in read_tags" in service.spinney("postmortem", str(detection))

    service.write_tags(len(TAGS))
    for row in failed:
        if row["type"] == "receivers.detect":
            service.spinney("retry", str(row["id"]))

    assert service.ended(job) == "completed", service.spinney("tree", job)
    assert {serial: service.content(serial) for serial in SERIALS} == expected(files, tmp_path)


def test_a_node_killed_again_and_again_loses_and_doubles_nothing(service: Service, tmp_path: Path) -> None:
    files = raw_files(tmp_path / "raw", pieces=12)
    job = service.upload(archive(files, tmp_path / "card.zip"))
    for number in range(3):
        service.start_node(slots=2)
        # A stage that loses its node three times fails as poison, so each kill waits for another stage.
        until(
            lambda number=number: (
                len({each["stage"] for each in service.show(job)["attempts"]}) >= number + 2
            ),
            lambda: service.spinney("tree", job),
        )
        service.kill_node()
    service.start_node(slots=2)
    assert service.ended(job) == "completed", service.spinney("tree", job)
    assert {serial: service.content(serial) for serial in SERIALS} == expected(files, tmp_path)
    stored = sorted(
        path.name for path in (service.place / "receivers" / "files").rglob("[!.]*") if path.is_file()
    )
    assert stored == sorted(path.name for paths in files.values() for path in paths)


@long_alone
def test_twenty_kills_at_random_lose_and_double_nothing(service: Service, tmp_path: Path) -> None:
    files = raw_files(tmp_path / "raw", pieces=150, seconds=1800)
    jobs = [service.upload(archive(files, tmp_path / f"card{number}.zip")) for number in range(4)]
    moments = random.Random(7)
    for _ in range(20):
        service.start_node(slots=2)
        time.sleep(moments.uniform(0.5, 3.0))  # a kill comes when it comes
        service.kill_node()
    service.start_node(slots=2)
    assert [service.ended(job) for job in jobs] == ["completed"] * 4, service.spinney("list")
    assert {serial: service.content(serial) for serial in SERIALS} == expected(files, tmp_path)
    stored = sorted(
        path.name for path in (service.place / "receivers" / "files").rglob("[!.]*") if path.is_file()
    )
    assert stored == sorted(path.name for paths in files.values() for path in paths)
    doctor = service.call("doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_sessions_are_detected_afresh_with_another_table(service: Service, tmp_path: Path) -> None:
    files = raw_files(tmp_path / "raw", pieces=2)
    service.write_tags(1)
    service.start_node()
    assert service.ended(service.upload(archive(files, tmp_path / "card.zip"))) == "completed"
    service.write_tags(len(TAGS))

    job = service.spinney("receivers", "rerun", f"SG-{SERIALS[0]}", "1", "9").strip()

    assert service.ended(job) == "completed"
    assert service.content(SERIALS[0]) == expected(files, tmp_path)[SERIALS[0]]
    assert service.content(SERIALS[1]) != expected(files, tmp_path)[SERIALS[1]]


def test_attached_receivers_are_polled_by_the_command_of_the_settings(
    service: Service, tmp_path: Path
) -> None:
    files = raw_files(tmp_path / "attached", pieces=3)
    receivers = [f"SG-{serial}" for serial in SERIALS]
    for serial, receiver in zip(SERIALS, receivers, strict=True):
        (tmp_path / "attached" / serial).rename(tmp_path / "attached" / receiver)
        files[serial] = [tmp_path / "attached" / receiver / path.name for path in files[serial]]
    (service.place / "attached.csv").write_text("\n".join(["receiver", *receivers, ""]))
    (service.place / "receivers.toml").write_text(
        '[sync]\nreceivers = "attached.csv"\n'
        f'command = ["cp", "-r", "{tmp_path}/attached/{{receiver}}/.", "{{folder}}"]\n'
    )
    service.start_node()
    # Once the node has put the schedule into the store.
    until(lambda: service.call("schedule", "run", "poll.receivers.sync").returncode == 0)

    def syncs() -> list[Any]:
        lines = service.spinney("list", "--json", "--type", "receivers.sync").splitlines()
        return [json.loads(line) for line in lines]

    until(lambda: len(syncs()) == len(receivers))
    assert {service.ended(str(job["id"])) for job in syncs()} == {"completed"}
    assert {job["queue"] for job in syncs()} == {"receivers-priority"}
    assert {serial: service.content(serial) for serial in SERIALS} == expected(files, tmp_path)


def _children(*states: str) -> list[Child]:
    return [
        Child(
            id=number,
            type="receivers.detect",
            state=State(state),
            stage=None,
            code=None,
            message=None,
            warnings=0,
            params={"receiver": f"SG-{number - 6}"},
        )
        for number, state in enumerate(states, 7)
    ]


@pytest.mark.parametrize("named", [True, False], ids=["the user's name is an address", "a parameter"])
def test_the_uploader_gets_a_mail_with_the_summary_and_the_products(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "receivers.toml").write_text(
        '[mail]\nhost = "mail.example.org"\nsender = "Receivers <r@example.org>"\n'
    )
    (tmp_path / "tags.csv").write_text("tag,frequency,gap1,gap2,gap3,interval\n")
    from spinney.apps.receivers import app

    children = _children("completed", "failed")
    harness = StageHarness(results={"check_files": 3}, children=children)
    if named:
        harness.data["inbox"] = {"owner": "ann@example.org"}
    harness.data["product:7:00_"] = {"title": "Plot of SG-1", "path": "SG-1.svg"}

    harness.run(app.types["receivers.upload"], "report", **({} if named else {"uploader": "ann@example.org"}))

    (mail,) = harness.submitted
    assert (mail.type, mail.params["to"]) == ("reports.mail", ["ann@example.org"])
    assert mail.params["subject"] == "Your upload 3 failed in part, 3 files put aside"
    assert "2 receivers, 3 files put aside, failed: SG-2" in mail.params["text"]
    assert "Plot of SG-1: job 7, SG-1.svg" in mail.params["text"]


def test_the_uploader_gets_one_mail_for_each_change_of_the_outcome_and_the_last_one_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "receivers.toml").write_text(
        '[mail]\nhost = "mail.example.org"\nsender = "Receivers <r@example.org>"\n'
    )
    (tmp_path / "tags.csv").write_text("tag,frequency,gap1,gap2,gap3,interval\n")
    from spinney.apps.receivers import app

    done, failed = _children("completed", "completed"), _children("completed", "failed")
    rerun = _children("completed", "completed", "completed")[1:]  # other jobs in place of the first ones
    data: dict[str, Any] = {}
    mails: dict[str, str] = {}
    for children in (done, done, failed, failed, done, failed, rerun):
        harness = StageHarness(results={"check_files": 0}, children=children, data=data)
        harness.run(app.types["receivers.upload"], "report", uploader="ann@example.org")
        data = harness.data
        (mail,) = harness.submitted
        assert mails.setdefault(str(mail.key), mail.params["subject"]) == mail.params["subject"]

    assert [subject.removeprefix("Your upload 3 ") for subject in mails.values()] == [
        "is done",
        "failed in part",
        "is done",
        "failed in part",
        "is done",
    ]
