"""Query the distinct values of an indexed column, by one seek for each value, however many rows have it."""


def distinct(
    table: str, column: str, where: str, *, begin: str | None = None, most: int | None = None
) -> str:
    """Return the statement, which contains ``where`` twice. ``most``: the most values. Both databases compute a row of
    the recursion only when it is fetched, so no more is sought; PostgreSQL refuses a limit within the recursion.

    ``where`` must have the condition of a partial index (``column is not null``), and no lower bound of the column,
    which is ``begin``: SQLite would enter the index there each time, and not after the value before."""
    least = f"select min({column}) from {table} where {where}"
    first = least if begin is None else f"{least} and {column} >= {begin}"
    limit = "" if most is None else f" limit {most}"
    return (
        f"with recursive v(x) as ({first} union all select ({least} and {column} > x) from v "
        f"where x is not null) select x from v where x is not null{limit}"
    )
