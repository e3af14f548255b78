"""Secrets among parameters: kept as they are for the stage, and shown nowhere."""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import orjson
import pytest
from pydantic import BaseModel, Field, SecretStr

from spinney.define.jobtype.parameters import Parameters, reader
from spinney.define.jobtype.signature import DeclaredParameter, Signature
from spinney.define.params.redaction import (
    REDACTED,
    Redactor,
    has_secrets,
    names_of,
    redact_params,
    secrets_in,
)
from spinney.define.params.schema import checker
from spinney.model.attempts.signals import Fail, Warn
from spinney.model.errors import BadParameters, UsageError
from spinney.model.types import LockSpec, StageSpec, TypeSpec
from spinney.node.worker import result_rows

PASSWORD = "correct horse"
OWN_WAY = Annotated[str, Field(json_schema_extra={"writeOnly": True})]


class Login(BaseModel):
    user: str
    password: SecretStr
    rest: timedelta = timedelta(seconds=5)


@dataclass
class Place:
    host: str
    key: SecretStr | None = None


def parameters(**fields: Any) -> Parameters:
    return Parameters("fetch", {n: DeclaredParameter(annotation=a, required=True) for n, a in fields.items()})


def schema_of(**fields: Any) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(orjson.dumps(parameters(**fields).schema))
    return document


def spec(**fields: Any) -> TypeSpec:
    return TypeSpec(name="fetch", stages=(StageSpec(name="run"),), schema=schema_of(**fields))


EVERYWHERE: dict[str, Any] = {
    "plain": SecretStr,
    "own": OWN_WAY,
    "maybe": SecretStr | None,
    "many": list[SecretStr],
    "named": dict[str, SecretStr],
    "login": Login,
    "places": list[Place],
}
GIVEN: dict[str, Any] = {
    "plain": PASSWORD,
    "own": "my own",
    "maybe": None,
    "many": ["first one", "second one"],
    "named": {"a": "of a"},
    "login": {"user": "ann", "password": "of login", "rest": "PT5S"},
    "places": [{"host": "h", "key": "of place"}, {"host": "i", "key": None}],
}


def test_what_is_stored_is_the_value() -> None:
    assert orjson.loads(parameters(**EVERYWHERE).text(GIVEN)) == GIVEN


def test_what_is_shown_is_the_mask_wherever_a_secret_stands() -> None:
    schema = schema_of(**EVERYWHERE)

    assert redact_params(schema, GIVEN) == {
        "plain": REDACTED,
        "own": REDACTED,
        "maybe": None,
        "many": [REDACTED, REDACTED],
        "named": {"a": REDACTED},
        "login": {"user": "ann", "password": REDACTED, "rest": "PT5S"},
        "places": [{"host": "h", "key": REDACTED}, {"host": "i", "key": None}],
    }
    assert sorted(secrets_in(schema, GIVEN)) == sorted(
        [PASSWORD, "my own", "first one", "second one", "of a", "of login", "of place"]
    )
    assert names_of(schema) >= {"plain", "own", "maybe", "password", "key"}


def test_a_value_that_does_not_fit_the_schema_is_masked_all_the_same() -> None:
    schema = schema_of(**EVERYWHERE)

    shown = redact_params(schema, {"plain": {"of": [PASSWORD, 7]}, "maybe": 4711_0815, "strange": "seen"})

    assert shown == {"plain": REDACTED, "maybe": REDACTED, "strange": "seen"}


def test_a_schema_that_names_itself_is_walked_as_deep_as_the_value() -> None:
    node = {"properties": {"key": {"writeOnly": True}, "below": {"$ref": "#/$defs/node"}}}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node | {"anyOf": [{"$ref": "#/$defs/node"}]}}}

    assert redact_params(schema, {"below": {"below": {"key": "k", "n": 1}}}) == {
        "below": {"below": {"key": REDACTED, "n": 1}}
    }


def test_a_parameter_that_is_called_write_only_is_no_secret() -> None:
    schema = schema_of(writeOnly=bool)

    assert not has_secrets(schema)
    assert redact_params(schema, {"writeOnly": True}) == {"writeOnly": True}


def test_the_stage_gets_the_secret_as_it_declared_it() -> None:
    fields = {
        n: DeclaredParameter(annotation=a, required=True)
        for n, a in {"plain": SecretStr, "own": OWN_WAY}.items()
    }
    read = reader("stage 'run'", Signature(fields=fields))

    params = read('{"plain": "correct horse", "own": "my own"}')

    assert params["plain"].get_secret_value() == PASSWORD
    assert params["own"] == "my own"


