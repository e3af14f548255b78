"""How secrets are declared, and how short ones are kept out of what the engine writes itself."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretBytes, SecretStr

from spinney import Secret, Spinney
from spinney.define.job.options import Options
from spinney.define.jobtype.parameters import Parameters, reader
from spinney.define.jobtype.signature import DeclaredParameter, Signature
from spinney.define.params.redaction import REDACTED, redact_params
from spinney.define.params.schema import checker
from spinney.define.params.validation_errors import describe
from spinney.model.attempts.signals import Fail
from spinney.model.errors import BadParameters, UsageError
from spinney.model.settings.schedules import Schedule
from spinney.node.worker import result_rows
from spinney.testing import run_stage

PIN = "0451"
"""Too short to be looked for in other texts."""
SHORT = "sésäm"
"""Five characters, though eight bytes."""


def never(value: Any) -> Any:
    plain = value.get_secret_value() if isinstance(value, SecretStr) else value
    raise ValueError(f"{plain} is not a PIN")


class Login(BaseModel):
    user: str
    pin: Annotated[SecretStr, AfterValidator(never)]


def parameters(**annotations: Any) -> Parameters:
    return Parameters(
        "unlock", {n: DeclaredParameter(annotation=a, required=True) for n, a in annotations.items()}
    )


@pytest.mark.parametrize("text", [str, SecretStr, SecretBytes, str | None, SecretStr | None])
def test_a_secret_is_masked_and_refused_when_it_is_too_short(text: Any) -> None:
    app = Spinney()

    def unlock(code: Any) -> str:
        return type(code).__name__

    unlock.__annotations__["code"] = Annotated[text, Secret()]
    kind = app.job(unlock)
    schema = kind.spec.schema
    assert kind.texts([{"code": "sesame"}]) == ['{"code":"sesame"}']
    assert redact_params(schema, {"code": "sesame"}) == {"code": REDACTED}
    checker(kind.spec)({"code": "sesame"})

    row = {"code": SHORT}
    for submit in (lambda: kind.texts([row]), lambda: checker(kind.spec)(row)):
        with pytest.raises(
            BadParameters, match=r"'code' is wrong: it must be a secret text of at least 6 characters"
        ) as caught:
            submit()
        assert SHORT not in result_rows.error_detail(caught.value)["error"]


def test_a_stage_gets_a_secret_as_it_is_annotated() -> None:
    app = Spinney()

    @app.job
    def unlock(door: Annotated[str, Secret()], code: Annotated[SecretStr, Secret(min_length=4)]) -> list[str]:
        return [door, code.get_secret_value()]

    assert run_stage(unlock, door="front door", code=PIN).value == ["front door", PIN]


@pytest.mark.parametrize("annotation", [int, list[str], dict[str, str], bool])
def test_what_is_no_text_cannot_be_declared_so(annotation: Any) -> None:
    def unlock(code: Any) -> None: ...

    unlock.__annotations__["code"] = Annotated[annotation, Secret()]
    with pytest.raises(
        UsageError, match=r"stage 'unlock' of 'unlock': 'code' .*Secret marks text; annotate str"
    ):
        Spinney().job(unlock)


@pytest.mark.parametrize("annotation", [Annotated[str, Secret], Annotated[SecretStr, Secret] | None, Secret])
def test_the_class_in_place_of_the_mark_is_refused_with_what_to_write(annotation: Any) -> None:
    def unlock(code: Any) -> None: ...

    unlock.__annotations__["code"] = annotation
    with pytest.raises(
        UsageError, match=r"stage 'unlock' of 'unlock': 'code' .*write Annotated\[str, Secret\(\)\]"
    ):
        Spinney().job(unlock)


@pytest.mark.parametrize(
    ("default", "text"), [(Secret(), "Secret()"), (Secret, "Secret()"), (Field(ge=0), "Field(…)")]
)
def test_a_mark_in_place_of_a_default_is_refused(default: Any, text: str) -> None:
    def unlock(code: str = default) -> None: ...

    with pytest.raises(UsageError, match=f"write code: {re.escape(f'Annotated[…, {text}]')}"):
        Spinney().job(unlock)


class Lock(BaseModel):
    code: str = Secret()  # type: ignore[assignment]


@dataclass
class Door:
    code: str = Secret  # type: ignore[assignment]


@pytest.mark.parametrize("annotation", [Lock, list[Lock], Door])
def test_a_mark_in_place_of_the_default_of_a_field_is_refused(annotation: Any) -> None:
    def unlock(door: Any) -> None: ...

    unlock.__annotations__["door"] = annotation
    with pytest.raises(
        UsageError, match=r"stage 'unlock' of 'unlock': 'door' .*write Annotated\[…, Secret\(\)\]"
    ):
        Spinney().job(unlock)


@pytest.mark.parametrize("length", [0, -1, 1.5, True, "8"])
def test_the_least_length_is_a_number_of_characters(length: Any) -> None:
    with pytest.raises(UsageError, match="min_length of a Secret must be a whole number of 1 or more"):
        Secret(min_length=length)


def test_a_secret_that_may_be_too_short_says_where_it_is_shown() -> None:
    descriptions = [
        describe(parameters(code=annotation).schema["properties"]["code"], {})
        for annotation in (SecretStr, Annotated[str, Secret(min_length=4)], Annotated[str, Secret()])
    ]
    limit = "(redacted outside of the parameters only from 6 characters on)"
    assert descriptions == [
        f"a secret text {limit}",
        f"a secret text of at least 4 characters {limit}",
        "a secret text of at least 6 characters",
    ]


@pytest.mark.parametrize(
    "annotation", [Annotated[str, Secret()], Annotated[str | None, Secret()], Annotated[str, Secret()] | None]
)
def test_a_default_that_is_too_short_for_a_secret_is_refused_where_it_is_declared(annotation: Any) -> None:
    def unlock(code: Any = PIN) -> None: ...

    unlock.__annotations__["code"] = annotation
    with pytest.raises(UsageError, match=r"the default of 'code' is shorter .* 6 characters") as caught:
        Spinney().job(unlock)
    assert PIN not in str(caught.value)


@pytest.mark.parametrize("default", [None, "", "long enough"])
def test_another_default_of_a_secret_is_declared_and_never_shown(default: str | None) -> None:
    def unlock(code: Any = default) -> None: ...

    unlock.__annotations__["code"] = Annotated[str | None, Secret()]
    kind = Spinney().job(unlock)
    assert "default" not in kind.spec.schema["properties"]["code"]


# --- what the engine writes itself -------------------------------------------------------------


def refusals() -> dict[str, Any]:
    """Sentences about parameters, each of which has a secret that is too short to be found by its text."""
    validated = Annotated[SecretStr, AfterValidator(never)]
    fields = {
        "login": DeclaredParameter(annotation=Login, required=True),
        "pin": DeclaredParameter(annotation=validated, required=True),
    }
    stored = orjson.dumps({"login": {"user": "ann", "pin": PIN}, "pin": PIN}).decode()
    return {
        "a validator of a parameter": lambda: parameters(pin=validated).text({"pin": PIN}),
        "a validator in a model": lambda: parameters(login=Login).text(
            {"login": {"user": "ann", "pin": PIN}}
        ),
        "a value of another kind": lambda: parameters(pin=SecretStr).text({"pin": [PIN]}),
        "parameters that are too long": lambda: Options().submission(
            "t", [f'{{"pin":"{PIN}"{" " * 2**20}}}']
        ),
        "parameters that a stage cannot read": lambda: reader("stage 'run'", Signature(fields=fields))(
            stored
        ),
        "a schedule of no parameters": lambda: Schedule(name="s", type="t", cron="@daily", params=[PIN]),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("case", refusals())
def test_a_sentence_of_the_engine_leaves_out_a_secret_of_any_length(case: str) -> None:
    with pytest.raises((UsageError, Fail)) as caught:
        refusals()[case]()
    detail = result_rows.exception_detail("run", caught.value)
    assert PIN not in detail["message"]
    assert PIN not in detail.get("error", "")


def test_a_stage_that_cannot_read_its_parameters_says_where() -> None:
    with pytest.raises(Fail, match=r"'login' is wrong at 'login\.pin': .*; parameter 'pin' is wrong: "):
        refusals()["parameters that a stage cannot read"]()
