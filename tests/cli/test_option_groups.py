"""Options declared once, in several commands."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from spinney.terminal.options.option_groups import given_options, with_option_groups


@dataclass(frozen=True, kw_only=True)
class Shared:
    name: Annotated[str | None, typer.Option("--name", "--called", help="Who.")] = None
    loud: Annotated[bool, typer.Option("--loud")] = False


@dataclass(frozen=True, kw_only=True)
class Other(Shared):
    """One option more, and one under another name."""

    name: Annotated[str | None, typer.Option("--title")] = None
    times: Annotated[int, typer.Option("--times")] = 1


def call(*words: str) -> str:
    app = typer.Typer()

    @app.command()
    @with_option_groups
    def greet(whom: Annotated[str, typer.Argument()], *, shared: Shared) -> None:
        """Say hello."""
        typer.echo(f"{whom} {shared}")

    @app.command()
    @with_option_groups
    def part(*, other: Other) -> None:
        typer.echo(f"{other.name} {other.times} {other.loud}")

    done = CliRunner().invoke(app, list(words))
    return done.output.strip()


def test_a_command_gets_the_options_of_a_group_as_one_value() -> None:
    assert call("greet", "you", "--called", "ann", "--loud") == "you Shared(name='ann', loud=True)"
    assert call("greet", "you") == "you Shared(name=None, loud=False)"


def test_a_group_may_be_changed_for_one_command() -> None:
    assert call("part", "--title", "dr", "--times", "3", "--loud") == "dr 3 True"
    assert "No such option" in call("part", "--name", "x")


def test_help_names_them_with_the_others() -> None:
    output = call("greet", "--help")

    assert "Say hello." in output
    assert "--name" in output
    assert "--called" in output


def test_an_option_that_two_groups_have_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="more than one option 'loud'"):

        @with_option_groups
        def twice(*, shared: Shared, loud: bool = False) -> None: ...


def test_given_options_are_those_that_the_line_has() -> None:
    assert given_options(Shared()) == {}
    assert given_options(Other(name="", loud=True, times=0)) == {"name": "", "loud": True, "times": 0}
    assert given_options(Other(name="Ann"), Shared) == {"name": "Ann"}
    assert given_options(Other(name="Ann"), name=None, times="once") == {"times": "once"}
