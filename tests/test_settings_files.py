"""Settings of applications and bridges: what a file may have, and what its errors say."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr

from spinney.errors import UsageError
from spinney.settings_files import Seconds, read


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    pause: Seconds = 30.0
    token: SecretStr | None = None


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
