"""Commands that are made from command classes: which options they have, and what their functions get."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from spinney.commands import Command, Performs
from spinney.commands.fields import BoundedNumber, Reason
from spinney.model.jobs import JOB_ID_MAX
from spinney.service.service import Service
from spinney.terminal import commands
from spinney.terminal.commands import add_command, command, list_command, steps
from spinney.terminal.options.arguments import JsonOption, argument, option


@dataclass(frozen=True)
class Lamp:
    name: str
    lit: bool


class SetLamp(Command, route="PATCH /lamps/{name}"):
    """Switch a lamp."""

    name: str = Field(description="The `lamp`.")
    lit: bool = Field(default=False, description="Whether it is lit.")
    job: BoundedNumber | None = Field(default=None, description="For this job.")
    reason: Reason = None

    def run(self, service: Service) -> Lamp:
        return Lamp(self.name, self.lit)


class ListLamps(Command, route="GET /lamps"):
    """List lamps."""

    limit: Annotated[int, Field(ge=1, le=100, description="How many.")] = 50

    def run(self, service: Service) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Lamps:
    items: list[Lamp]


app = typer.Typer(rich_markup_mode=None)


@command(app, SetLamp, "light", others=False, name=argument("LAMP"), lit=True)
def lighted(lamp: Lamp, made: SetLamp) -> str:
    """Light a lamp."""
    return f"{lamp.name} is lit: {made.reason}\n"


@steps(app, SetLamp, "switch", name=argument("LAMP", "Which."), lit=option("--on/--off"))
def switch(made: SetLamp, performer: Performs, *, twice: bool = False, json: JsonOption = False) -> None:
    typer.echo(f"{made!r} {twice} {json} {performer!r}")


list_command(
    app,
    ListLamps,
    "list",
    "List the lamps.",
    {"LAMP": lambda lamp: lamp.name},
    empty="it is dark",
    limit=option(default=7),
)


class Performer:
    def __enter__(self) -> str:
        return "performer"

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture(autouse=True)
def performed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Command, str | None, str | None]]:
    calls = []

    def perform(made: Any, store: str | None, by: str | None) -> Any:
        calls.append((made, store, by))
        return Lamps([Lamp("hall", True)] if store else []) if isinstance(made, ListLamps) else made.run(None)

    monkeypatch.setattr(commands, "perform", perform)
    monkeypatch.setattr(commands, "open_commands", lambda *_: Performer())
    return calls


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == code, result.output
    return result.output


def test_the_sentence_of_an_answer_is_printed_or_the_answer_as_json(performed: list[Any]) -> None:
    assert run("light", "hall", "--reason", "dusk", "--by", "ann") == "hall is lit: dusk\\n\n"
    assert run("light", "hall", "--json", "--store", "url") == '{\n  "name": "hall",\n  "lit": true\n}\n'
    assert performed == [
        (SetLamp(name="hall", lit=True, reason="dusk"), None, "ann"),
        (SetLamp(name="hall", lit=True, reason=None), "url", None),
    ]
    assert all(made.model_fields_set == {"name", "lit", "reason"} for made, *_ in performed)


def test_a_field_with_a_value_and_those_that_are_left_out_are_no_options() -> None:
    shown = run("light", "--help")
    assert "Light a lamp." in shown
    assert "The lamp." in shown
    assert "--lit" not in shown
    assert "--job" not in shown


def test_a_list_has_no_by_and_its_own_default(performed: list[Any]) -> None:
    assert run("list") == "it is dark\n"
    assert run("list", "--limit", "9", "--store", "url").split() == ["LAMP", "hall"]
    assert run("list", "--json", "--store", "url") == '{"name":"hall","lit":true}\n'
    assert [made.limit for made, *_ in performed] == [7, 9, 7]
    assert "--by" not in run("list", "--help")
    run("list", "--limit", "101", code=2)


def test_steps_get_the_command_and_the_performer_and_their_own_options() -> None:
    made = repr(SetLamp(name="hall", lit=True))
    assert run("switch", "hall", "--on", "--twice", "--json") == f"{made} True True 'performer'\n"
    assert "Which." in run("switch", "--help")


def test_limits_of_a_type_that_may_be_none_are_those_of_the_option() -> None:
    assert f"1<=x<={JOB_ID_MAX}" in run("switch", "--help")
    assert "Invalid value for '--job'" in run("switch", "hall", "--job", "0", code=2)


def test_a_part_belongs_to_a_field() -> None:
    with pytest.raises(TypeError, match="ListLamps has no field 'colour'"):
        list_command(app, ListLamps, "bad", "", {}, colour=option())


class Ring(BaseModel):
    times: int = Field(default=1, description="How often.")


def ring(*, loud: bool = False) -> None:
    """The function of a command on a model of an application's own."""


@pytest.mark.parametrize("changes", [True, False])
def test_a_command_of_any_model_has_its_fields_the_functions_options_and_the_shared_ones(
    changes: bool,
) -> None:
    calls: list[Any] = []
    bell = typer.Typer(rich_markup_mode=None)

    add_command(
        bell,
        Ring,
        "ring",
        "Ring the bell.",
        ring,
        lambda *of, **shared: calls.append((of, shared)),
        changes=changes,
    )
    done = CliRunner().invoke(bell, ["--times", "3", "--loud", "--store", "url"])
    shown = CliRunner().invoke(bell, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output

    assert done.exit_code == 0, done.output
    assert calls == [((Ring(times=3), {"loud": True}), {"json": False, "by": None, "store": "url"})]
    assert "Ring the bell." in shown
    assert "How often." in shown
    assert ("--by" in shown) == changes
    assert "--json" not in shown
