"""Two parameters never become one environment variable of a program."""

from typing import Any

import pytest

from spinney import Spinney
from spinney.define.params.environment import variable
from spinney.define.params.schema import checker
from spinney.model.errors import BadParameters, UsageError
from spinney.testing import StageHarness


@pytest.mark.parametrize(
    ("parameter", "name"),
    [("path", "PATH"), ("a-b", "A_B"), ("a.B", "A_B"), ("größe", "GR_SSE")],
)
def test_a_variable_is_named_by_its_parameter(parameter: str, name: str) -> None:
    assert variable(parameter) == f"SPINNEY_PARAM_{name}"


@pytest.mark.parametrize("params", [{"a-b": int, "a_b": int}, {"size": int, "Size": str}])
def test_parameters_of_one_variable_are_refused_where_a_program_declares_them(params: dict[str, Any]) -> None:
    app = Spinney()
    first, second = params
    sentence = (
        f"the parameters '{first}' and '{second}' would both be {variable(first)} .*; rename one of them"
    )
    with pytest.raises(UsageError, match=sentence):
        app.program("convert", ["convert"], params=params)
    assert not app.types


def test_parameters_of_one_variable_are_refused_among_all_stages_of_a_pipeline() -> None:
    """A program is called with all parameters of its job, also with those that other stages declare."""
    deposit = Spinney().pipeline("deposit")
    deposit.program("scan", ["scan"], params={"PATH": str})
    with pytest.raises(UsageError, match=r"'PATH' and 'path' would both be SPINNEY_PARAM_PATH"):

        @deposit.stage
        def receive(path: str) -> None: ...

    assert [stage.name for stage in deposit.spec.stages] == ["scan"]


def test_parameters_of_one_variable_may_be_declared_where_no_program_runs() -> None:
    elsewhere = Spinney().external("listen", params={"a-b": int, "a_b": int})
    assert elsewhere.texts([{"a-b": 1, "a_b": 2}]) == ['{"a-b":1,"a_b":2}']


def test_undeclared_parameters_of_one_variable_are_refused_when_submitted() -> None:
    loose = Spinney().program("loose", ["loose"])
    row = {"a-b": 1, "a_b": 2}
    for submit in (
        lambda: loose.texts([row]),
        lambda: checker(loose.spec)(row),
        lambda: StageHarness().run(loose, **row),
    ):
        with pytest.raises(BadParameters, match=r"would both be SPINNEY_PARAM_A_B .* Nothing was submitted"):
            submit()
    assert loose.texts([{"a-b": 1, "b-a": 2}])
