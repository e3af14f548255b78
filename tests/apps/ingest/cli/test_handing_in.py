"""What is handed in while no node runs: accepted whole, or refused with one sentence and nothing left behind."""

import hashlib
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spinney.apps.ingest.manifests import PayloadKind

from .house import House

TEXT = b"some bytes\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def left(house: House) -> list[str]:
    """All that lies where batches come in."""
    places = (house.folder / "home" / name for name in ("incoming", "held"))
    return [file.name for place in places for file in place.iterdir()]


def test_a_payload_is_copied_and_becomes_a_batch(house: House) -> None:
    path = house.file("map.tif", TEXT)

    (accepted,) = house.lines(
        "submit",
        path,
        "--profile",
        "maps",
        "--kind",
        "file",
        "--digest",
        f"SHA-256:{sha256(TEXT).upper()}",
        "--submitter",
        "ann",
        "--local-id",
        "m/1",
        "--local-id",
        "m;2",
        "--update",
        "--response",
        "anvl",
    )

    assert (house.folder / "home" / "incoming" / accepted["bid"] / "map.tif").read_bytes() == TEXT
    status = house.status(accepted["bid"])
    assert (status["state"], status["job"], status["mode"]) == ("pending", accepted["job"], "update")
    assert house.status(str(accepted["job"])) == status
    job = house.shell.listed("list")[0]
    assert (job["collection"], job["submitter"], job["key"]) == ("maps", "ann", accepted["bid"])
    order = job["params"]["order"]
    assert (order["about"]["local_ids"], order["response"]) == (["m/1", "m;2"], "anvl")


def test_the_kind_of_a_manifest_is_found_out(house: House) -> None:
    (accepted,) = house.lines("submit", house.manifest("a.checkm", {"x": TEXT}), "--profile", "maps")

    assert accepted["kind"] == "single-file-batch-manifest"


def test_a_payload_may_come_by_stdin(house: House) -> None:
    done = house.shell.run(
        "ingest",
        "submit",
        "-",
        "--profile",
        "maps",
        "--kind",
        "file",
        "--name",
        "piped",
        "--json",
        stdin="by a pipe",
    )

    assert done.returncode == 0, done.stderr
    (place,) = (house.folder / "home" / "incoming").iterdir()
    assert (place / "piped").read_bytes() == b"by a pipe"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--kind", "file", "--profile", "mapps"], 2, "did you mean 'maps'"),
        (["--profile", "maps"], 2, "if this payload is not meant as a manifest, name its kind with --kind: "),
        (["--profile", "maps", "--kind", "files"], 2, "--kind"),
        (
            ["--profile", "maps", "--kind", "file", "--digest", f"sha256:{sha256(b'another')}"],
            1,
            "as was declared",
        ),
        (["--profile", "maps", "--kind", "file", "--digest", "sha256:12"], 2, "64 hexadecimal digits"),
        (["--profile", "maps", "--kind", "file", "--digest", "sha257:12"], 2, "no digest algorithm"),
        (["--profile", "maps", "--kind", "file", "--digest", sha256(TEXT)], 2, "ALGORITHM:VALUE"),
        (["--profile", "maps", "--kind", "file", "--name", "../up"], 2, "'/'"),
        (["--profile", "maps", "--kind", "file", "--name", ".."], 2, "no name of a file"),
        (["--profile", "maps", "--kind", "file", "--name", "n" * 256], 2, "longer than 255 bytes"),
        (["--profile", "maps", "--kind", "file", "--primary-id", "doi:10.1/2"], 2, "doi:10.1/2"),
        (["--profile", "maps", "--kind", "file", "--local-id", "a\nb"], 2, "local id"),
        (["--profile", "maps", "--kind", "file", "--title", "a\nb"], 2, "line break"),
        (["--profile", "maps", "--kind", "file", "--creator", "\x1b[31m"], 2, r"\x1b[31m"),
        (["--profile", "maps", "--kind", "file", "--fail-at", "downloding"], 2, "did you mean 'downloading'"),
        (
            ["--profile", "maps", "--kind", "file", "--notify", "a@example.org", "--notify", "ann"],
            2,
            "is no mail",
        ),
        (["--profile", "maps", "--kind", "file", "--response", "in words"], 2, "not a format of responses"),
        (["--profile", "maps", "--kind", "file", "--submitter", "a\tb"], 2, "printable"),
        (["--profile", "maps", "--kind", "batch-manifest", "--title", "all"], 2, "title"),
        (["--profile", "slow", "--kind", "batch-manifest", "--title", "all"], 2, "title"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    untouched: House, words: list[str], code: int, message: str
) -> None:
    path = untouched.file("map.tif", TEXT)

    assert message in untouched.refused(code, "submit", path, *words)

    assert left(untouched) == []


