"""Options that several commands share, declared once as the fields of a dataclass.

    @with_option_groups
    def list_jobs(filter_options: FilterOptions, json: JsonOption = False) -> None: ...

Typer sees every field of ``FilterOptions`` as an option of the command; the command gets one ``FilterOptions``. A
subclass that declares a field anew declares the option anew. Each field has a default. ``given_options`` returns the
options that were given on the command line.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints

_LAST = ("dry_run", "yes", "reason", "json", "by", "store")
"""Options that many commands share: the help shows them behind those of the command itself."""


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command for typer: each of its parameters whose annotation is a dataclass is replaced by the fields of
    that dataclass. Raises TypeError when two options have the same name."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        p.name: p.annotation for p in signature.parameters.values() if is_dataclass(p.annotation)
    }
    options = {name: _options(group) for name, group in groups.items()}

    @wraps(command)
    def with_options(**words: Any) -> None:
        for name, group in groups.items():
            words[name] = group(**{option.name: words.pop(option.name) for option in options[name]})
        command(**words)

    parameters: list[Parameter] = []
    for parameter in signature.parameters.values():
        expanded = options.get(parameter.name, [parameter])
        parameters += [p.replace(kind=Parameter.KEYWORD_ONLY) for p in expanded]
    parameters.sort(key=lambda p: _LAST.index(p.name) if p.name in _LAST else -1)
    twice = [p.name for p in parameters if [q.name for q in parameters].count(p.name) > 1]
    if twice:
        raise TypeError(f"{command.__name__} has more than one option {twice[0]!r}")
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def given_options(group: Any, of: type | None = None, /, **converted: Any) -> dict[str, Any]:
    """Return the options of a group that were given, by name. An option that is None, or a flag that is False,
    was not given.

    ``of``: the class whose options are meant, if the group is of a subclass that has more; ``converted``: values in
    place of those of the group.
    """
    values = {option.name: getattr(group, option.name) for option in fields(of or group)} | converted
    return {name: value for name, value in values.items() if value is not None and value is not False}


def _options(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
    ]
