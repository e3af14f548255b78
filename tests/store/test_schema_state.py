"""Which code may work with which store."""

import pytest

from spinney.model.errors import StoreUnusable
from spinney.store.sql.connection.schema_state import (
    COPYING,
    INDEX,
    WORKS_WITH,
    SchemaState,
    require_workable,
)


def schema_state(schema: str, works_with: str | None = None, **meta: str) -> SchemaState:
    facts = {} if works_with is None else {WORKS_WITH: works_with}
    return SchemaState(schema=schema, meta=facts | meta)


@pytest.mark.parametrize(
    ("schema", "works_with", "code", "says"),
    [
        ("0004", "0001", "0004", None),
        ("0005", "0001", "0004", None),
        ("0005", "0004", "0004", None),
        ("0004", "0001", "0005", r"has schema 0004, this Spinney needs 0005; run 'spinney init'"),
        ("0005", "0005", "0004", r"only those of 0005 or later may\); upgrade Spinney on this host"),
        ("", "0001", "0004", "has schema none, this Spinney needs 0004; run 'spinney init'"),
        # of before stores said with what they work: with their own code alone
        ("0004", None, "0004", None),
        ("0005", None, "0004", "upgrade Spinney on this host"),
    ],
)
def test_code_works_with_what_its_schema_allows(
    schema: str, works_with: str | None, code: str, says: str | None
) -> None:
    if says is None:
        require_workable("x.db", schema_state(schema, works_with), schema=code)
        return
    with pytest.raises(StoreUnusable, match=says):
        require_workable("x.db", schema_state(schema, works_with), schema=code)


def test_part_of_a_copy_is_no_store() -> None:
    with pytest.raises(StoreUnusable, match=r"x\.db is part of a copy of y.db that is not finished"):
        require_workable("x.db", schema_state("0004", "0001", **{COPYING: "y.db"}), schema="0004")


def test_only_code_that_counts_on_an_index_waits_for_it() -> None:
    lacking = schema_state("0005", "0001", **{f"{INDEX}0005:jobs_by_hue": "create index …"})

    require_workable("x.db", lacking, schema="0004")
    with pytest.raises(StoreUnusable, match="still lacks its index jobs_by_hue"):
        require_workable("x.db", lacking, schema="0005")
