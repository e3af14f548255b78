"""Counts with their nouns, as messages for people need them."""


def counted(count: int, singular: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 job``, ``1,204 jobs``. ``many``: the plural where it is not ``singular`` with
    an s."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"
