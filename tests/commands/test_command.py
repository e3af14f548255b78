"""What a command is: a value that checks itself, a client's call and a route, from one definition."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import Field

from new_store import new_store
from server.conftest import world_at
from spinney.client.calls import command_call
from spinney.commands import Command, each
from spinney.commands.control import Control
from spinney.commands.fields import NodeName, Reason
from spinney.define.params.duration_field import DurationField
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import BadName, Forbidden, UsageError
from spinney.model.values.lists import Page
from spinney.server.api import COMMANDS
from spinney.service.service import Service
from spinney.store.sql import open_store
from spinney.web.api.command_routes import command_routes
from spinney.web.settings import ServerSettings


class Rename(
    Command, route="PUT /nodes/{node}/name", role=Role.OPERATOR, everywhere=True, to="rename nodes", long=True
):
    """Give a node another name.

    It keeps its orders."""

    node: NodeName
    name: str
    times: Annotated[int, Field(ge=1)] = 1
    after_s: Annotated[float, DurationField()] = 0.0
    reason: Reason = None

    def run(self, service: Service) -> list[str]:
        return [self.node, self.name, service.by]


class Make(Command, route="POST /nodes", status=201, query=("times",)):
    """Make a node."""

    node: NodeName
    times: int = 1
    reason: Reason = None

    def run(self, service: Service) -> str:
        return self.node


class PlanMake(Command, route="POST /nodes", dry_run=True):
    """Only say what it would be called."""

    node: NodeName
    suffix: str = ""

    def run(self, service: Service) -> list[str]:
        return [self.node + self.suffix]


class Look(Command, route="GET /nodes/{node}/name"):
    """Show a node's name."""

    node: NodeName
    after: str = ""

    def run(self, service: Service) -> None:
        assert service.by


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    opened = open_store(new_store(tmp_path / "s.db"))
    yield opened
    opened.close()


def control(store: Any, rights: Rights) -> Control:
    return Control(store=store, clock=lambda: 1, wake_nodes=lambda: None, by="ann", rights=rights)


@pytest.mark.parametrize(
    ("rights", "sentence"),
    [
        (Rights(role=Role.SUBMITTER), "ann is a submitter and may not rename nodes"),
        (
            Rights(role=Role.OPERATOR, within=AccessScope(collections=("maps",))),
            "ann is limited to collection maps and may not rename nodes",
        ),
    ],
)
def test_who_may_not_is_told_what(store: Any, rights: Rights, sentence: str) -> None:
    with pytest.raises(Forbidden, match=sentence):
        control(store, rights).do(Rename(node="oak", name="elm"))


def test_who_may_gets_the_answer_of_the_handler(store: Any) -> None:
    assert control(store, Rights(role=Role.OPERATOR)).do(Rename(node="oak", name="elm")) == [
        "oak",
        "elm",
        "ann",
    ]


