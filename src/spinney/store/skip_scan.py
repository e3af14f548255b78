"""The different values of an indexed column, by a seek for each: however many rows have the same."""


def distinct(
    table: str, column: str, where: str, *, begin: str | None = None, most: int | None = None
) -> str:
    """The statement; what stands in ``where`` stands in it twice. ``most``: no more seeks than these.

    ``where`` must say what lets the index be used (``column is not null`` where it holds no others), and no lower
    bound of the column, which is ``begin``: SQLite would enter the index there each time, and not behind the
    value before.
    """
    least = f"select min({column}) from {table} where {where}"
    first = least if begin is None else f"{least} and {column} >= {begin}"
    no_further = "" if most is None else f" limit {most}"
    return (
        f"with recursive v(x) as ({first} union all select ({least} and {column} > x) from v "
        f"where x is not null{no_further}) select x from v where x is not null"
    )
