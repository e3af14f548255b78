"""Detections in simulated files: they are the true ones, and the same in whatever pieces and order the files come."""

import gzip
import itertools
import sqlite3
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.receivers.simulation import BEGUN, TAGS, Scene, file_name, write_files
from spinney.apps.receivers.database.receiver_database import Detected, ReceiverDatabase
from spinney.apps.receivers.database.snapshots import snapshot
from spinney.apps.receivers.detection.bursts import BurstFinder
from spinney.apps.receivers.detection.jumps import sifted
from spinney.apps.receivers.detection.pulses import LINE_BYTES, Pulses, ReadCounts, read_pulses
from spinney.apps.receivers.detection.source_files import source_file
from spinney.apps.receivers.detection.tags import read_tags
from spinney.errors import UsageError

NOW_S = BEGUN + 86_400.0
SMALL = Scene(seconds=120, noise_per_s=2.0)
LINES = SMALL.lines()


def content(path: Path) -> list[list[tuple[object, ...]]]:
    """All that was detected."""
    with snapshot(path) as db:
        return [
            db.execute(f"select * from {table} order by 1, 2, 3").fetchall()
            for table in ("runs", "hits", "gps")
        ]


def detected(folder: Path, files: list[Path], *, calls: int = 1) -> list[list[tuple[object, ...]]]:
    """What is in a new database after these files, given in so many calls."""
    path = folder / "SG-7F5ERPI46977.sqlite"
    path.unlink(missing_ok=True)
    size = -(-len(files) // calls)
    for begin in range(0, len(files), size):
        ReceiverDatabase(path, TAGS).detect(files[begin : begin + size], now_s=NOW_S)
    return content(path)


def scores(scene: Scene, folder: Path) -> tuple[float, float]:
    """Return recall (of bursts that were heard whole) and precision of the hits."""
    (file,) = write_files(scene.lines(), folder, [])
    _, hits, _ = detected(folder, [file])
    runs, _, _ = content(folder / "SG-7F5ERPI46977.sqlite")
    whose = {(session, run): (tag, port) for session, run, tag, port in runs}
    times = {(*whose[session, run], time) for session, run, time, *_ in hits}
    true = sum(
        any((tag, port, round(time + step, 3)) in scene.truth for step in (-0.001, 0.0, 0.001))
        for tag, port, time in times
    )
    return true / len(scene.truth), true / len(times)


@pytest.mark.parametrize(
    ("noise_per_s", "missed", "recall", "precision"),
    [(0.0, 0.0, 0.97, 0.99), (2.0, 0.05, 0.93, 0.97), (10.0, 0.1, 0.75, 0.9)],
)
def test_most_true_bursts_are_detected_and_few_others(
    noise_per_s: float, missed: float, recall: float, precision: float, tmp_path: Path
) -> None:
    share_detected, right = scores(Scene(noise_per_s=noise_per_s, missed=missed), tmp_path)
    assert share_detected >= recall
    assert right >= precision


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[object, ...]]]:
    """What is detected in one file."""
    folder = tmp_path_factory.mktemp("whole")
    return detected(folder, write_files(LINES, folder, []))


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_pieces_and_order_do_not_matter(
    data: st.DataObject, whole: list[list[tuple[object, ...]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    cuts = data.draw(st.lists(st.integers(1, len(LINES) - 1), max_size=6))
    files = write_files(LINES, folder, cuts, packed=data.draw(st.booleans()))
    files = data.draw(st.permutations(files))
    assert detected(folder, files, calls=data.draw(st.integers(1, len(files)))) == whole


def test_files_that_come_again_change_nothing(tmp_path: Path) -> None:
    files = write_files(LINES, tmp_path, [len(LINES) // 2])
    database = ReceiverDatabase(tmp_path / "r.sqlite", TAGS)
    first = database.detect(files, now_s=NOW_S)
    before = content(tmp_path / "r.sqlite")
    renamed = tmp_path / file_name(3, BEGUN + 999)
    renamed.write_bytes(files[0].read_bytes())

    again = database.detect([*files, renamed], now_s=NOW_S + 1)

    assert (first.files, first.repeated) == (2, 0)
    assert again == Detected(0, 3, 0, 0, 0, ())
    assert content(tmp_path / "r.sqlite") == before


def test_a_file_that_came_in_part_and_then_whole_counts_once(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    (file,) = write_files(LINES, tmp_path / "whole", [])
    part = tmp_path / "part" / file.name
    part.parent.mkdir()
    part.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 3])
    assert detected(tmp_path, [part, file], calls=2)[:1] == whole[:1]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_damaged_copy_and_the_whole_file_of_its_name_are_detected_alike_in_either_order(
    order: tuple[int, int], calls: int, packed: bool, tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    (file,) = write_files(LINES, tmp_path / "whole", [], packed=packed)
    damaged = tmp_path / "damaged" / file.name.removesuffix(".gz")
    damaged.parent.mkdir()
    damaged.write_text(
        "".join(f"{line}\n" for number, line in enumerate(LINES[: len(LINES) * 2 // 3]) if number % 7)
    )
    assert not packed or damaged.stat().st_size > file.stat().st_size
    files = [(damaged, file)[number] for number in order]
    assert detected(tmp_path, files, calls=calls) == whole


def grown(folder: Path, ends: list[int], lines: list[str] = LINES, *, cut_off: int = 0) -> list[Path]:
    """Write one file as it is when it has so many lines, each time but the last without its last ``cut_off`` bytes;
    every other one is packed."""
    files = []
    for number, end in enumerate(ends):
        (file,) = write_files(lines[:end], folder / str(end), [], packed=bool(number % 2))
        if cut_off and end < ends[-1]:
            content = gzip.decompress(file.read_bytes()) if number % 2 else file.read_bytes()
            file.write_bytes(gzip.compress(content[:-cut_off]) if number % 2 else content[:-cut_off])
        files.append(file)
    return files


@pytest.mark.parametrize("cut_off", [0, 1, 40])
def test_a_file_that_has_grown_goes_on_where_it_ended(
    cut_off: int, tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    third = len(LINES) // 3
    database = ReceiverDatabase(tmp_path / "r.sqlite", TAGS)

    done = [
        database.detect([file], now_s=NOW_S)
        for file in grown(tmp_path, [third, 2 * third, len(LINES)], cut_off=cut_off)
    ]

    assert [each.afresh for each in done] == [(), (), ()]
    assert sum(each.pulses for each in done) <= len(LINES) + 2  # the lines that were cut off, once more
    assert content(tmp_path / "r.sqlite") == whole


def test_a_file_that_has_grown_and_those_behind_it_go_on_in_one_call(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    half = len(LINES) // 2
    first, second = write_files(LINES, tmp_path / "whole", [half])
    (part,) = write_files(LINES[: half // 2], tmp_path / "part", [])
    database = ReceiverDatabase(tmp_path / "r.sqlite", TAGS)
    begun = database.detect([part], now_s=NOW_S)

    done = database.detect([second, first], now_s=NOW_S)

    assert (begun.pulses + done.pulses, done.afresh) == (len(LINES), ())
    assert content(tmp_path / "r.sqlite") == whole


def with_wrong_times_that_are_near_to_each_other() -> list[str]:
    third = len(LINES) // 3
    garbled = [[f"p,{port},{BEGUN + 80_000 + s},4.0,-60.0,-90.0" for port in (1, 2)] for s in (0, 30)]
    return [*LINES[:third], *garbled[0], *LINES[third : third + 50], *garbled[1], *LINES[third + 50 :]]


def test_wrong_times_that_are_near_to_each_other_hide_nothing_of_what_a_file_has_grown_by(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    lines = with_wrong_times_that_are_near_to_each_other()
    assert detected(tmp_path, grown(tmp_path, [len(lines) * 2 // 3, len(lines)], lines), calls=2) == whole


def test_a_copy_with_wrong_times_that_are_near_to_each_other_hides_nothing_of_the_next_file(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    lines = with_wrong_times_that_are_near_to_each_other()
    cut = len(lines) * 2 // 3
    files = write_files(lines, tmp_path / "whole", [cut])
    (copy,) = write_files(lines[: cut - 9], tmp_path / "copy", [])
    assert detected(tmp_path, [copy, *files]) == whole


def test_a_data_folder_that_was_moved_is_read_at_its_new_place(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "databases").mkdir(parents=True)
    third = len(LINES) // 3
    files = write_files(LINES, old / "files", [third, 2 * third])
    database = ReceiverDatabase(old / "databases" / "r.sqlite", TAGS)
    database.detect([files[0], files[2]], now_s=NOW_S)
    old.rename(new)

    path = new / "databases" / "r.sqlite"
    done = ReceiverDatabase(path, TAGS).detect([new / "files" / files[1].name], now_s=NOW_S)

    assert done.afresh == (3,)
    assert content(path) == whole


def test_databases_on_a_disk_of_their_own_may_be_moved_without_the_files(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    (tmp_path / "fast" / "databases").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    link = tmp_path / "data" / "databases"
    link.symlink_to(tmp_path / "fast" / "databases")
    third = len(LINES) // 3
    files = write_files(LINES, tmp_path / "data" / "files", [third, 2 * third])
    ReceiverDatabase(link / "r.sqlite", TAGS).detect([files[0], files[2]], now_s=NOW_S)
    with snapshot(link / "r.sqlite") as db:
        assert {Path(path).parent for (path,) in db.execute("select path from files")} == {Path("files")}
    (tmp_path / "fast").rename(tmp_path / "faster")
    link.unlink()
    link.symlink_to(tmp_path / "faster" / "databases")

    done = ReceiverDatabase(link / "r.sqlite", TAGS).detect([files[1]], now_s=NOW_S)

    assert done.afresh == (3,)
    assert content(link / "r.sqlite") == whole


def test_one_content_under_the_names_of_two_sessions_counts_once(tmp_path: Path) -> None:
    (file,) = write_files(Scene(seconds=30).lines(), tmp_path / "raw", [], session=3)
    twin = file.with_name(file.name.replace("-000003-", "-000004-"))
    twin.write_bytes(file.read_bytes())
    database = ReceiverDatabase(tmp_path / "x.sqlite", TAGS)
    detected = database.detect([twin, file], now_s=NOW_S)
    assert (detected.files, detected.repeated) == (1, 1)
    with snapshot(tmp_path / "x.sqlite") as db:
        assert db.execute("select name, session from files").fetchall() == [(file.name, 3)]


def test_a_changed_table_of_tags_detects_the_session_afresh(tmp_path: Path) -> None:
    files = write_files(LINES, tmp_path, [len(LINES) // 2])
    path = tmp_path / "r.sqlite"
    ReceiverDatabase(path, TAGS[:1]).detect(files[:1], now_s=NOW_S)

    second = ReceiverDatabase(path, TAGS).detect(files[1:], now_s=NOW_S + 1)
    rerun = ReceiverDatabase(path, TAGS).rerun([3], now_s=NOW_S + 2)

    assert second.afresh == (3,)
    assert (rerun.files, rerun.hits, rerun.afresh) == (0, 0, (3,))
    assert content(path) == detected(tmp_path, files)


def test_a_call_that_is_broken_off_leaves_nothing_half(tmp_path: Path) -> None:
    files = write_files(LINES, tmp_path, [len(LINES) // 2])
    path = tmp_path / "r.sqlite"
    ReceiverDatabase(path, TAGS).detect(files[:1], now_s=NOW_S)
    before = content(path)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ReceiverDatabase(path, TAGS, between=stop).detect(files, now_s=NOW_S + 1)
    assert content(path) == before
    with sqlite3.connect(path) as db:
        assert db.execute("select count(*) from batches").fetchone() == (1,)


def test_a_pulse_of_the_future_is_broken_and_those_after_it_count(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    cut = len(LINES) // 3
    garbled = [f"p,{port},{NOW_S + 86_401:.3f},4.0,-60.0,-90.0" for port in (1, 2)]
    (file,) = write_files([*LINES[:cut], *garbled, *LINES[cut:]], tmp_path, [])

    detected = ReceiverDatabase(tmp_path / "r.sqlite", TAGS).detect([file], now_s=NOW_S)
    rerun = ReceiverDatabase(tmp_path / "r.sqlite", TAGS).rerun([3], now_s=NOW_S)

    assert (detected.broken, rerun.broken) == (2, 2)
    assert content(tmp_path / "r.sqlite") == whole


@pytest.mark.parametrize("ahead_s", [200.0, 86_400.0 * 3, 86_400.0 * 300])
@pytest.mark.parametrize("at", [0, 1, len(LINES) // 3, len(LINES)])
def test_a_time_that_the_next_pulse_contradicts_is_broken_and_those_after_it_count(
    ahead_s: float, at: int, tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    garbled = [f"p,{port},{BEGUN + ahead_s:.3f},4.0,-60.0,-90.0" for port in (1, 2)]
    (file,) = write_files([*LINES[:at], *garbled, *LINES[at:]], tmp_path / "one", [])
    years_later = ReceiverDatabase(tmp_path / "r.sqlite", TAGS)

    detected = years_later.detect([file], now_s=BEGUN + 86_400 * 1_000)

    contradicted = 0 if at == len(LINES) else 2
    assert (detected.pulses, detected.broken) == (len(LINES) + 2 - contradicted, contradicted)
    assert content(tmp_path / "r.sqlite")[1:] == whole[1:]


@pytest.mark.parametrize("quiet_s", [0.0, 3_600.0])
@pytest.mark.parametrize("between_calls", [False, True])
def test_a_wrong_time_behind_the_first_pulse_of_a_port_or_of_a_quiet_hour_loses_no_burst(
    quiet_s: float, between_calls: bool, tmp_path: Path
) -> None:
    times = [float(time) for time in BEGUN + quiet_s + np.cumsum((0.0, *TAGS[0].gaps_s))]
    early = [BEGUN - 1.0, BEGUN] if quiet_s else []
    lines = [
        f"p,1,{time:.6f},4.0,-60.0,-90.0" for time in (*early, times[0], times[0] + 10_000.0, *times[1:])
    ]
    cuts = [number for number in range(1, len(lines)) if between_calls]
    finder = BurstFinder(TAGS)
    right_ones, broken = 0, 0
    for begin, end in itertools.pairwise([0, *cuts, len(lines)]):
        finder = BurstFinder(TAGS, orjson.loads(orjson.dumps(finder.state)))
        (file,) = write_files(lines[begin:end], tmp_path, [])
        for piece in read_pulses(file, ReadCounts(), now_s=NOW_S):
            right_ones += len(finder.find(piece))
        broken += finder.broken

    assert (right_ones, broken) == (1, 1)


def test_a_pulse_between_two_doubtful_ones_decides_for_the_first() -> None:
    rows = np.array([[1_000.0], [1_070.0], [1_015.0]])
    counted, doubtful, broken = sifted(rows, 0.0, rows[:0])
    assert (counted.tolist(), doubtful.tolist(), broken) == ([[1_000.0], [1_015.0]], [], 1)


def test_a_doubtful_pulse_that_an_older_version_saved_still_counts() -> None:
    times = [float(time) for time in BEGUN + np.cumsum((0.0, *TAGS[0].gaps_s))]
    state = {"1": [[], [], [times[0], 4.0, -60.0, -90.0]]}
    rest = np.array([[1, time, 4.0, -60.0, -90.0] for time in times[1:]]).T
    assert len(BurstFinder(TAGS, state).find(Pulses(rest[0].astype(np.int32), *rest[1:]))) == 1


def test_a_wrong_time_at_the_end_of_a_file_hides_nothing_of_the_next_nor_of_the_same_file_again(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    cut = len(LINES) // 3
    garbled = [f"p,{port},{BEGUN + 86_400:.3f},4.0,-60.0,-90.0" for port in (1, 2)]
    lines = [*LINES[:cut], *garbled, *LINES[cut:]]
    files = write_files(lines, tmp_path / "cut", [cut + 2])
    assert detected(tmp_path, files, calls=2) == whole

    (file,) = write_files(lines, tmp_path / "all", [])
    (part,) = write_files([*lines[: cut + 2], *LINES[cut : cut + 9]], tmp_path / "part", [])
    assert detected(tmp_path, [part, file], calls=2)[1:] == whole[1:]


def test_a_clock_that_is_set_forward_hides_nothing_on_either_side(tmp_path: Path) -> None:
    cut, decade_s = len(LINES) // 2, 10 * 365.25 * 86_400
    early = []
    for line in LINES[:cut]:
        kind, port, time, *rest = line.split(",")
        early.append(",".join((kind, port, f"{float(time) - decade_s:.6f}", *rest)))
    (file,) = write_files([*early, *LINES[cut:]], tmp_path / "both", [])
    sides = [
        len(detected(tmp_path / str(number), write_files(lines, tmp_path / str(number), []))[1])
        for number, lines in enumerate((early, LINES[cut:]))
    ]

    both = ReceiverDatabase(tmp_path / "both.sqlite", TAGS).detect([file], now_s=NOW_S)

    assert all(sides)
    assert (both.hits, both.broken) == (sum(sides), 0)


def test_a_session_of_an_older_version_goes_on_where_it_ended(
    tmp_path: Path, whole: list[list[tuple[object, ...]]]
) -> None:
    files = write_files(LINES, tmp_path, [len(LINES) // 2])
    database = ReceiverDatabase(tmp_path / "r.sqlite", TAGS)
    database.detect(files[:1], now_s=NOW_S)
    with sqlite3.connect(tmp_path / "r.sqlite") as db:
        (text,) = db.execute("select state from sessions").fetchone()
        state = orjson.loads(text)
        state["bursts"] = {port: kept[:2] for port, kept in state["bursts"].items()}
        db.execute("update sessions set state = ?", (orjson.dumps(state),))

    assert database.detect(files[1:], now_s=NOW_S).afresh == ()
    assert content(tmp_path / "r.sqlite") == whole


# --- raw files --------------------------------------------------------------------------------


def test_broken_lines_are_counted_and_the_others_read(tmp_path: Path) -> None:
    file = tmp_path / "raw.txt"
    file.write_bytes(
        b"S,1,2,3\np,1,100.5,4.0,-60,-90\np2,101,4.1,-61,-91\np,1,x,4,-60,-90\np,1,102,4,-60\n"
        b"p,1,nan,4,-60,-90\nG,100,45.1,-64.3,12\nG,100,north\n"
        + b"p" * 3 * 10**6
        + b"\n\xff\x00\np,3,103,4,-60,-90"
    )
    counts = ReadCounts()
    pulses = list(read_pulses(file, counts, now_s=NOW_S))
    assert [(port, time) for piece in pulses for port, time in zip(piece.port, piece.time, strict=True)] == [
        (1, 100.5),
        (2, 101.0),
        (3, 103.0),
    ]
    assert (counts.pulses, counts.broken) == (3, 5)
    assert [tuple(position) for position in counts.positions] == [(100.0, 45.1, -64.3, 12.0)]


@pytest.mark.parametrize(
    "line",
    [b"p,1,9000000000000,4,-60,-90", b"p,1,-5,4,-60,-90", b"p,-1,100,4,-60,-90", b"p,1e300,100,4,-60,-90"],
)
def test_what_no_clock_and_no_port_can_be_is_broken(line: bytes, tmp_path: Path) -> None:
    file = tmp_path / "raw.txt"
    file.write_bytes(b"p,1,100.5,4.0,-60,-90\n" + line + b"\n")
    counts = ReadCounts()
    assert [piece.time.tolist() for piece in read_pulses(file, counts, now_s=NOW_S)] == [[100.5]]
    assert (counts.pulses, counts.broken) == (1, 1)


def test_a_file_that_is_cut_off_counts_up_to_there(tmp_path: Path) -> None:
    text = b"".join(b"p,1,%d,4.0,-60,-90\n" % number for number in range(100_000))
    file = tmp_path / "raw.txt.gz"
    file.write_bytes(gzip.compress(text)[:-20_000])
    counts = ReadCounts()
    assert 0 < sum(len(piece.time) for piece in read_pulses(file, counts, now_s=NOW_S)) < 100_000
    assert counts.damage


def test_a_piece_is_never_larger_than_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "raw.txt"
    file.write_bytes(b"p,1,100.5,4.0,-60,-90\n" * 300_000)
    sizes = [len(piece.time) for piece in read_pulses(file, ReadCounts(), now_s=NOW_S)]
    assert sum(sizes) == 300_000
    assert max(sizes) < 60_000
    assert LINE_BYTES == 1000


@pytest.mark.parametrize(
    ("name", "receiver", "session", "begun"),
    [
        (
            "changeMe-7F5ERPI46977-000012-2016-05-23T16-00-54.1240P-all.txt.gz",
            "SG-7F5ERPI46977",
            12,
            1464019254.124,
        ),
        ("a-0613BB000593-000001-2000-01-01T00-00-00T-gps.txt", "SG-0613BB000593", 1, 946684800.0),
    ],
)
def test_a_name_says_whose_and_when(name: str, receiver: str, session: int, begun: float) -> None:
    source = source_file(name)
    assert source is not None
    assert (source.receiver, source.session, source.begun) == (receiver, session, pytest.approx(begun))


@pytest.mark.parametrize(
    "name",
    [
        "x.txt",
        "a-0613BB000593-000001-2000-13-01T00-00-00T-gps.txt",
        "a-0613BB000593-1-2000-01-01T00-00-00-all.txt",
    ],
)
def test_other_names_are_no_raw_files(name: str) -> None:
    assert source_file(name) is None


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("tag,frequency,gap1,gap2,gap3,interval\n1,166.38,45,61,99,5\n", "csv"),
        ('[{"tag": "1", "frequency": 166.38, "gap1": 45, "gap2": 61, "gap3": 99, "interval": 5}]', "json"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_table_of_tags(text: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"tags.{suffix}"
    file.write_text(f"\ufeff{text}")
    assert [tag.tag for tag in read_tags(file)] == ["1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tag,frequency,gap1,gap2,gap3,interval\n1,166.38,45,61,x,5\n", "row 1 .*gap3"),
        ("tag,frequency,gap1,gap2,gap3,interval\n1,166.38,45,61,99,5\n1,166.38,45,61,99,5\n", "'1' twice"),
        ("tag,frequency\n1,166.38\n", "row 1 .*gap1"),
    ],
)
def test_a_wrong_table_of_tags_is_refused_by_its_row(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tags.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_tags(tmp_path / "tags.csv")


@pytest.mark.parametrize(
    "text", ["5", "null", '{"tag": "1"}', "[" * 100_000], ids=["number", "null", "object", "nested"]
)
def test_a_table_of_tags_in_json_that_is_no_list_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "tags.json").write_text(text)
    with pytest.raises(UsageError, match=r"the table of tags .*tags\.json"):
        read_tags(tmp_path / "tags.json")
