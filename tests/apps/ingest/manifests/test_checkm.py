"""Checkm 0.7 as Merritt's depositors write it, well and badly."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.ingest.manifests.texts import FIRST, MRT, NFO, PROFILES, URL, batch, checkm, put
from spinney.apps.ingest.manifests import (
    NOTHING,
    About,
    ManifestRefused,
    PayloadKind,
    Row,
    Warnings,
    kind_of,
    read,
)
from spinney.files.digests import Digest
from spinney.files.paths import NotAdmitted

MD5 = "0b21c6d48e815dd537d42dc1cfac0111"


def rows(folder: Path, content: bytes) -> list[Row]:
    return list(read(put(folder, content)))


def refusal(folder: Path, content: bytes) -> tuple[int, str]:
    with pytest.raises(ManifestRefused) as refused:
        rows(folder, content)
    assert str(refused.value).startswith("manifest 'deposit.checkm', line ")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1500
    return refused.value.problem.line, refused.value.problem.reason


# --- what is read -------------------------------------------------------------------------------


def test_a_whole_row_of_an_object_manifest(tmp_path: Path) -> None:
    manifest = checkm(
        f"{URL} | MD5 | {MD5.upper()} | 4711 | 2020-01-01T00:00.000Z | scans/p1.tif | image/tiff"
    )

    assert rows(tmp_path, manifest) == [
        Row(
            line=FIRST,
            url=URL,
            name="scans/p1.tif",
            digest=Digest("md5", MD5),
            size_bytes=4711,
            modified="2020-01-01T00:00.000Z",
            mime_type="image/tiff",
            about=NOTHING,
        )
    ]


def test_a_row_of_a_batch_tells_of_an_object(tmp_path: Path) -> None:
    manifest = batch(
        f"{URL} | | | | | p1.tif | ark:/99999/fk4x | a1; b/2 ;;a1 | Seneca, T. | A title | 2009-09-01"
    )

    (row,) = rows(tmp_path, manifest)

    assert row.about == About(
        primary_id="ark:/99999/fk4x",
        local_ids=("a1", "b/2"),
        creator="Seneca, T.",
        title="A title",
        date="2009-09-01",
    )


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        ("mrt-ingest-manifest", PayloadKind.OBJECT_MANIFEST),
        ("mrt-single-file-batch-manifest", PayloadKind.SINGLE_FILE_BATCH_MANIFEST),
        ("mrt-container-batch-manifest", PayloadKind.CONTAINER_BATCH_MANIFEST),
        ("mrt-batch-manifest", PayloadKind.BATCH_MANIFEST),
    ],
)
def test_the_profile_tells_the_kind(tmp_path: Path, profile: str, kind: PayloadKind) -> None:
    manifest = put(tmp_path, checkm(URL, profile=PROFILES + profile))

    assert kind_of(manifest) is kind
    assert [row.url for row in read(manifest, kind)] == [URL]


def test_fields_stand_in_the_order_that_the_header_gives(tmp_path: Path) -> None:
    manifest = checkm(f"p.tif|12|{URL}", fields="nfo:FILENAME | nfo:filesize | nfo:fileURL |")

    (row,) = rows(tmp_path, manifest)

    assert (row.name, row.size_bytes, row.url) == ("p.tif", 12, URL)


def test_missing_fields_at_the_end_are_empty_and_empty_ones_too_many_are_dropped(tmp_path: Path) -> None:
    manifest = checkm(URL, f"{URL} | | | | | p2.tif | | | \t |")

    assert [(row.name, row.size_bytes, row.digest) for row in rows(tmp_path, manifest)] == [
        ("p1.tif", None, None),
        ("p2.tif", None, None),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b" \t \n"),
        lambda text: text.replace(b"\nhttps", b"\n\n   \n# a comment\n#\n \t https"),
        lambda text: text.replace(b"\n#%profile", b"\n\n# about it | all\n#%profile"),
        lambda text: text.replace(b"\n#%", b"\n  #%"),
        lambda text: text.replace(b" | ", b"|"),
        lambda text: text.removesuffix(b"\n"),
        lambda text: text.replace(b"#%eof", b"#%EOF"),
        lambda text: text + b"\n\n# nothing more\n \n",
    ],
    ids=[
        "bom",
        "crlf",
        "blanks",
        "comments",
        "early comment",
        "indent",
        "tight",
        "no last end",
        "EOF",
        "tail",
    ],
)
def test_what_editors_do_to_a_text_changes_nothing(tmp_path: Path, changed: Callable[[bytes], bytes]) -> None:
    manifest = checkm(f"{URL} | md5 | {MD5}", f"{URL} | | | 3 | | naïve/p 2.tif")

    contents = rows(tmp_path, changed(manifest))

    assert [(r.name, r.size_bytes) for r in contents] == [("p1.tif", None), ("naïve/p 2.tif", 3)]


def test_profile_prefixes_and_fields_come_in_any_order(tmp_path: Path) -> None:
    head, profile, mrt, nfo, fields, row, eof = checkm(URL).splitlines(keepends=True)

    assert len(rows(tmp_path, b"".join((head, fields, nfo, mrt, profile, row, eof)))) == 1


def test_only_the_prefixes_that_are_used_need_be_declared(tmp_path: Path) -> None:
    assert len(rows(tmp_path, checkm(URL, prefixes=[NFO], fields="nfo:fileUrl"))) == 1


def test_names_may_repeat_in_a_batch_whose_rows_are_objects(tmp_path: Path) -> None:
    assert len(rows(tmp_path, batch(URL, URL, f"{URL} | | | | | P1.TIF"))) == 3


def test_nothing_is_open_before_the_first_row_and_each_reading_begins_anew(tmp_path: Path) -> None:
    manifest = put(tmp_path, checkm(URL))
    first, second = read(manifest), read(manifest)

    assert len(list(first)) == len(list(second)) == 1
    assert list(first) == []


def test_a_manifest_may_be_reached_through_a_link_but_must_be_a_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(put(tmp_path, checkm(URL)))

    assert kind_of(link) is PayloadKind.OBJECT_MANIFEST
    for other in (tmp_path, tmp_path / "absent", tmp_path / "absent" / "deeper", Path("/dev/zero")):
        with pytest.raises(NotAdmitted):
            kind_of(other)


# --- what other clients write -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (checkm(URL).partition(b"\n")[2], 1, "#%checkm_0.7 is missing above the rows"),
        (b"# a comment\n" + checkm(URL), 2, "is below the first line"),
        (checkm(URL).replace(b"#%checkm", b"#% checkm"), 1, "is read as #%checkm_0.7"),
        (checkm(URL, fields="fileUrl"), 5, "the field 'fileUrl' is read as nfo:fileUrl"),
        (checkm(URL, fields="FILEURL", prefixes=[]), 3, "the field 'FILEURL' is read as nfo:fileUrl"),
        (checkm(URL, fields="nfo : file Url"), 5, "the field 'nfo : file Url' is read as nfo:fileUrl"),
        (
            checkm(URL, profile=f"{PROFILES}MRT-Ingest-Manifest"),
            2,
            "the profile '.*' is read as .*mrt-ingest-manifest",
        ),
        (checkm(URL).replace(b"#%profile | ", b"#%profile "), 2, "there is no '\\|' behind #%profile"),
        (checkm(URL).replace(b"#%prefix | mrt", b"#%Prefix mrt"), 3, "there is no '\\|' behind #%prefix"),
        (checkm(URL, prefixes=[MRT, NFO.replace("nfo:", "NFO")]), 4, "'NFO \\| .*' is read as nfo: \\| "),
        (
            checkm(URL, prefixes=[f"{MRT.rpartition('|')[0]}| http://uc3.cdlib.org/ontology/mom#", NFO]),
            3,
            "is read as",
        ),
    ],
)
def test_a_header_as_other_clients_write_it_is_read_with_a_warning(
    tmp_path: Path, content: bytes, line: int, says: str
) -> None:
    warnings = Warnings()
    rows = read(put(tmp_path, content), PayloadKind.OBJECT_MANIFEST, warnings)

    assert [row.url for row in rows] == [URL]
    (warning,) = warnings.first
    assert warning.line == line
    assert re.search(says, warning.reason)


# --- what is refused, with its line -------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"", 1, "neither"),
        (b"\x1f\x8b\x08 a zip", 1, "neither"),
        (checkm(URL).decode().encode("utf-16"), 1, "neither"),
        (b"#%checkm_0.7", 1, "profile"),
        (b"#%checkm_0.8\n", 1, "#%checkm_0.7"),
        (checkm(URL).replace(b"checkm_0.7", b"checkm 0.7"), 1, "must be #%checkm_0.7"),
        (b"#\n" + checkm(URL).replace(b"0.7", b"0.8"), 2, "'#%checkm_0.8' is not known"),
        (b"#%checkm_0.7\n" + checkm(URL), 2, "'#%checkm_0.7' is not known"),
        (checkm(URL).replace(b"\n", b"\r"), 1, "the first line"),
        (checkm(URL, profile="http://example.org/mrt-ingest-manifest"), 2, "mrt-batch-manifest"),
        (checkm(URL, profile=f"{PROFILES}mrt-add-manifest"), 2, "'http.*mrt-add-manifest' is not known"),
        (checkm(URL, profile=f"{PROFILES}mrt-ingest-manifest | x"), 2, "is not known"),
        (checkm(URL, profile=f"x\n#%profile | {PROFILES}mrt-ingest-manifest"), 2, "is not known"),
        (checkm(URL, profile=(PROFILES + "mrt-ingest-manifest\n#%profile | ") * 2), 3, "line 2 already"),
        (checkm(URL).replace(b"#%profile", b"# %profile"), 6, "no profile"),
        (checkm(URL).replace(b"#%fields", b"# %fields"), 6, "no fields"),
        (checkm(URL).replace(b"#%fields", b"#%columns"), 5, "'#%columns' is not known"),
        (checkm(URL, fields="nfo:fileUrl\n#%fields | nfo:fileUrl"), 6, "line 5 already"),
        (checkm(URL, prefixes=[NFO]), 4, "prefix of mrt:mimeType is not declared"),
        (checkm(URL, prefixes=[MRT, NFO.replace("2007", "2008")]), 4, "nfo: means .*2008.*must be"),
        (checkm(URL, prefixes=[MRT, "#%prefix"]), 4, "prefix '' is not known"),
        (checkm(URL, prefixes=[MRT, NFO, "#%prefix | dc: | http://purl.org/dc/"]), 5, "dc: .* mrt: and nfo:"),
        (checkm(URL, fields="nfo:fileUrl | nfo:fileColour"), 5, "'nfo:fileColour' is not known; there are"),
        (checkm(URL, fields="nfo:fileUrl | | nfo:fileName"), 5, "'' is not known"),
        (checkm(URL, fields="nfo:fileUrl | nfo:FileUrl"), 5, "given twice"),
        (checkm(URL, fields="nfo:fileUrl | fileUrl"), 5, "given twice"),
        (checkm(URL, fields="mrt:fileUrl"), 5, "'mrt:fileUrl' is not known"),
        (checkm(URL, fields="nfo:fileUrl nfo:fileName"), 5, "'nfo:fileUrl nfo:fileName' is not known"),
        (checkm(URL, fields="fileUrl | title"), 5, "mrt:title describes an object"),
        (checkm(URL, prefixes=[MRT.replace("mrt: |", "mrt: | x |"), NFO]), 3, "mrt: means"),
        (checkm(URL, fields="nfo:fileName"), 5, "lack nfo:fileUrl"),
        (checkm(URL, fields="nfo:fileUrl | mrt:title"), 5, "mrt:title describes an object"),
    ],
)
def test_a_header_that_is_wrong_is_refused_before_any_row(
    tmp_path: Path, content: bytes, line: int, says: str
) -> None:
    manifest = put(tmp_path, content)

    with pytest.raises(ManifestRefused, match=says) as refused:
        read(manifest)

    assert refused.value.problem.line == line
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (f"{URL} | rot13 | {MD5}", "'rot13' is no digest algorithm .* sha512"),
        (f"{URL} | md5 | {MD5}0", "is no md5 value"),
        (f"{URL} | md5", "no value"),
        (f"{URL} | | {MD5}", "no algorithm"),
        (f"{URL} | | | 4,711", "'4,711' is no number of bytes"),
        (f"{URL} | | | -1", "no number of bytes"),
        (f"{URL} | | | ٣", "no number of bytes"),
        (f"{URL} | | | 9223372036854775808", "no number of bytes"),
        (f"{URL} | | | {'9' * 5000}", "no number of bytes"),
        (f"{URL} | | | | | p.tif | tiff", "no media type"),
        (f"{URL} | | | | 20\x1b[2J", "control character"),
        (f"{URL} | | | | | p.tif | image/tiff | x", "8 fields and 7 are named"),
        (" | md5", "no URL"),
        ("#%profile | x", "'#%profile' is below a row"),
        ("#%eoff", "'#%eoff' is below a row"),
    ],
)
def test_a_row_that_is_wrong_is_refused_by_its_line(tmp_path: Path, row: str, says: str) -> None:
    line, reason = refusal(tmp_path, checkm("https://example.org/p0.tif", row))

    assert line == FIRST + 1
    assert re.search(says, reason)


LONG = b"x" * (64 * 1024)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"https://example.org/\0.tif", "NUL"),
        (b"https://example.org/p.tif |\xe9t\xe9", r"not UTF-8 \(byte 28, 0xe9\)"),
        (b"https://example.org/p.tif | \xed\xa0\x80", "not UTF-8"),
        (b"https://example.org/" + LONG, "longer than 65536 bytes"),
        (b"https://example.org/p.tif" + b" " * len(LONG) + b"| md5", "longer than 65536 bytes"),
        (b"# " + LONG * 40, "longer than 65536 bytes"),
    ],
)
def test_bytes_that_are_no_text_are_refused_by_their_line(tmp_path: Path, raw: bytes, says: str) -> None:
    content = checkm(URL, "HERE", URL).replace(b"HERE", raw)

    line, reason = refusal(tmp_path, content)

    assert line == FIRST + 1
    assert re.search(says, reason)


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    row = f"{URL} | | | | {'x' * 8000} | p.tif".encode()

    (one,) = rows(tmp_path, checkm("HERE").replace(b"HERE", row + b" " * (len(LONG) - 1 - len(row))))

    assert one.modified == "x" * 8000


@pytest.mark.parametrize("end", ["", "#%eo", "# %eof\n", "eof"])
def test_without_its_end_a_manifest_was_cut_off(tmp_path: Path, end: str) -> None:
    with pytest.raises(ManifestRefused):
        rows(tmp_path, checkm(URL, end=end))


def test_a_manifest_cut_off_at_a_line_names_the_line_that_is_missing(tmp_path: Path) -> None:
    assert refusal(tmp_path, checkm(URL, end=""))[0] == FIRST + 1
    assert "cut off" in refusal(tmp_path, checkm(URL, end=""))[1]
    assert refusal(tmp_path, checkm(end=""))[0] == FIRST


@pytest.mark.parametrize("below", ["text", "#%eof", "https://example.org/p2.tif", "#%checkm_0.7", "\xff"])
def test_text_below_the_end_is_refused(tmp_path: Path, below: str) -> None:
    content = checkm(URL, end="#%eof\n\n# lawful\n") + below.encode("latin-1")

    line, reason = refusal(tmp_path, content)

    assert line == FIRST + 4
    assert "below the #%eof on line 7" in reason or "not UTF-8" in reason


def test_a_manifest_without_a_row_is_refused(tmp_path: Path) -> None:
    line, reason = refusal(tmp_path, checkm("", "# nothing"))

    assert (line, "before its first row" in reason) == (FIRST + 2, True)


def test_rows_above_the_wrong_one_have_been_given_by_then(tmp_path: Path) -> None:
    contents = read(put(tmp_path, checkm(URL, "", "rubbish")))

    assert next(contents).line == FIRST
    with pytest.raises(ManifestRefused) as refused:
        next(contents)
    assert refused.value.problem.line == FIRST + 2


def test_what_is_handed_in_as_another_kind_is_refused_with_both(tmp_path: Path) -> None:
    manifest = put(tmp_path, checkm(URL))

    with pytest.raises(NotAdmitted, match="of kind object-manifest and was submitted as batch-manifest"):
        read(manifest, PayloadKind.BATCH_MANIFEST)
    with pytest.raises(NotAdmitted, match="submitted as file"):
        read(manifest, PayloadKind.FILE)
