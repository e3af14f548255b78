"""Pictures of a receiver whose clock said 1970 until GPS set it."""

from pathlib import Path

from examples.receivers.simulation import BEGUN, TAGS, Scene, file_name, write_files
from spinney.apps.receivers import timeline
from spinney.apps.receivers.database.receiver_database import ReceiverDatabase
from spinney.apps.receivers.database.snapshots import snapshot
from spinney.apps.receivers.plot import svg


def at_start(line: str) -> str:
    """Return a line as a clock writes it that begins at 1970."""
    kind, port, time, *rest = line.split(",")
    return ",".join((kind, port, f"{float(time) - BEGUN + 1000:.6f}", *rest))


def test_a_timeline_begins_behind_the_time_at_which_the_clock_was_set(tmp_path: Path) -> None:
    lines = Scene(seconds=120).lines()
    half = len(lines) // 2
    early, later = map(at_start, lines[:half]), lines[half:]
    files = write_files(list(early), tmp_path / "early", []) + write_files(later, tmp_path / "later", [])
    ReceiverDatabase(tmp_path / "r.sqlite", TAGS).detect(files, now_s=BEGUN + 86_400)

    with snapshot(tmp_path / "r.sqlite") as db:
        shown = timeline.read(db, now_s=BEGUN + 86_400)

    (session,) = shown.sessions
    assert session.begun < 86_400
    assert shown.begun >= BEGUN
    assert session.file_marks == (0.0, 0.0)
    assert any(width > timeline.WIDTH / 2 for _, width, _ in session.run_marks)
    assert all(left >= 0 and left + width <= timeline.WIDTH + 2 for left, width, _ in session.run_marks)


def test_a_file_whose_name_has_a_time_to_come_does_not_stretch_the_timeline(tmp_path: Path) -> None:
    now_s = BEGUN + 3600
    files = write_files(Scene(seconds=120).lines(), tmp_path / "right", [])
    ahead = tmp_path / file_name(4, BEGUN + 50 * 365 * 86_400)
    ahead.write_text(f"p,1,{BEGUN + 60},4.0,-60.0,-90.0\n")
    ReceiverDatabase(tmp_path / "r.sqlite", TAGS).detect([*files, ahead], now_s=now_s)

    with snapshot(tmp_path / "r.sqlite") as db:
        shown = timeline.read(db, now_s=now_s)
        totals = timeline.totals(db, now_s=now_s)

    later, right = shown.sessions
    assert later.begun > now_s
    assert shown.ended <= BEGUN + 120
    assert later.file_marks == (timeline.WIDTH,)
    assert any(width > timeline.WIDTH / 2 for _, width, _ in right.run_marks)
    assert totals["last"] == right.begun


def test_a_plot_leaves_out_the_hours_before_the_clock_was_set() -> None:
    hour = int(BEGUN // 3600)
    unset = [("1.1", 0, 7)]
    plot = svg("SG-1", [*unset, ("1.1", hour, 3), ("1.2", hour + 9, 1)])
    assert "11 hits of 2 tags, 7 of them before the clock was set, and not drawn" in plot
    assert "1970" not in plot
    assert "1970-01-01 00:00 UTC: 7 hits" in svg("SG-1", unset)
    assert "not drawn" not in svg("SG-1", unset)


def test_a_plot_of_a_single_hit_has_it_in_the_singular() -> None:
    plot = svg("SG-1", [("1.1", int(BEGUN // 3600), 1)])
    assert "SG-1: 1 hit of 1 tag<" in plot
    assert " UTC: 1 hit<" in plot
