"""What an object would fail by at a later stage is told of its manifest, in the same words."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.manifests.texts import FILE, FIRST, batch, checkm, put
from apps.ingest.objects.scene import Service, about, payload
from spinney.apps.ingest.deposits import early_checks
from spinney.apps.ingest.manifests import About, Judgement, PayloadKind, Row, judge

SINGLE, CONTAINERS = PayloadKind.SINGLE_FILE_BATCH_MANIFEST, PayloadKind.CONTAINER_BATCH_MANIFEST
URL = "https://example.org/a.txt"
DEEP = "/".join("d" * 201)  # lawful by itself, and one folder too deep below "producer"
LONG = "/".join(["x" * 250] * 9)
ARK_OF_256 = "ark:12345/" + "x" * 245
"""With the slash that its one form has."""


def judgement(folder: Path, content: bytes) -> Judgement:
    return judge(put(folder, content), further=early_checks.row_checker)


def object_of(**fields: Any) -> str:
    """Return the row of a batch manifest with these fields."""
    values = (fields.get(name, "") for name in ("size", "name", "primary_id", "local_ids"))
    size, name, primary_id, local_ids = values
    return f"{fields.get('url', URL)} | | | {size} | | {name} | {primary_id} | {local_ids}"


OF_OBJECTS = [
    ({"primary_id": "doi:10.1/x"}, "", "'doi:10.1/x' is no ARK; give one like ark:/12345/fk4abc"),
    ({"primary_id": ARK_OF_256}, "", "is longer than an ARK may be (255)"),
    ({"local_ids": "m" * 1001}, "", "is longer than 1000 bytes"),
    ({"url": f"{URL}?{'q' * 8000}"}, "", "is longer than 8000 characters"),
    ({"url": "file:////a", "name": "b"}, "", "is absolute"),
    ({"url": "file:///%ff", "name": "b"}, "", "is not UTF-8"),
    ({"name": DEEP}, "", "lies more than 200 folders deep"),
    ({"name": LONG}, "", "is longer than 2048 bytes"),
    (
        {"name": "a.lha"},
        "mrt-container-batch-manifest",
        "container 'a.lha': its name ends in none of .zip, .tar",
    ),
    ({"size": 2 << 30, "name": "m"}, "mrt-batch-manifest", "an object manifest of 2147483648 bytes"),
]


@pytest.mark.parametrize(("fields", "profile", "sentence"), OF_OBJECTS)
def test_what_an_object_would_fail_by_is_told_with_its_line(
    tmp_path: Path, fields: dict[str, Any], profile: str, sentence: str
) -> None:
    good = object_of(name="a.zip")

    reasons = judgement(
        tmp_path, batch(good, object_of(**fields), good, profile=profile or "mrt-single-file-batch-manifest")
    )

    assert [problem.line for problem in reasons.problems] == [FIRST + 1]
    assert sentence in reasons.problems[0].reason
    assert (reasons.rows, reasons.whole) == (2, True)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (f"{URL} | | | | | p | image/{'x' * 255}", "the MIME type 'image/"),
        (f"{URL} | | | {2**63 - 1} | | p", "the sizes of its files add up to 9223372036854775808 bytes"),
    ],
)
def test_so_is_what_a_file_would(tmp_path: Path, row: str, sentence: str) -> None:
    reasons = judgement(tmp_path, checkm(f"{URL} | | | 1", row, fields=FILE))

    assert [problem.line for problem in reasons.problems] == [FIRST + 1]
    assert sentence in reasons.problems[0].reason


def test_two_objects_with_one_local_id_and_two_arks_cannot_both_be(tmp_path: Path) -> None:
    one, other = "ark:/12345/x1", "ark:/12345/x2"
    rows = [
        object_of(primary_id=one, local_ids="m1"),
        object_of(primary_id="ark:12345/x-1", local_ids="m1;m2"),  # the same ARK, written otherwise
        object_of(primary_id=other, local_ids="m2"),
        object_of(primary_id=other, local_ids="m3"),
        object_of(local_ids="m1;m3"),
        object_of(local_ids="m1;new"),
    ]

    reasons = judgement(tmp_path, batch(*rows))

    assert [problem.line for problem in reasons.problems] == [FIRST + 2, FIRST + 4]
    assert f"the local id 'm2' belongs to {one} in a row above" in reasons.problems[0].reason


def test_rows_of_one_object_are_told_of_with_both_lines(tmp_path: Path) -> None:
    ark = "ark:/12345/x1"
    rows = [object_of(local_ids="m1;m1"), object_of(primary_id=ark), object_of(local_ids="m2;m1")]

    result = judgement(tmp_path, batch(*rows, object_of(primary_id=ark, local_ids="m3")))

    assert result.problems == ()
    assert [(warning.line, warning.reason.partition(" already")[0]) for warning in result.warnings.first] == [
        (FIRST + 2, f"'m1' is on line {FIRST}"),
        (FIRST + 3, f"'{ark}' is on line {FIRST + 1}"),
    ]


def test_files_of_an_object_are_told_with_both_places(tmp_path: Path) -> None:
    files = [{"url": URL}, {"url": URL, "name": DEEP}]
    document = {"profile": "batch-manifest", "objects": [{"files": [{"url": URL}]}, {"files": files}]}

    reasons = judgement(tmp_path, json.dumps(document).encode())

    assert [str(problem).partition(": path")[0] for problem in reasons.problems] == [
        f"entry 2: files, entry 2: 'producer/{DEEP[:51]}…' lies more than 200 folders deep; flatten it"
    ]


def test_what_is_said_of_an_object_fits_the_parameters_of_a_job(tmp_path: Path) -> None:
    entry = {"url": URL, "local_ids": [f"{n:0900}" for n in range(1200)]}
    lines = [{"profile": "single-file-batch-manifest"}, entry, {"end": 1}]

    reasons = judgement(tmp_path, b"\n".join(json.dumps(line).encode() for line in lines))

    assert [(problem.line, "takes more than" in problem.reason) for problem in reasons.problems] == [
        (2, True)
    ]


def test_the_stages_refuse_the_same_in_the_same_words(service: Service, tmp_path: Path) -> None:
    """The checks of a manifest foresee what the stages would refuse."""
    cases = [({"primary_id": "doi:10.1/x"}, "processing"), ({"primary_id": ARK_OF_256}, "processing")]
    for number, (description, stage) in enumerate(cases, 1):
        row = Row(url=URL, name="a.txt", about=About(**description))
        ran = service.of_file(number=number, about=about(**description)).to(stage)
        assert (ran.outcome, [ran.message]) == ("error", list(early_checks.row_checker(SINGLE)(row)))

    lha = service.of_container(b"-lh5-", number=3, name="a.lha").to("processing")
    row = Row(url=URL, name="a.lha")
    assert (lha.outcome, [lha.message]) == ("error", list(early_checks.row_checker(CONTAINERS)(row)))

    for number, name in enumerate((DEEP, LONG), 4):
        order = payload(PayloadKind.FILE, service.web.put("/x", b"x"), name)
        ran = service.object(number, payload=order).run("estimating")
        assert (ran.outcome, [ran.message]) == (
            "error",
            list(early_checks.row_checker(SINGLE)(Row(url=URL, name=name))),
        )
