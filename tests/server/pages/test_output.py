"""Output as pages read it, from a job's folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from server.conftest import World
from spinney.features.files import page as output
from spinney.model.attempts import remarks


def ran(
    world: World,
    stdout: bytes,
    stderr: bytes = b"",
    of: tuple[str, Mapping[str, Any]] = ("one", {}),
) -> int:
    """A job of this type and with these parameters that ran once and wrote this."""
    job = world.submit(*of)
    stage = world.store.job(job).stage
    world.site.pass_(world.site.run(job))
    fence = world.control().queries.attempts(job)[-1].fence
    folder = world.folder(job) / output.OWN
    folder.mkdir()
    for name, data in (("stdout", stdout), ("stderr", stderr)):
        if data:
            (folder / f"{stage}.{fence}.{name}").write_bytes(data)
    return job


def read(world: World, job: int, search: str = "") -> output.Output:
    return output.output(world.control(), job, world.folders, fence=None, search=search)


def test_given_a_long_stream_then_its_end_is_shown_from_a_whole_line_on(world: World) -> None:
    job = ran(world, b"".join(b"line %d\n" % n for n in range(20_000)))

    (stream,) = read(world, job).streams

    assert stream.start > 0
    assert stream.shown.text.startswith("line ")
    assert stream.shown.text.endswith("line 19999\n")
    assert stream.shown.next == stream.size


@pytest.mark.parametrize("cut", range(1, 4))
def test_given_a_character_cut_at_the_end_then_it_is_shown_when_it_is_whole(world: World, cut: int) -> None:
    whole = "🌲".encode()
    job = ran(world, b"a" + whole[:cut])

    (stream,) = read(world, job).streams

    assert (stream.shown.text, stream.shown.next) == ("a", 1)


def test_given_a_text_to_find_then_lines_of_both_streams_are_told_by_number(world: World) -> None:
    job = ran(world, b"one\nTWO fish\n", b"no\nred FISH\n")

    matches = read(world, job, "fish").matches

    assert matches is not None
    assert [(m.stream, m.number, m.text) for m in matches] == [
        ("stdout", 2, "TWO fish"),
        ("stderr", 2, "red FISH"),
    ]


def test_given_colours_and_a_progress_bar_then_what_a_terminal_would_show_is_shown_and_found(
    world: World,
) -> None:
    job = ran(world, b"\x1b]0;title\x07\x1b[1;32mok\x1b[0m: done\r\n 10%\r 50%\r100%\n\x1b(B\x1b7last\x1b8")

    shown = read(world, job, "ok: done")

    assert shown.streams[0].shown.text == "ok: done\n100%\nlast"
    assert shown.matches is not None
    assert [match.text for match in shown.matches] == ["ok: done"]


def test_given_more_was_written_then_it_is_told_from_where_the_page_stands(world: World) -> None:
    job = ran(world, b"first\nsecond\n")
    fence = world.control().queries.attempts(job)[-1].fence

    shown = output.more(world.control(), job, world.folders, fence=fence, stream="stdout", start=6)

    assert (shown.text, shown.unfinished, shown.next, shown.more) == ("second\n", "", 13, False)


def test_given_a_progress_bar_that_runs_then_its_last_state_replaces_the_one_before(world: World) -> None:
    """What is unfinished comes again with what follows: a terminal's line, and a control cut in two."""
    job = world.submit()
    lease = world.site.run(job)
    file = world.folder(job) / output.OWN / f"{lease.stage}.{lease.fence}.stdout"
    file.parent.mkdir(exist_ok=True)
    shown, unfinished, at = "", "", 0
    for piece, now in (
        (b"begun\n 10%", "begun\n 10%"),
        (b"\r 20%\r", "begun\n 20%"),
        (b" 30%\x1b[", "begun\n 30%"),
        (b"1m bold", "begun\n 30% bold"),
        (b"\r100%\ndone", "begun\n100%\ndone"),
    ):
        with file.open("ab") as out:
            out.write(piece)
        part = output.more(world.control(), job, world.folders, fence=lease.fence, stream="stdout", start=at)
        shown = shown.removesuffix(unfinished) + part.text + part.unfinished
        unfinished, at = part.unfinished, part.next
        assert part.more
        assert shown.startswith(now)

    assert shown == "begun\n100%\ndone"


def test_given_an_endless_line_then_it_is_passed_on_in_pieces(world: World) -> None:
    job = world.submit()
    lease = world.site.run(job)
    file = world.folder(job) / output.OWN / f"{lease.stage}.{lease.fence}.stdout"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"x" * 200_000)
    shown, at = "", 0
    for _ in range(4):
        part = output.more(world.control(), job, world.folders, fence=lease.fence, stream="stdout", start=at)
        shown, at = shown + part.text, part.next
    assert (len(part.unfinished), part.next) == (200_000 % output.PIECE_BYTES, len(shown))
    assert shown + part.unfinished == "x" * 200_000


def test_given_output_was_lost_then_the_page_says_so_and_not_that_there_was_none(world: World) -> None:
    job = world.submit()
    world.site.pass_(world.site.run(job), remark=remarks.lost(12, "No space left on device"))

    page = world.client("admin").get(f"/jobs/{job}/output", headers={"Accept": "text/html"}).text

    assert "Some of its output was lost (12 bytes: No space left on device)." in page
    assert "No output" not in page


def test_given_a_folder_then_its_names_are_listed_without_the_engines_own(
    world: World, tmp_path: Path
) -> None:
    job = ran(world, b"x")
    folder = world.folder(job)
    (folder / "b.txt").write_text("x")
    (folder / "a").mkdir()

    listing = output.listing(world.control(), job, world.folders, "")

    assert [(e.name, e.kind) for e in listing] == [("a", "folder"), ("b.txt", "file")]


def test_given_a_secret_of_several_lines_then_no_search_finds_a_part_of_it(world: World) -> None:
    secret = "-----BEGIN-----\nMIIEvQIB AND\nabc AND\n-----END-----"
    job = ran(world, f"loaded AND:\n{secret}\ndone AND\n".encode(), of=("double", {"n": 1, "pin": secret}))

    matches = read(world, job, "and").matches

    assert matches is not None
    assert [m.text for m in matches] == ["loaded AND:", "done AND"]


def test_given_a_running_attempt_that_has_written_the_beginning_of_a_secret_then_it_is_not_shown(
    world: World,
) -> None:
    secret = "hunter2-the-long-secret"
    job = world.submit("double", {"n": 1, "pin": secret})
    lease = world.site.run(job)
    file = world.folder(job) / output.OWN / f"{lease.stage}.{lease.fence}.stdout"
    file.parent.mkdir()
    file.write_text(f"begun\npin is {secret[:-1]}")

    def more(start: int) -> output.Shown:
        return output.more(
            world.control(), job, world.folders, fence=lease.fence, stream="stdout", start=start
        )

    page, piece = read(world, job, secret[:7]), more(0)

    for shown in (page.streams[0].shown, piece):
        assert shown.text + shown.unfinished == "begun\npin is "
    assert page.matches == []

    with file.open("a") as stdout:
        stdout.write(f"{secret[-1]}\n{'done' * len(secret)}\n")
    rest = more(piece.next)

    assert f"pin is {'*' * len(secret)}\n" in rest.text
    assert rest.text.endswith("done\n")