REFUSED: dict[str, dict[str, Any]] = {
    "of another type": {"plain": [PASSWORD], "login": {"user": "u", "password": "p"}},
    "inside a model": {"plain": "p", "login": {"user": 5, "password": PASSWORD}},
    "in a model of the wrong form": {"plain": "p", "login": [PASSWORD]},
    "beside an unknown one": {"plain": PASSWORD, "login": {"user": "u", "password": "p"}, "plan": 1},
    "beside a missing one": {"plain": PASSWORD},
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_parameter_and_shows_no_secret(case: str) -> None:
    fields = {"plain": SecretStr, "login": Login}

    with pytest.raises(BadParameters) as with_code:
        parameters(**fields).text(REFUSED[case])
    with pytest.raises(BadParameters) as by_schema:
        checker(spec(**fields))(REFUSED[case])

    for caught in (with_code, by_schema):
        detail = result_rows.error_detail(caught.value)
        assert PASSWORD not in detail["error"]
        assert any(f"'{name}'" in str(caught.value) for name in ("plain", "login", "plan"))


def test_parameters_that_are_no_object_are_not_shown_where_there_are_secrets() -> None:
    with pytest.raises(BadParameters) as caught:
        checker(spec(plain=SecretStr))([PASSWORD])

    assert PASSWORD not in str(caught.value)


def test_the_mask_itself_is_no_secret_that_anybody_means() -> None:
    with pytest.raises(BadParameters, match="as secrets are shown"):
        checker(spec(login=Login))({"login": {"user": "ann", "password": REDACTED}})

    checker(spec(name=str))({"name": REDACTED})


def test_a_stage_that_cannot_read_its_parameters_fails_without_showing_them() -> None:
    fields = {"login": DeclaredParameter(annotation=Login, required=True)}
    read = reader("stage 'run'", Signature(fields=fields))

    text = orjson.dumps({"login": {"user": 5, "password": PASSWORD}}).decode()
    with pytest.raises(Fail) as caught:
        read(text)

    assert PASSWORD not in result_rows.exception_detail("run", caught.value)["error"]


def test_a_lock_is_not_named_by_a_secret() -> None:
    with pytest.raises(UsageError, match="secret parameter 'serno'"):
        Parameters(
            "fetch",
            {"serno": DeclaredParameter(annotation=SecretStr, required=True)},
            lock_templates=["r:{serno}"],
        )

    Parameters(
        "fetch", {"serno": DeclaredParameter(annotation=str, required=True)}, lock_templates=["r:{serno}"]
    )
    with pytest.raises(BadParameters):  # and where it may be anything, as before
        checker(TypeSpec(name="t", stages=(StageSpec(name="run", locks=(LockSpec(template="r:{serno}"),)),)))(
            {}
        )


def redactor() -> Redactor:
    return Redactor.for_params(
        schema_of(plain=SecretStr, short=SecretStr, n=int), {"plain": 'say "it"', "short": "abc", "n": 1}
    )


def test_a_veil_hides_a_secret_in_other_texts_however_it_is_written() -> None:
    redacted = redactor()

    assert redacted.text('login with say "it" failed') == f"login with {REDACTED} failed"
    assert redacted.text(orjson.dumps({"x": 'say "it"'}).decode()) == f'{{"x":"{REDACTED}"}}'
    assert redacted.text(repr(['say "it"', "abc"])) == f"['{REDACTED}', 'abc']", (
        "a short one stands anywhere by chance"
    )
    value = {"plain": 17, "list": ['say "it"!'], "n": 1, "short": None}
    assert redacted.value(value) == {"plain": REDACTED, "list": [f"{REDACTED}!"], "n": 1, "short": None}


KEY = "-----BEGIN KEY-----\n  MIIEvQIBADANBgkq\nabc\nAgEAAoIBAQC7VJTU\n-----END KEY-----"


def test_a_secret_of_several_lines_is_hidden_line_by_line_too() -> None:
    redactor = Redactor.for_params(schema_of(plain=SecretStr), {"plain": KEY})

    assert redactor.text(f"key {KEY}!") == f"key {REDACTED}!"
    redacted = redactor.text("\n".join(f"  | {line}" for line in KEY.splitlines()))
    assert redacted.splitlines() == [
        "  | -----BEGIN KEY-----",
        f"  |   {REDACTED}",
        "  | abc",  # a short line may occur in any text
        f"  | {REDACTED}",
        "  | -----END KEY-----",
    ]


def test_a_line_of_a_secret_that_may_be_ordinary_text_hides_nothing_elsewhere() -> None:
    script = 'import this\n"enabled": true,\nreturn\nAgEAAoIBAQC7VJTUab'
    redactor = Redactor.for_params(schema_of(plain=SecretStr), {"plain": script})

    ordinary = 'import this; the setting "enabled": true, is fine, so return'
    assert redactor.text(ordinary) == ordinary


def test_the_traceback_of_a_group_of_exceptions_tells_no_line_of_a_secret() -> None:
    redactor = Redactor.for_params(schema_of(plain=SecretStr), {"plain": KEY})

    try:
        raise ExceptionGroup("unhandled", [ValueError(f"bad key {KEY}")])
    except ExceptionGroup as group:
        detail = repr(result_rows.exception_detail("work", group, redactor))

    assert "  | " in detail
    assert "MIIEvQIBADANBgkq" not in detail
    assert "AgEAAoIBAQC7VJTU" not in detail


@pytest.mark.parametrize("length", [1, 2, 5, 11, 40])
def test_a_veil_over_a_file_hides_what_lies_across_its_pieces_and_moves_nothing(length: int) -> None:
    data = b'before say "it" after, say "it"say "it" end'

    def read(start: int, n: int) -> bytes:
        return data[start : start + n]

    pieces = b"".join(redactor().piece(read, start, length) for start in range(0, len(data), length))

    assert pieces == data.replace(b'say "it"', b"*" * 8)


@pytest.mark.parametrize("length", [1, 5, 11, 40])
def test_of_a_file_that_grows_only_the_beginning_of_a_secret_is_held_back(length: int) -> None:
    """Given a file that is read at each of its bytes, then what is shown never changes, and no more is held back than
    what may be a secret when more is written."""
    data = b'before say "it" after, says say "it"say "it" end say '
    whole = data.replace(b'say "it"', b"*" * 8)

    for size in range(len(data) + 1):
        read = partial(lambda written, start, n: written[start : start + n], data[:size])
        shown = b"".join(
            redactor().piece(read, start, length, grows=True) for start in range(0, size, length)
        )
        assert whole.startswith(shown)
        assert data[len(shown) : size] in [b'say "it"'[:n] for n in range(8)]


def test_a_long_secret_holds_back_no_output_that_is_none_of_it() -> None:
    """Given a key of many lines, when its first lines have been written, then all before them is shown."""
    key = "-----BEGIN KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0B\n" * 200 + "-----END KEY-----"
    redactor = Redactor.for_params(schema_of(plain=SecretStr), {"plain": key})
    log = b"waiting for the licence\n" * 20

    for written in (log, log + key[:1000].encode(), log + key[:-1].encode()):
        read = partial(lambda data, start, n: data[start : start + n], written)
        assert redactor.piece(read, 0, len(written), grows=True) == log


def test_an_attempt_that_fails_tells_nothing_of_its_secrets() -> None:
    secret = 'say "it"'
    try:
        raise ValueError(f"no login with {secret} and {[secret]!r}")
    except ValueError as error:
        detail = result_rows.exception_detail("run", error, redactor())

    assert "say" not in orjson.dumps(detail).decode()
    assert (
        orjson.loads(detail["error"])["message"]
        == detail["message"]
        == f"no login with {REDACTED} and ['{REDACTED}']"
    )


@pytest.mark.parametrize("spoken", [1, len(PASSWORD) - 1])
def test_a_message_that_is_cut_within_a_secret_tells_no_part_of_it(spoken: int) -> None:
    text = f"{'-' * (2000 - spoken)}{PASSWORD}{'.' * 20}"
    for error in (ValueError(text), Fail(text), Warn(text)):
        detail = result_rows.exception_detail("run", error, Redactor(texts=(PASSWORD,)))

        assert len(detail["message"]) == 2000
        assert PASSWORD[0] not in detail["message"]


def test_a_traceback_that_is_cut_within_secrets_tells_no_part_of_them() -> None:
    try:
        raise ValueError(" ".join([PASSWORD] * 10_000))
    except ValueError as error:
        detail = result_rows.exception_detail("run", error, Redactor(texts=(PASSWORD,)))

    trace = orjson.loads(detail["error"])["traceback"]
    words = re.sub(r"\.\.\. \d+ characters cut \.\.\.", "", trace.partition("ValueError: ")[2])
    assert "cut" in trace
    assert set(words) <= {*REDACTED, " ", "\n"}
