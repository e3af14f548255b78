"""A command whose arguments and options are the fields of a model."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from spinney.command_line import JsonOption, with_fields

app = typer.Typer(rich_markup_mode=None)


class Find(BaseModel):
    limit: int = Field(default=50, ge=1, le=100, description="At most so many `rows`.")
    only_new: bool = Field(default=False, description="Only new ones.")
    name: Annotated[str, typer.Argument(metavar="SHELF")] = Field(description="The shelf.")
    tags: Annotated[list[str], typer.Option("--tag")] = Field(default=[], description="Its tags.")
    inner: str = ""


@app.command()
@with_fields(Find, without={"inner"})
def find(fields: Mapping[str, Any], json: JsonOption = False) -> None:
    """Find books."""
    typer.echo(f"{Find(**fields)!r} {json}")


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == code, result.output
    return result.output


def test_fields_are_arguments_and_options_and_a_command_has_some_of_its_own() -> None:
    output = run("north", "--only-new", "--tag", "a", "--tag", "b", "--json")
    assert output == "Find(limit=50, only_new=True, name='north', tags=['a', 'b'], inner='') True\n"


def test_help_and_limits_are_those_of_the_fields() -> None:
    shown = run("--help")
    for text in ("SHELF", "The shelf.", "At most so many rows.", "default: 50", "--only-new", "Find books."):
        assert text in shown, text
    assert "--inner" not in shown
    assert "Invalid value for '--limit'" in run("north", "--limit", "101", code=2)
