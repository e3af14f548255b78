"""Nothing leaves its root, and nothing that a manifest cannot tell comes in."""

import os
from pathlib import Path

import pytest

from spinney.files import paths
from spinney.files.paths import NotAdmitted


@pytest.mark.parametrize("name", ["a", ".hidden", "with blank", "line\nbreak", "100%", "naïve", "'\"", "..."])
def test_odd_names_are_admitted(name: str) -> None:
    assert paths.component(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "nul\0", "x" * 256, "\udce9t\udce9"])
def test_names_that_lead_elsewhere_or_cannot_be_told_are_refused_by_name(name: str) -> None:
    with pytest.raises(NotAdmitted) as refusal:
        paths.component(name)

    assert paths.shown(name[:40]) in str(refusal.value)


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../../b", "a//b", "a/", "./a"])
def test_a_path_leads_downward_only(path: str) -> None:
    with pytest.raises(NotAdmitted):
        paths.relative(path)


def test_what_is_shown_is_one_printable_line() -> None:
    assert paths.shown("a\nb\x1b\udce9") == "a\\nb\\x1b\\udce9"


def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("s3cret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "inward").symlink_to(secret)
    (root / "key").symlink_to(secret / "key")

    for path in ("inward/key", "key"):
        with pytest.raises(NotAdmitted, match="symbolic link"), paths.opened_beneath(root, path):
            pass


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(NotAdmitted, match="regular file"), paths.opened_beneath(tmp_path, "pipe"):
        pass


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotAdmitted, match="'a/b' is not there"), paths.opened_beneath(tmp_path, "a/b"):
        pass


def test_each_file_has_a_place_of_its_own() -> None:
    paths.require_apart(["a/b", "a/c", "ab", "A"])

    for files, reason in (
        (["a", "b", "a"], "'a' is given twice"),
        (["a/b/c", "a/b"], "'a/b' is a file, and 'a/b/c' takes it for a folder"),
        (["a", "a/b/c"], "'a' is a file, and 'a/b/c' takes it for a folder"),
    ):
        with pytest.raises(NotAdmitted, match=reason):
            paths.require_apart(files)
