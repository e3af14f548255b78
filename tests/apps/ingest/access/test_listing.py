"""The files of a stored version as a manifest that depositors' programs read, ours among them."""

import hashlib
import json
from urllib.request import urlopen

from cli.shell import Shell
from spinney.apps.ingest import manifests
from spinney.apps.ingest.manifests import PayloadKind

from ..places import each
from .filled_service import ARK, WHEN, Service

FILES = {
    "producer/a page/S 1 ü%.txt": b"a page",
    "producer/map.tif": b"a map",
    "system/mrt-erc.txt": b"erc:\n",
}


@each("form", ["Checkm", "JSON"], far="Checkm")
def test_a_manifest_tells_where_each_file_is_and_what_it_is(archive: Service, form: str) -> None:
    words = ["--json"] * (form == "JSON")
    archive.holds(FILES)
    archive.holds({"producer/map.tif": b"another"}, version=2)
    archive.bed.open_to_all()
    shell = Shell(archive.folder)

    shell.ok("ingest", "manifest", ARK, "--version", "1", "--output", "a manifest", *words)

    read = manifests.read(archive.folder / "a manifest", PayloadKind.OBJECT_MANIFEST)
    rows = {row.name: row for row in read}
    assert {name: urlopen(row.url).read() for name, row in rows.items()} == FILES
    for name, row in rows.items():
        raw = FILES[name]
        assert row.digest is not None
        assert row.digest.value == hashlib.new(row.digest.algorithm, raw).hexdigest()
        assert (row.size_bytes, row.modified) == (len(raw), WHEN.isoformat())
    assert json.loads(shell.ok("ingest", "check", "a manifest", "--json"))["problems"] == []
    newest = shell.ok("ingest", "manifest", ARK, *words)
    assert "producer/map.tif" in newest
    assert "system" not in newest


def test_a_name_that_checkm_cannot_tell_is_told_in_json(archive: Service) -> None:
    archive.holds({"producer/a\nb": b"1"})
    shell = Shell(archive.folder)

    assert "JSON" in shell.refused(1, "ingest", "manifest", ARK)
    assert shell.ok("ingest", "manifest", ARK, "--json").count("producer/a\\nb") == 1
