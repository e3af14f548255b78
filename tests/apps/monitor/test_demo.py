"""``make demo-monitor``: answers of a real MapServer against the checks, and the whole demo in the long form."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demos import run_demo
from examples.monitor.map_server import PACKAGES, environment, running, write_map
from long_tests import long_alone
from spinney.apps.monitor.checks import capabilities, content, gdal
from spinney.apps.monitor.tasks.modules import Check

from .test_own_checks import find

needs_mapserver = pytest.mark.skipif(
    not (PACKAGES / "usr/bin/mapserv").exists(),
    reason="there is no MapServer here, and 'make test' could not get it from Debian's packages",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Its URL and its folder."""
    folder = tmp_path_factory.mktemp("maps")
    with running(folder) as url:
        yield url, folder


@needs_mapserver
@pytest.mark.parametrize(
    ("check", "path", "version", "status", "code", "says"),
    [
        (capabilities.check, "soil", "WMS 1.3.0", "ok", "", "valid WMS"),
        (capabilities.check, "soil", "WMS 1.1.1", "ok", "", "version 1.1.1"),
        (capabilities.check, "soil", "WFS 2.0.0", "ok", "", "valid WFS"),
        (capabilities.check, "soil", "WFS 1.1.0", "ok", "", "version 1.1.0"),
        (capabilities.check, "relief", "WCS 2.0.1", "ok", "", "valid WCS"),
        (capabilities.check, "relief", "WCS 1.1.1", "ok", "", "valid WCS"),
        (capabilities.check, "relief", "WCS 1.0.0", "ok", "", "valid WCS"),
        (capabilities.check, "soil", "WCS 2.0.1", "warning", "no_layers", "CoverageSummary"),
        (capabilities.check, "soil", "WMS 1.4.0", "warning", "wrong_version", "have version 1.3.0"),
        (capabilities.check, "relief", "WFS 2.0.0", "warning", "no_layers", "no FeatureType"),
        (capabilities.check, "closed", "WMS 1.3.0", "error", "service_exception", "request not enabled"),
        (capabilities.check, "closed", "WFS 2.0.0", "error", "service_exception", "request not enabled"),
        (capabilities.check, "unknown", "WMS 1.3.0", "error", "wrong_document", "'HTML'"),
        (content.check, "soil", "WMS 1.3.0", "ok", "", "a map of soil, image/png"),
        (content.check, "soil", "WMS 1.1.1", "ok", "", "a map of soil, image/png"),
        (content.check, "relief", "WMS 1.3.0", "ok", "", "a map of relief, image/png"),
        (content.check, "soil", "WFS 2.0.0", "ok", "", "a feature of ms:soil"),
        (content.check, "soil", "WFS 1.0.0", "ok", "", "a feature of soil"),
        (content.check, "lost", "WMS 1.3.0", "error", "no_map", "is no picture"),
        (content.check, "lost", "WFS 2.0.0", "error", "no_feature", "cannot be fetched"),
    ],
)
def test_answers_of_mapserver(
    served: tuple[str, Path], check: Check, path: str, version: str, status: str, code: str, says: str
) -> None:
    type_, _, number = version.partition(" ")
    finding = find(check, f"{served[0]}/ows/{path}?service={type_}", type=type_, version=number)
    assert (finding.status, finding.code) == (status, code)
    assert says in finding.info


@needs_mapserver
@pytest.mark.parametrize(
    ("path", "version", "status", "says"),
    [
        ("soil", "WMS 1.3.0", "ok", "Valid WMS GDAL info response"),
        ("soil", "WFS 2.0.0", "ok", "Valid WFS GDAL info response"),
        ("closed", "WMS 1.3.0", "error", "WMS GDAL error"),
        ("soil", "CSW 2.0.2", "not_applicable", ""),
    ],
)
def test_gdal_opens_what_is_in_order(
    served: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, path: str, version: str, status: str, says: str
) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    type_, _, number = version.partition(" ")
    finding = find(gdal.check, f"{served[0]}/ows/{path}?service={type_}", type=type_, version=number)
    assert finding.status == status, finding.info
    assert says in finding.info


@needs_mapserver
def test_a_mapfile_that_breaks_and_is_repaired(served: tuple[str, Path]) -> None:
    url, folder = served

    def code() -> str:
        return find(capabilities.check, f"{url}/ows/harbour").code

    assert code() == ""
    write_map(folder, "harbour", url, fault="broken")
    assert code() == "wrong_document"
    write_map(folder, "harbour", url)
    assert code() == ""


@needs_mapserver
@long_alone
def test_the_whole_demo(tmp_path: Path) -> None:
    demo = run_demo("monitor", tmp_path)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "200 added" in demo.stdout
    assert "Subject: Services of Harbour: 2 error, 2 ok" in demo.stdout
    assert "FAULT" not in demo.stdout


def test_the_demo_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.monitor.map_server.PACKAGES", tmp_path)
    with (
        pytest.raises(Exception, match="'make demo-monitor' gets it from Debian's packages"),
        running(tmp_path),
    ):
        pass
