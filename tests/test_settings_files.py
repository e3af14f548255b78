"""Settings of applications and bridges: what a file may have, and what its errors say."""

import os
from pathlib import Path
from time import time_ns

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr

from spinney import settings_files
from spinney.errors import UsageError
from spinney.settings_files import FileCache, Seconds, read


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    pause: Seconds = 30.0
    token: SecretStr | None = None


class Clock:
    """A clock so far ahead of the file system's that no file is fresh, or so far behind it that every file is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_ns = 10**12
        monkeypatch.setattr(settings_files.time, "time_ns", lambda: time_ns() + self.ahead_ns)


def test_what_was_read_is_kept_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path, beside = Clock(monkeypatch), tmp_path / "app.toml", object()
    cache = FileCache[Settings]()

    def get(beside: object = beside) -> Settings:
        return cache.get(path, lambda: read(Settings, path, optional=True), beside)

    missing = get()
    assert get() is missing
    path.write_text("pause = 5")
    first = get()
    assert (first.pause, get()) == (5.0, first)
    assert get() is first
    assert get(object()) is not first
    # Another file with the time and the size of the first.
    status = path.stat()
    (tmp_path / "new").write_text("pause = 6")
    os.utime(tmp_path / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "new").replace(path)
    assert get().pause == 6.0
    # A file that was changed a moment ago may be changed again within one tick of the clock.
    clock.ahead_ns = -(10**12)
    path.write_text("pause = 7")
    assert get().pause == 7.0
    assert get() is not get()
    path.write_text("pause =")
    with pytest.raises(UsageError, match="is not valid TOML"):
        get()


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [("", 30.0), ("pause = 5", 5.0), ('pause = "90s"', 90.0), ('pause = "1h30m"', 5400.0)],
)
def test_lengths_of_time_are_seconds(tmp_path: Path, text: str, pause_s: float) -> None:
    (tmp_path / "app.toml").write_text(text)

    assert read(Settings, tmp_path / "app.toml").pause == pause_s


def test_a_file_may_be_missing_only_where_that_is_said(tmp_path: Path) -> None:
    assert read(Settings, tmp_path / "none.toml", optional=True) == Settings()
    with pytest.raises(UsageError, match=r"none.toml cannot be read \(No such file"):
        read(Settings, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pause =", "is not valid TOML"),
        ('pause = "soon"', "pause: 'soon' is no length of time; write numbers with w, d, h, m or s"),
        ("pauses = 5", "pauses: Extra inputs are not permitted; correct it there"),
        ("token = 7", "token: Input should be a valid string; correct it there"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "app.toml").write_text(text)

    with pytest.raises(UsageError) as raised:
        read(Settings, tmp_path / "app.toml", optional=True)

    assert str(raised.value).startswith(f"{tmp_path / 'app.toml'}")
    assert message in str(raised.value)
