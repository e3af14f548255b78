"""The environment variables by which a program gets its parameters: ``SPINNEY_PARAM_<NAME>``.

Names of variables have fewer characters than names of parameters, so that two parameters may have the same variable
(``a-b``, ``a_b`` and ``A_B`` are all ``SPINNEY_PARAM_A_B``). A program would get only one of the values; so such names
are refused: at the declaration where they are declared, else at the submission."""

import re
from collections.abc import Iterable

from spinney.model.errors import BadParameters, UsageError

_OTHERS = re.compile(r"[^A-Z0-9_]")


def variable(parameter: str) -> str:
    """Return the name of the environment variable of this parameter: in capitals, with ``_`` for everything
    but letters of ASCII, digits and ``_``."""
    return f"SPINNEY_PARAM_{_OTHERS.sub('_', parameter.upper())}"


def same_variable(parameters: Iterable[str]) -> str | None:
    """Return the beginning of a sentence that names two parameters with the same variable; None: there are none."""
    owners: dict[str, str] = {}
    for parameter in parameters:
        owner = owners.setdefault(variable(parameter), parameter)
        if owner != parameter:
            return (
                f"the parameters {owner!r} and {parameter!r} would both be {variable(parameter)} in the environment "
                f"of a program"
            )
    return None


def require_declarable(type_name: str, parameters: Iterable[str]) -> None:
    """Raise UsageError when two parameters that a job type declares have the same variable."""
    same = same_variable(parameters)
    if same is not None:
        raise UsageError(f"job type {type_name!r}: {same}; rename one of them")


def check_variables(type_name: str, parameters: Iterable[str]) -> None:
    """Raise BadParameters when two parameters of a job have the same variable."""
    same = same_variable(parameters)
    if same is not None:
        raise BadParameters(
            f"job type {type_name!r}: {same}. Nothing was submitted; rename one of them and submit again"
        )
