"""`judge` tells all that is wrong with a manifest, line by line, and never raises for its content."""

from pathlib import Path

import pytest

from apps.ingest.manifests.texts import FIRST, PROFILES, URL, batch, checkm, put
from spinney.apps.ingest.manifests import PayloadKind, Problem, judge
from spinney.files.paths import NotAdmitted

HOST = "https://example.org"


def test_a_good_manifest_is_counted(tmp_path: Path) -> None:
    judgement = judge(put(tmp_path, checkm(f"{HOST}/a | | | 10", f"{HOST}/b | | | 32", f"{HOST}/c")))

    assert (judgement.kind, judgement.rows) == (PayloadKind.OBJECT_MANIFEST, 3)
    assert (judgement.size_bytes, judgement.sizes_unknown) == (42, 1)
    assert (judgement.problems, judgement.whole) == ((), True)


def test_the_files_that_an_object_carries_are_counted_one_by_one(tmp_path: Path) -> None:
    inline = b'{"files": [{"url": "https://example.org/a", "size": 5}, {"url": "https://example.org/b"}]}'
    judgement = judge(put(tmp_path, b'{"profile": "batch-manifest", "objects": [%s]}' % inline))

    assert (judgement.rows, judgement.size_bytes, judgement.sizes_unknown) == (1, 5, 1)


def test_every_problem_is_told_with_its_line_and_good_rows_are_counted(tmp_path: Path) -> None:
    content = checkm(f"{HOST}/a", "rubbish", f"{HOST}/a", "", f"{HOST}/b | md5", f"{HOST}/c | | | 7", end="")

    judgement = judge(put(tmp_path, content))

    assert [p.line for p in judgement.problems] == [FIRST + 1, FIRST + 2, FIRST + 4, FIRST + 6]
    assert (judgement.rows, judgement.size_bytes, judgement.whole) == (2, 7, True)
    assert str(judgement.problems[3]).startswith(f"line {FIRST + 6}: the manifest ends without #%eof")


def test_all_that_is_wrong_with_a_header_is_told_once(tmp_path: Path) -> None:
    wrong = checkm(
        URL, profile=f"{PROFILES}x", prefixes=["#%prefix | mrt: | x", "#%prefix | nfo: | y", "#%z"]
    )

    judgement = judge(put(tmp_path, wrong.replace(b"0.7", b"0.6")))

    assert [p.line for p in judgement.problems] == [1, 2, 3, 4, 5]
    assert (judgement.kind, judgement.rows, judgement.whole) == (None, 0, False)


def test_a_wrong_prefix_does_not_keep_the_rows_from_being_judged(tmp_path: Path) -> None:
    judgement = judge(
        put(tmp_path, checkm("rubbish", prefixes=["#%prefix | mrt: | x", "#%prefix | nfo: | y"]))
    )

    assert [p.line for p in judgement.problems] == [3, 4, FIRST]


def test_it_stops_when_there_are_too_many_problems(tmp_path: Path) -> None:
    judgement = judge(put(tmp_path, checkm(*["rubbish"] * 100)), most=7)

    assert [p.line for p in judgement.problems] == [*range(FIRST, FIRST + 7)]
    assert judgement.whole is False


def test_entries_of_a_json_document_are_counted_as_entries(tmp_path: Path) -> None:
    judgement = judge(put(tmp_path, b'{"profile": "object-manifest", "files": [{"url": ""}, 7]}'))

    assert [(p.unit, p.line) for p in judgement.problems] == [("entry", 1), ("entry", 2)]


def test_json_lines_are_judged_to_their_end(tmp_path: Path) -> None:
    content = b'{"profile": "batch-manifest"}\n{"url": "x"}\nrubbish\n{"url": "https://example.org/a"}\n{"end": 9}\n{}'

    judgement = judge(put(tmp_path, content))

    assert [p.line for p in judgement.problems] == [2, 3, 5, 6]
    assert judgement.rows == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\xff\xfe#\0", b"{}", b"#%", b"\n#%checkm_0.7"])
def test_what_is_no_manifest_is_one_problem(tmp_path: Path, content: bytes) -> None:
    judgement = judge(put(tmp_path, content))

    assert judgement.kind is None
    assert judgement.problems
    assert all(isinstance(p, Problem) and p.reason for p in judgement.problems)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAdmitted, match="not there"):
        judge(tmp_path / "absent")


def test_a_batch_is_judged_by_the_rules_of_batches(tmp_path: Path) -> None:
    assert judge(put(tmp_path, batch(URL, URL))).problems == ()
