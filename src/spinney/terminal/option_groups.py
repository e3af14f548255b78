"""Options that several commands share, declared once as the fields of a dataclass.

    @with_option_groups
    def retry(jobs: JobsArgument, filter_options: FilterOptions, reason: ReasonOption = None) -> None: ...

Typer sees every field of ``FilterOptions`` as an option of ``retry``; the command gets one ``FilterOptions``. A
subclass that declares a field anew declares the option anew, or takes it out with ``None`` as its annotation.

``ChangeOptions`` are the options of most commands that change something.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from spinney.terminal.arguments import ByOption, JsonOption, ReasonOption, StoreOption
from spinney.terminal.connection import open_commands, perform

if TYPE_CHECKING:
    from spinney.commands import Performs, Returns

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """The options of a command that changes something and prints what became of it."""

    reason: ReasonOption = None
    json: JsonOption = False
    by: ByOption = None
    store: StoreOption = None

    def open_commands(self) -> "AbstractContextManager[Performs]":
        """Open what performs the change, in the name and on the store of the options."""
        return open_commands(self.store, self.by)

    def perform(self, command: "Returns[T]") -> T:
        """Perform the change, and return its answer."""
        return perform(command, self.store, self.by)


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

    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        expanded = options.get(parameter.name, [parameter])
        parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in expanded]
    twice = [p.name for p in parameters if [q.name for q in parameters].count(p.name) > 1]
    if twice:
        raise TypeError(f"{command.__name__} has more than one option {twice[0]!r}")
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[f.name]
        )
        for f in fields(group)
        if hints[f.name] is not type(None)
    ]


def _default(of: Field[Any]) -> Any:
    return inspect.Parameter.empty if of.default is MISSING else of.default