@pytest.mark.parametrize(
    ("values", "error", "sentence"),
    [
        ({"node": "../etc", "name": "x"}, BadName, "cannot name a node"),
        ({"node": "oak", "name": "x", "reason": "a\nb"}, UsageError, "cannot be a reason"),
        ({"node": "oak", "name": "x", "times": 0}, UsageError, "times: .* greater than or equal to 1, not 0"),
        ({"node": "oak", "name": 7}, UsageError, "name: .* valid string, not 7"),
        (
            {"node": "oak", "name": "x", "after_s": "soon"},
            UsageError,
            "^after_s: 'soon' is no length .* w, d, h, m or s",
        ),
        ({"node": "oak"}, UsageError, "name: Field required"),
        ({"node": "oak", "name": "x", "nmae": "y"}, UsageError, "nmae: Extra inputs are not permitted"),
    ],
)
def test_values_that_do_not_fit_are_refused_when_it_is_made(
    values: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        Rename(**values)


@pytest.mark.parametrize("value", [42, Make, None])
def test_what_is_no_command_is_refused_on_a_store_and_by_clients(store: Any, value: Any) -> None:
    for do in (control(store, Rights(role=Role.OPERATOR)).do, command_call):
        with pytest.raises(
            UsageError, match=r"do takes a command with its values, such as ShowJob\(job=1\), not "
        ):
            do(value)


def test_a_client_sends_what_is_said_and_quotes_what_is_in_the_path() -> None:
    call = command_call(Rename(node="oak", name="elm", times=2))

    assert (call.method, call.path, call.json, call.query) == (
        "PUT",
        "/nodes/oak/name",
        {"name": "elm", "times": 2},
        (),
    )
    assert call.decode(b'["a"]') == ["a"]


def test_fields_of_a_command_that_reads_are_a_query() -> None:
    call = command_call(Look(node="oak", after="x"))

    assert (call.method, call.path, call.json, call.query) == (
        "GET",
        "/nodes/oak/name",
        None,
        (("after", "x"),),
    )
    assert call.decode(b"") is None


def routes(*commands: type[Command]) -> Sequence[APIRoute]:
    return [route for route in command_routes("nodes", commands).routes if isinstance(route, APIRoute)]


def test_a_field_can_be_in_the_query_beside_a_body() -> None:
    call = command_call(Make(node="oak", times=3))
    (route,) = routes(Make)

    assert (call.json, call.query) == ({"node": "oak"}, (("times", "3"),))
    assert [field.name for field in route.dependant.query_params] == ["query"]
    assert set(route.body_field.field_info.annotation.model_fields) == {"node", "reason"}  # type: ignore[union-attr]


def test_a_field_that_is_said_to_be_none_is_sent_since_it_may_mean_more_than_silence() -> None:
    assert command_call(Make(node="oak", reason=None)).json == {"node": "oak", "reason": None}
    assert command_call(Make(node="oak")).json == {"node": "oak"}


def test_a_dry_run_is_said_to_be_one() -> None:
    assert command_call(PlanMake(node="oak")).json == {"node": "oak", "dry_run": True}


def test_a_route_has_its_dry_run_and_does_what_follows_behind_its_answer(tmp_path: Path) -> None:
    done: list[str] = []

    class Found(Command, route="POST /nodes", status=201, then=lambda service: done.append(service.by)):
        """Make a node."""

        node: NodeName
        reason: Reason = None

        def run(self, service: Service) -> str:
            done.append(self.node)
            return self.node

    with world_at(tmp_path, ServerSettings()) as world:
        world.app.router.routes.extend(command_routes("nodes", (Found, PlanMake)).routes)
        client = world.client("viewer")
        planned = client.post("/api/v1/nodes", json={"node": "oak", "dry_run": True, "suffix": "-1"})
        assert (planned.status_code, planned.json(), done) == (200, ["oak-1"], [])
        response = client.post("/api/v1/nodes", json={"node": "oak", "suffix": "-1", "reason": "x"})

    assert (response.status_code, response.json(), done) == (201, "oak", ["oak", "viewer"])


class Numbers(Command, route="GET /numbers"):
    """List numbers."""

    after: int = 0
    least: int = 0

    def run(self, service: Service) -> Page[int]:
        first = max(self.after, self.least)
        return Page(items=[first, first + 1], next=first + 2 if first < 14 else None)


def test_each_goes_through_all_pages(store: Any) -> None:
    viewer = control(store, Rights(role=Role.VIEWER))

    assert list(each(viewer, Numbers(least=11))) == [11, 12, 13, 14, 15, 16]


def test_a_route_says_what_the_command_says() -> None:
    (rename, look, make) = routes(Rename, Look, Make)
    assert (rename.summary, rename.description) == ("Give a node another name", "It keeps its orders.")
    assert (rename.path, rename.methods) == ("/api/v1/nodes/{node}/name", {"PUT"})
    assert [each.status_code for each in (rename, look, make)] == [200, 204, 201]


def test_every_command_has_words_an_answer_and_fields_for_its_path() -> None:
    for command in (command for group in COMMANDS.values() for command in group):
        assert command.__doc__, command
        assert command.answer() is None or command.answer(), command
        assert set(command.route.in_path) <= set(command.model_fields), command
        unsaid = [name for name, field in command.model_fields.items() if not field.description]
        assert not unsaid, f"{command.__name__}: {unsaid}"


def test_a_parameter_in_the_path_has_the_words_and_examples_of_its_field() -> None:
    app = FastAPI()
    app.router.routes.extend(command_routes("nodes", (Look,)).routes)

    parameter = app.openapi()["paths"]["/api/v1/nodes/{node}/name"]["get"]["parameters"][0]
    assert (parameter["description"], parameter["schema"]["examples"]) == ("The node's name.", ["node-1"])
