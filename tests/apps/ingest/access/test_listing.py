"""The files of a stored version as a manifest that depositors' programs read, ours among them."""

import hashlib
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from cli.shell import Shell
from spinney.apps.ingest import manifests
from spinney.apps.ingest.manifests import PayloadKind

from .given import ARK, WHEN, Service

FILES = {"producer/a page/S 1 ü%.txt": b"a page", "producer/map.tif": b"a map", "system/mrt-erc.txt": b"erc:\n"}


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["Checkm", "JSON"])
def test_a_manifest_tells_where_each_file_is_and_what_it_is(archive: Service, tmp_path: Path, form: list[str]) -> None:
    archive.holds(FILES)
    archive.holds({"producer/map.tif": b"another"}, version=2)
    shell = Shell(archive.folder)

    shell.ok("ingest", "manifest", ARK, "--version", "1", "--output", "a manifest", *form)

    read = manifests.read(archive.folder / "a manifest", PayloadKind.OBJECT_MANIFEST)
    rows = {row.name: row for row in read.rows}
    assert {name: Path(unquote(urlsplit(row.url).path)).read_bytes() for name, row in rows.items()} == FILES
    for name, row in rows.items():
        raw = FILES[name]
        assert row.digest is not None
        assert row.digest.value == hashlib.new(row.digest.algorithm, raw).hexdigest()
        assert (row.size_bytes, row.modified) == (len(raw), WHEN.isoformat())
    assert json.loads(shell.ok("ingest", "check", "a manifest", "--json"))["problems"] == []
    newest = shell.ok("ingest", "manifest", ARK, *form)
    assert "producer/map.tif" in newest
    assert "system" not in newest


def test_a_name_that_checkm_cannot_tell_is_told_in_json(archive: Service) -> None:
    archive.holds({"producer/a\nb": b"1"})
    shell = Shell(archive.folder)

    assert "JSON" in shell.refused(1, "ingest", "manifest", ARK)
    assert shell.ok("ingest", "manifest", ARK, "--json").count("producer/a\\nb") == 1
