"""Holds, pauses, lists and ``init``, while no node runs."""

import json
import re

import pytest

from spinney.cli import completer

from .house import House


def holds(house: House) -> list[tuple[str, str, str]]:
    return [(h["scope"], h["name"], h["reason"]) for h in house.shell.listed("holds")]


def test_a_collection_is_held_and_released(house: House) -> None:
    bid = house.submit(house.file("a"), "--kind", "file")

    assert "collection maps: 1 job is held" in house.ingest("hold", "maps", "--reason", "counting")
    later = house.submit(house.file("b"), "--kind", "file")

    assert holds(house) == [("collection", "maps", "counting")]
    assert {b["batch"] for b in house.lines("batches", "--state", "held")} == {bid, later}
    house.ingest("release", "maps")
    assert holds(house) == []
    assert {b["batch"] for b in house.lines("batches", "--state", "pending")} == {bid, later}


def test_a_batch_that_is_released_stays_under_the_hold_on_its_collection(house: House) -> None:
    house.ingest("hold", "slow", "--reason", "counting")
    bid = house.submit(house.file("a"), "--kind", "file", profile="slow")

    output = house.ingest("release", "--batch", bid)

    assert output.startswith(f"{bid} is released, but stays under hold ")
    assert "counting" in output
    lines = house.ingest("status", bid).splitlines()
    assert lines[-1].startswith("under          hold "), "in the column of the other facts"
    assert house.status(bid)["state"] == "held"
    assert list((house.folder / "home" / "held").iterdir()) == []
    assert "sweep" in house.refused(2, "sweep", "--days", "nan")


def test_what_no_profile_names_is_not_held(house: House) -> None:
    assert "did you mean 'maps'" in house.refused(2, "hold", "mapps", "--reason", "x")
    assert "did you mean 'maps'" in house.refused(2, "release", "mapps")
    assert "there is no hold" in house.refused(1, "release", "maps")
    assert "--reason" in house.refused(2, "hold", "maps")
    assert "either a collection, or a batch" in house.refused(2, "release")
    assert "either a collection, or a batch" in house.refused(2, "release", "maps", "--batch", "1")
    assert holds(house) == []


def test_a_pause_is_one_however_often_it_is_asked_for(house: House) -> None:
    house.submit(house.file("a"), "--kind", "file")

    assert house.ingest("pause", "ingest", "--reason", "moving house") == "ingest is paused\n"
    assert "was paused already" in house.ingest("pause", "--reason", "again")
    assert holds(house) == [("queue", "ingest", "moving house"), ("type", "ingest.object", "moving house")]
    assert [b["state"] for b in house.lines("batches")] == ["held"]

    assert house.ingest("unpause", "ingest") == "ingest continues\n"
    assert house.ingest("unpause") == "ingest was not paused\n"
    assert [b["state"] for b in house.lines("batches")] == ["pending"]


def test_a_pause_that_was_cut_off_is_completed(house: House) -> None:
    house.submit(house.file("a"), "--kind", "file")
    house.shell.ok("hold", "--queue", "ingest", "--reason", "half")

    assert house.ingest("pause", "--reason", "moving house") == "ingest is paused\n"

    assert holds(house) == [("queue", "ingest", "half"), ("type", "ingest.object", "moving house")]


def test_what_cannot_be_paused_is_told(house: House) -> None:
    assert "did you mean 'access-small'" in house.refused(2, "pause", "access-smal", "--reason", "x")


def test_lists_let_through_what_is_asked_for(house: House) -> None:
    first = house.submit(house.file("a"), "--kind", "file", "--submitter", "ann")
    second = house.submit(house.file("b"), "--kind", "file", "--submitter", "bob", profile="swift")

    def listed(*words: str) -> list[str]:
        return [entry["batch"] for entry in house.lines("batches", *words)]

    assert listed() == [second, first]
    assert listed("--profile", "maps") == [first]
    assert listed("--submitter", "bob") == [second]
    assert listed("--collection", "swift") == [second]
    assert listed("--state", "completed") == []
    assert listed("--limit", "1") == [second]
    assert listed("--after", str(house.status(second)["job"])) == [first]
    assert first in house.ingest("batches")
    assert first in house.ingest("status", first)
    assert house.lines("objects", first) == []