def test_a_disk_that_is_full_leaves_nothing_behind(untouched: House) -> None:
    path = untouched.file("map.tif", b"m" * 3_000_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        output = untouched.refused(1, "submit", path, "--profile", "maps", "--kind", "file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "free some disk space" in output
    assert left(untouched) == []


def test_what_is_no_regular_file_is_refused_at_once(house: House) -> None:
    pipe = house.folder / "pipe"
    os.mkfifo(pipe)
    wrong = {pipe: "no regular file", house.folder: "no regular file", house.folder / "no": "cannot read"}
    for path, complaint in wrong.items():
        assert complaint in house.refused(2, "submit", str(path), "--profile", "maps", "--kind", "file")
    assert "--name" in house.refused(2, "submit", "-", "--profile", "maps", "--kind", "file")
    assert left(house) == []


def test_a_store_that_does_not_take_it_leaves_nothing_behind(house: House) -> None:
    words = ("submit", house.file("map.tif"), "--profile", "slow", "--kind", "file")

    house.refused(1, *words, "--store", "sqlite:///none.db")

    assert left(house) == []


def test_killed_while_it_copies_it_leaves_what_a_sweep_removes(house: House) -> None:
    process = house.shell.start(
        "ingest", "submit", "-", "--profile", "maps", "--kind", "file", "--name", "half"
    )
    assert process.stdin is not None
    process.stdin.write("half of it")
    process.stdin.flush()
    incoming = house.folder / "home" / "incoming"
    while not [file for file in incoming.glob("*/half") if file.stat().st_size]:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    process.kill()
    process.communicate()
    (place,) = incoming.iterdir()
    waiting = house.submit(house.file("map.tif"), "--kind", "file")

    assert house.document("sweep", "--days", "0")["leftovers"] == [], "it may still be copied"
    for file in (*incoming.glob("*/*"), *incoming.iterdir()):
        os.utime(file, (0, 0))
    assert house.document("sweep", "--days", "0", "--dry-run")["leftovers"] == [str(place)]
    assert house.ingest("sweep", "--days", "0") == f"{place}\n0 batches and 1 leftover are removed\n"
    assert left(house) == [waiting], "one that waits for a node is no leftover"


def test_a_failure_is_ordered_in_test_mode_only(house: House) -> None:
    settings = house.folder / "ingest.toml"
    settings.write_text(settings.read_text().replace("test_mode = true", "test_mode = false"))

    output = house.refused(
        2, "submit", house.file("x"), "--profile", "maps", "--kind", "file", "--fail-at", "recording"
    )

    assert "test mode only" in output


def test_a_batch_that_its_profile_holds_is_marked_before_it_is_there(house: House) -> None:
    bid = house.submit(house.file("map.tif"), "--kind", "file", profile="slow")

    assert (house.folder / "home" / "held" / bid).read_text() == "somebody looks first\n"


# --- check ------------------------------------------------------------------------------------


def test_a_manifest_is_judged_whole(house: House) -> None:
    path = house.manifest("a.checkm", {"x": TEXT, "y": TEXT})
    whole = Path(path).read_bytes()
    assert house.document("check", path) == {
        "kind": "single-file-batch-manifest",
        "rows": 2,
        "bytes": 22,
        "sizes_unknown": 0,
        "whole": True,
        "problems": [],
        "warnings": [],
    }
    assert house.ingest("check", path) == "single-file-batch-manifest: 2 rows, 22 bytes\n"

    Path(path).write_bytes(whole.replace(b"| sha256 |", b"| sha255 |"))

    result = house.shell.call("ingest", "check", path)
    assert result.returncode == 1
    assert [line[: len("line 6")] for line in result.stdout.splitlines()[:2]] == ["line 6", "line 7"]
    assert result.stdout.splitlines()[-1].endswith("2 problems")
    assert house.shell.call("ingest", "check", path, "--json").returncode == 1
    house.refused(1, "check", "none.checkm")
    assert left(house) == []


def test_names_that_nearly_meet_are_a_warning_and_no_problem(house: House) -> None:
    path = house.manifest("a.checkm", {"x": TEXT, "X": TEXT}, PayloadKind.OBJECT_MANIFEST)

    output = house.ingest("check", path)

    assert "warning: line 7: the name 'X' is that on line 6 but for" in output
    assert output.endswith("object-manifest: 2 rows, 22 bytes; 1 warning\n")


def test_what_stands_in_a_manifest_cannot_move_the_cursor(house: House) -> None:
    path = house.file("bad.checkm", b"#%checkm_0.7\n#%profile | \x1b[2Jhttp://x\n#%eof\n")

    result = house.shell.call("ingest", "check", path)

    assert result.returncode == 1
    assert "\x1b" not in result.stdout + result.stderr


def test_without_settings_one_sentence_says_how_to_name_them(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "spinney", "ingest", "batches"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if not key.startswith("SPINNEY_")},
        timeout=60,
    )

    assert result.returncode == 2
    assert "SPINNEY_INGEST" in result.stderr
    assert result.stderr.count("\n") == 1
