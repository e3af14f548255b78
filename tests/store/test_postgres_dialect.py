"""How statements are spelt for PostgreSQL."""

from spinney.store.sql.connection.database import RowChange
from spinney.store.sql.connection.postgres_dialect import Column, array, at_once, translated


def test_marks_and_percent_signs_become_the_drivers() -> None:
    assert translated("select 1 from a where b = ? and c like 'lock:%?' and d = ?") == (
        "select 1 from a where b = %s and c like 'lock:%%?' and d = %s",
        None,
    )


def test_a_number_used_twice_hands_its_argument_over_twice() -> None:
    assert translated("select ?2, ?1 from a where b = ?2") == ("select %s, %s from a where b = %s", (1, 0, 1))


def test_lists_are_of_numbers_unless_they_say_otherwise() -> None:
    assert "bigint[]" in translated("select j.value from json_each(?) j").text
    assert (
        "jsonb_array_elements_text(cast(%s as jsonb))"
        in translated("select j.value from json_each(?) /* text */ j").text
    )


NUMBERS, TEXTS = Column("bigint", single=False), Column("text", single=False)
ONE_NUMBER, ONE_TEXT = Column("bigint", single=True), Column("text", single=True)


def test_a_change_of_many_rows_is_one_statement_with_arrays() -> None:
    update = RowChange("a", "e = ?", set="b = 'x', c = coalesce(c, ?), d = ?")
    assert at_once(update, (NUMBERS, None, TEXTS)) == (
        "update a set b = 'x', c = coalesce(c, v.c0), d = null from unnest(cast(%s as bigint[]), cast(%s as text[])) "
        "as v(c0, c2) cross join lateral (select ctid as place from a where e = v.c2 offset 0) k "
        "where a.ctid = k.place",
        [0, 2],
        [0, 2],
    )
    assert at_once(RowChange("a", "b = ? and c <= ?"), (NUMBERS, TEXTS)) == (
        "delete from a where ctid = any(array(select k.place from "
        "unnest(cast(%s as bigint[]), cast(%s as text[])) as v(c0, c1) "
        "cross join lateral (select ctid as place from a where b = v.c0 and c <= v.c1 offset 0) k))",
        [0, 1],
        [0, 1],
    )


def test_what_is_set_to_the_same_in_all_rows_travels_once() -> None:
    columns = (ONE_NUMBER, NUMBERS, NUMBERS, ONE_TEXT)
    assert at_once(RowChange("a", "d = ? and e = ?", set="b = ?, c = ?"), columns) == (
        "update a set b = cast(%s as bigint), c = v.c1 from unnest(cast(%s as bigint[]), cast(%s as bigint[]), "
        "cast(%s as text[])) as v(c1, c2, c3) "
        "cross join lateral (select ctid as place from a where d = v.c2 and e = v.c3 offset 0) k "
        "where a.ctid = k.place",
        [0, 1, 2, 3],
        [1, 2, 3],
    )


def test_there_is_no_statement_for_rows_without_keys() -> None:
    assert at_once(RowChange("a", "c = ?", set="b = ?"), (ONE_NUMBER, None)) is None


def test_a_change_of_one_row_is_a_plain_statement() -> None:
    assert RowChange("a", "c = ?", set="b = ?").statement == "update a set b = ? where c = ?"
    assert RowChange("a", "c = ?").statement == "delete from a where c = ?"


def test_arrays_are_written_as_the_server_reads_them() -> None:
    assert array([1, None, True, -7]) == "{1,null,1,-7}"
    assert array(['a"b\\c', None, "", "null", "{,}"]) == '{"a\\"b\\\\c",null,"","null","{,}"}'
