"""Secrets of jobs whose type declares them no more."""

from typing import Any

import pytest

from spinney.define.params.redaction import REDACTED
from spinney.define.params.schema import checker
from spinney.model.errors import BadParameters
from spinney.model.jobs import Filter
from spinney.model.types import TypeSpec
from spinney.service.redaction import Redactors
from spinney.store.parts import Store

from .behind import registry_changes
from .words import kind, submission

PLAIN = {"type": "string"}
SECRET = {"type": "string", "writeOnly": True}
HUSH = "hunter2-secret"


def declared(store: Store, properties: dict[str, Any], **more: Any) -> TypeSpec:
    """The type as the store has it after an application declared it so."""
    schema = {"type": "object", "properties": properties, **more}
    store.register([kind("fetch", "work", schema=schema)], ())
    return store.types()["fetch"]


def shown(store: Store, params: dict[str, Any]) -> Any:
    job = store.submit([submission("fetch", params)], now_us=1).ids[0]
    (seen,) = Redactors(store.types()).jobs([store.job(job)])
    return seen.params


@pytest.mark.parametrize("after", [{}, {"code": SECRET}, {"pin": PLAIN}])
def test_a_secret_stays_redacted_when_its_type_declares_it_otherwise(
    store: Store, after: dict[str, Any]
) -> None:
    declared(store, {"pin": SECRET})
    declared(store, after)
    declared(store, {"other": PLAIN})

    assert shown(store, {"pin": HUSH, "n": 1}) == {"pin": REDACTED, "n": 1}
    (job,) = store.jobs(Filter())
    assert Redactors(store.types()).of(job).text(f"with {HUSH}") == f"with {REDACTED}"


def test_secrets_in_nested_values_lists_and_references_stay_redacted(store: Store) -> None:
    login = {"properties": {"user": PLAIN, "password": SECRET, "next": {"$ref": "#/$defs/Login"}}}
    fields = {"login": {"$ref": "#/$defs/Login"}, "keys": {"type": "array", "items": SECRET}}
    declared(store, fields, **{"$defs": {"Login": login}})
    spec = declared(store, {"login": {"type": "object"}, "keys": {"type": "array"}})

    assert spec.former_secrets == (("keys", None), ("login", "next"), ("login", "password"))
    assert shown(store, {"login": {"user": "ann", "password": HUSH}, "keys": [HUSH, HUSH]}) == {
        "login": {"user": "ann", "password": REDACTED},
        "keys": [REDACTED, REDACTED],
    }


def test_a_declaration_that_is_made_again_changes_nothing(store: Store) -> None:
    declared(store, {"pin": SECRET})
    once = declared(store, {})
    changes = registry_changes(store)

    assert declared(store, {}) == once
    assert registry_changes(store) == changes


def test_what_is_secret_again_is_no_former_secret(store: Store) -> None:
    declared(store, {"pin": SECRET})
    declared(store, {})

    assert declared(store, {"pin": SECRET}).former_secrets == ()


def test_what_is_shown_of_a_former_secret_is_not_taken_as_its_value(store: Store) -> None:
    declared(store, {"token": SECRET})
    spec = declared(store, {"token": PLAIN})
    seen = shown(store, {"token": "/srv/data/in"})
    assert seen == {"token": REDACTED}

    with pytest.raises(BadParameters, match="give the value itself"):
        checker(spec)(seen)
    checker(spec)({"token": "/srv/data/in"})
