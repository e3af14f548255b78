"""The settings of a service: what is meant, and a sentence for everything that cannot be."""

import os
from pathlib import Path

import pytest

from spinney.apps.ingest.config import settings
from spinney.model.errors import UsageError

LEAST = """
[storage.main]
url = "archive"
[minters.main]
naan = "99999"
shoulder = "fk4"
"""


def load(folder: Path, text: str) -> settings.Settings:
    path = folder / "ingest.toml"
    path.write_text(text)
    return settings.load({settings.VARIABLE: str(path)})


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        load(folder, text)
    message = str(caught.value)
    assert message.startswith((f"{folder / 'ingest.toml'}: ", f"{folder / 'ingest.toml'} is"))
    return message.removeprefix(f"{folder / 'ingest.toml'}: ")


def test_paths_begin_at_the_files_folder(tmp_path: Path) -> None:
    loaded = load(tmp_path, 'file_roots = ["in", "/mnt/in"]\nareas = {fast = "fast"}\n' + LEAST)
    assert (loaded.home, loaded.profiles) == (tmp_path, tmp_path / "profiles")
    assert loaded.inventory == f"sqlite:///{tmp_path / 'inventory.db'}"
    assert loaded.file_roots == (tmp_path / "in", Path("/mnt/in"))
    assert loaded.areas == {"fast": tmp_path / "fast"}
    assert loaded.storage["main"].url == str(tmp_path / "archive")


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/srv/archive", Path("/srv/archive")),
        ("file:///srv/the%20archive", Path("/srv/the archive")),
        ("s3://bucket/archive", None),
        ("S3://bucket/archive", None),
    ],
)
def test_a_storage_is_named_by_a_folder_or_a_url(tmp_path: Path, url: str, folder: Path | None) -> None:
    target = load(tmp_path, LEAST.replace("archive", url)).storage["main"]

    assert (target.folder, target.url) == (folder, str(folder or url))


def test_what_belongs_to_the_home_follows_it(tmp_path: Path) -> None:
    loaded = load(tmp_path, 'home = "srv"\n' + LEAST)
    assert loaded.profiles == tmp_path / "srv/profiles"
    assert loaded.inventory == f"sqlite:///{tmp_path / 'srv/inventory.db'}"
    assert loaded.incoming == tmp_path / "srv/incoming"


def test_an_inventory_of_its_own_place(tmp_path: Path) -> None:
    assert (
        load(tmp_path, 'inventory = "sqlite:///x.db"\n' + LEAST).inventory == f"sqlite:///{tmp_path / 'x.db'}"
    )
    url = "postgresql://lib:hush@db.example.org/inv"
    loaded = load(tmp_path, f'home = "."\ninventory = "{url}"\n' + LEAST)
    assert loaded.inventory == url
    assert "hush" not in repr(loaded)


def test_a_file_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    assert not load(tmp_path, LEAST).test_mode
    path = tmp_path / "ingest.toml"
    path.write_text("test_mode = true\n" + LEAST)
    os.utime(path, ns=(1, 1))
    assert settings.load({settings.VARIABLE: str(path)}).test_mode


@pytest.mark.parametrize("text", [None, "", "# [storage.main]\n"])
def test_no_settings_are_a_sentence(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "none.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(
        UsageError, match=r"the ingest service has no settings: .*none.toml does not exist or sets nothing"
    ):
        settings.load({settings.VARIABLE: str(path)})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = ", "is not valid TOML"),
        ('homes = "x"\n' + LEAST, "homes: Extra inputs are not permitted; correct it there"),
        ("home = 5\n" + LEAST, "home: "),
        ('home = "a\\u0000"\n' + LEAST, "home: a path cannot contain a NUL; correct it there"),
        ('file_roots = "/srv"\n' + LEAST, "file_roots: Input should be a valid tuple; correct it there"),
        ('areas = ["x"]\n' + LEAST, "areas: Input should be a valid"),
        ('areas = {"../x" = "x"}\n' + LEAST, "areas.../x.[key]: String should match"),
        ("inventory = 1\n" + LEAST, "inventory: Input should be a valid string"),
        ('public_url = "javascript:alert(1)"\n' + LEAST, "public_url: it must be a URL of http or https"),
        ('public_url = "https://u:hush@x.org"\n' + LEAST, "public_url: it must be a URL of http or https"),
        ("[storage]\n[minters.main]\nnaan='9'\nshoulder='f'", "storage: "),
        (
            LEAST.replace('"archive"', '"s3://key:hush@bucket/x"'),
            "storage.main.url: the URL of an S3 storage is s3://bucket",
        ),
        (
            LEAST.replace('"archive"', '"ftp://example.org/x"'),
            "storage.main.url: objects are stored in a folder",
        ),
        (
            LEAST.replace('"archive"', '"file://other/x"'),
            "storage.main.url: the URL of a storage on this machine",
        ),
        (
            LEAST.replace('"archive"', '"file:///archive?x"'),
            "storage.main.url: the URL of a storage on this machine",
        ),
        (LEAST.replace('"archive"', '"archive"\nalgorithm = "md5"'), "storage.main.algorithm: "),
        (LEAST.replace('"archive"', '"s3://b"\nendpoint = "ftp://x"'), "storage.main.endpoint: "),
        (LEAST.replace('"99999"', '"x y"'), "minters.main: 'x y' is no NAAN"),
        (LEAST.replace('"fk4"', '"fk4"\ntemplate = "nonsense"'), "minters.main: "),
        (LEAST + 'url = "http://ezid.example.org"\n', "minters.main: 'http://ezid.example.org' is not https"),
        (LEAST + 'url = "https://u:hush@ezid.example.org"\n', "minters.main: EZID's address has a user"),
        (LEAST + "[working]\nlimit = 0.9\n", "working.warning must not be below working.limit"),
        (LEAST + "[working]\nlimit = 70\n", "working.limit: "),
        (LEAST + "[working]\nunpacked_bytes = -1\n", "working.unpacked_bytes: "),
        (LEAST + "[working]\nratio = nan\n", "working.ratio: "),
        (LEAST + "[downloads]\nat_once = 0\n", "downloads.at_once: "),
        (LEAST + "[downloads]\nlargest_bytes = 0\n", "downloads.largest_bytes: "),
        (LEAST + "[access]\nkeep_days = inf\n", "access.keep_days: Input should be a finite number"),
        (LEAST + '[mail]\nhost = "h"\nsender = "nobody"\n', "mail.sender: 'nobody' is no mail address"),
        (LEAST + '[mail]\nhost = "h"\nsender = "a@b"\nadmins = ["x\\ny@b"]\n', "mail.admins.0: "),
        (LEAST + '[mail]\nhost = ""\nsender = "a@b"\n', "mail: '' names no mail server; name one"),
        (LEAST + '[mail]\nhost = "h"\nport = 70000\nsender = "a@b"\n', "mail: the mail server's port"),
        (LEAST + '[mail]\nhost = "h"\nsender = "a@b"\ndomain = "a b"\n', "mail.domain: "),
        (LEAST + '[mail]\nhost = "h"\nsender = "a@b"\nsecurity = "some"\n', "mail.security: "),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(tmp_path: Path, text: str, sentence: str) -> None:
    message = refusal(tmp_path, text)
    assert sentence in message
    assert "hush" not in message
    assert "\n" not in message
