"""The addresses of the service against a server that listens: whatever is asked, nothing is answered but what is
documented. Requests are made up by schemathesis."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from http_listener import Listening
from long_tests import LONG
from spinney.server import extensions
from spinney.server.openapi import document
from spinney.web.api.json_routes import PREFIX
from spinney.web.settings import ServerSettings

from .conftest import build

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
ROLES = ("ann", "admin")
PATIENCE_S = 30.0


def routes() -> Iterator[APIRoute]:
    app = FastAPI(title="Spinney", version="0")
    extensions.add_routes(app)
    for route in app.routes:
        if (
            isinstance(route, APIRoute)
            and route.include_in_schema
            and route.path.startswith(f"{PREFIX}/apps/ingest")
        ):
            yield route


LABELS = [f"{method} {route.path_format}" for route in routes() for method in sorted(route.methods)]


@pytest.fixture(scope="module")
def operations() -> dict[str, APIOperation]:
    """By label."""
    app = FastAPI(title="Spinney", version="0")
    extensions.add_routes(app)
    output = (result.ok() for result in openapi.from_dict(document(app, PREFIX)).get_all_operations())
    return {operation.label: operation for operation in output if "/apps/ingest/" in operation.label}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        _, app = build(tmp_path_factory.mktemp("documented"), patch)
        listening = Listening(app, ServerSettings())
        yield listening.url
        listening.end()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fits", "fits not"])
@pytest.mark.parametrize("label", LABELS)
def test_nothing_but_documented_answers(
    url: str, operations: dict[str, APIOperation], label: str, mode: GenerationMode
) -> None:
    operation = operations[label]

    @settings(
        max_examples=100 if LONG else 1,
        deadline=None,
        database=None,
        derandomize=not LONG,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        for role in ROLES:
            sent: dict[str, Any] = case.as_transport_kwargs(base_url=url)
            sent["headers"] = {**(sent.get("headers") or {}), "X-Asker": role}
            answer = requests.request(**sent, timeout=PATIENCE_S, allow_redirects=False)
            case.validate_response(answer, checks=CHECKS)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, label  # whatever is sent there fits


def test_every_documented_operation_is_asked(operations: dict[str, APIOperation]) -> None:
    assert sorted(operations) == sorted(LABELS)
