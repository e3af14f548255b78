"""Whatever a request holds, only operators of the list reach MongoDB, and only where a value of a field stands."""

from collections.abc import Iterator, Mapping
from typing import Any

from bson import ObjectId
from hypothesis import given
from hypothesis import strategies as st

from spinney.bridges.disbatch.interface.filters import (
    OPERATORS,
    document_filter,
    index_sets,
    projection,
    storable,
    task_filter,
)
from spinney.bridges.disbatch.interface.wire import BadRequest

NAMES = st.one_of(
    st.sampled_from(["id", "_id", "queue", "status", "node", "ctime", "mtime", "params.user", "a", "stdout"]),
    st.sampled_from(
        ["$where", "$or", "$expr", "a.$b", "$ne", "$gt", "$in", "$oid", "", "a..b", ".a", "a\0", "a\n"]
    ),
    st.text(max_size=6),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["5" * 24, "demo", "12", "-1", "$where", "2026-01-31T12:00:00"]),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)


def keys(value: Any) -> Iterator[str]:
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from keys(inner)
    if isinstance(value, Mapping):
        yield from value


def queue_id(name: str) -> ObjectId | None:
    return ObjectId("5" * 24) if name == "demo" else None


@given(OBJECTS)
def test_a_filter_has_operators_of_the_list_only(fields: dict[str, Any]) -> None:
    for make in (lambda: task_filter(fields, queue_id), lambda: document_filter(fields)):
        try:
            query = make()
        except BadRequest:
            continue
        assert not any(name.startswith("$") or "\0" in name for name in query)
        for condition in query.values():
            assert set(keys(condition)) <= set(OPERATORS)
            if isinstance(condition, Mapping):
                assert not any(isinstance(operand, Mapping) for operand in condition.values())


@given(JSON)
def test_a_projection_shows_or_hides_named_fields(value: Any) -> None:
    try:
        shown = projection(value)
    except BadRequest:
        return
    assert shown is None or all("$" not in name and show in (0, 1) for name, show in shown.items())


@given(OBJECTS)
def test_params_are_stored_as_they_are_but_for_ids(params: dict[str, Any]) -> None:
    try:
        stored = storable(params)
    except BadRequest:
        return
    assert not any(name.startswith("$") or "." in name for name in keys(stored))


def test_indexes_that_lack_documents_or_begin_another_do_not_count() -> None:
    information = {
        "_id_": {"key": [("_id", 1)]},
        "a": {"key": [("a", 1), ("b", -1)]},
        "b": {"key": [("a", -1)]},
        "c": {"key": [("c", 1)], "sparse": True},
        "d": {"key": [("d", 1)], "partialFilterExpression": {"x": 1}},
        "e": {"key": [("e", "hashed")]},
        "f": {"key": [("a", 1), ("b", -1), ("_id", 1)]},
    }

    assert index_sets(information) == [["a", "b", "id"], ["id"]]
