"""What is named in an address and is not there: 404, whatever word ``control`` has for a wrong name."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney.model.errors import NoSuch, Refused, UsageError


@contextmanager
def missing_is_404() -> Iterator[None]:
    """Around a look at something by its name, which can be refused for nothing else."""
    try:
        yield
    except (Refused, UsageError) as error:
        raise NoSuch(str(error)) from None