def test_names_of_nothing_are_told_apart(house: House) -> None:
    bid = house.submit(house.file("a"), "--kind", "file")
    job = str(house.status(bid)["job"])
    nothing = "-".join(["bid", bid[4:][::-1].replace("-", "")[:8], "0000", "0000", "0000", "000000000000"])

    assert "there is no batch" in house.refused(1, "status", nothing)
    assert "there is no object" in house.refused(1, "object", nothing.replace("bid", "jid"))
    assert "there is no job 999" in house.refused(1, "status", "999")
    assert "write bid-" in house.refused(2, "status", "9" * 5000)
    assert "write bid-" in house.refused(2, "status", "bid-1\x1b[2J")
    assert "is a 'ingest.batch' job and no object" in house.refused(1, "object", job)
    assert "is no name of a batch or object" in house.refused(2, "requeue", "nobody")
    assert "cancel it first" in house.refused(1, "delete", bid)
    assert "--now" in house.refused(1, "report", bid)
    assert "nothing to report yet" in house.refused(1, "report", bid, "--now")
    assert "--now and --number exclude each other" in house.refused(
        2, "report", bid, "--now", "--number", "1"
    )


def test_a_batch_that_was_cancelled_goes_on_by_the_command_that_requeue_names(house: House) -> None:
    bid = house.submit(house.file("a"), "--kind", "file")
    job = str(house.status(bid)["job"])
    house.shell.ok("cancel", job, "--tree")

    result = house.shell.call("ingest", "requeue", bid)

    assert (result.returncode, result.stdout) == (1, f"{bid}: nothing to requeue\n")
    assert f"{bid} was cancelled and has not failed; 'spinney retry --batch {job}" in result.stderr
    house.shell.ok(*re.findall(r"'spinney (.*?)'", result.stderr)[0].split(), "--yes")
    assert house.status(bid)["state"] == "pending"


def test_profiles_are_listed_those_that_cannot_be_read_among_them(house: House) -> None:
    profiles = {each["name"]: each for each in house.lines("profiles")}
    assert (profiles["swift"]["area"], profiles["swift"]["priority"], profiles["slow"]["hold"]) == (
        "fast",
        7,
        "somebody looks first",
    )
    assert "depositor@example.org" in house.ingest("profiles")

    (house.folder / "home" / "profiles" / "bad.toml").write_text("collection = 'x'\nminter = 'nobody'\n")

    result = house.shell.call("ingest", "profiles", "--json")
    assert result.returncode == 1
    listed = [json.loads(line) for line in result.stdout.splitlines()]
    assert ["nobody" in each.get("problem", "") for each in listed if each["name"] == "bad"] == [True]
    assert len(listed) == 4


def test_init_changes_nothing_the_second_time(house: House) -> None:
    before = sorted(str(place) for place in house.folder.rglob("*"))

    answer = house.document("init")

    assert sorted(str(place) for place in house.folder.rglob("*")) == before
    assert answer["storage main"] == f"{house.folder}/archive"
    assert (house.folder / "archive" / "0=ocfl_1.1").is_file()
    assert (house.folder / "fast").is_dir()
    assert str(house.folder) in house.ingest("init")


def test_a_held_batch_is_deleted_before_it_began(house: House) -> None:
    house.ingest("hold", "maps", "--reason", "counting")
    bid = house.submit(house.file("a"), "--kind", "file")

    house.ingest("delete", bid)

    assert house.incoming() == []
    assert [b["batch"] for b in house.lines("batches", "--state", "deleted")] == [bid]


def test_a_shell_is_offered_profiles_stages_and_states(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(house.folder)
    monkeypatch.delenv("SPINNEY_INGEST", raising=False)

    def offered(line: str, begun: str = "") -> list[str]:
        return [offer.value for offer in completer.suggestions(line.split(), begun)]

    assert offered("ingest submit --profile", "s") == ["slow", "swift"]
    assert offered("ingest requeue --from", "pro") == ["provisioning", "processing"]
    assert "update-reporting" in offered("ingest batches --state")
    assert offered("ingest pause", "access-l") == ["access-large"]
    assert "requeue" in offered("ingest")
    monkeypatch.chdir(house.folder.parent)
    assert offered("ingest submit --profile", "s") == []
