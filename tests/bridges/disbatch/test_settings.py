"""The settings of a Disbatch node: what is refused, and what the sentence names."""

from pathlib import Path

import pytest

from spinney.bridges.disbatch.settings import FILE, Program, load
from spinney.errors import UsageError


@pytest.mark.parametrize(
    ("plugins", "sentence"),
    [
        ('"/x" = {type = "mongo"}', "plugins./x.program.type: Input should be 'default' or 'nomongo'"),
        ('"/x" = {timeout = "2 hours"}', "plugins./x.program.timeout: '2 hours' is no length of time"),
        ('"/x" = {typ = "default"}', "plugins./x.program.typ: Extra inputs are not permitted"),
        ("Demo = 5", "plugins.Demo.type: Input should be a valid string"),
        ('"/x" = "demo"', "plugins./x: name a job type for a plugin"),
    ],
)
def test_a_refusal_names_what_is_wrong_with_a_plugin(plugins: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f"[plugins]\n{plugins}\n")

    with pytest.raises(UsageError) as refused:
        load(file)

    assert str(refused.value).startswith(f"{file}: {sentence}")


def test_plugins_are_job_types_and_programs(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[plugins]\nDemo = "demo"\n"/x" = {type = "nomongo", timeout = "2h"}\n"/y" = {}\n')

    settings = load(file)

    assert settings.plugins == {"Demo": "demo", "/x": Program(type="nomongo", timeout=7200), "/y": Program()}


def test_a_file_that_is_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert load(Path(FILE)).plugins == {}
    with pytest.raises(UsageError, match=r"other\.toml cannot be read"):
        load(Path("other.toml"))
