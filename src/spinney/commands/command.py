"""``Command``, the base class of commands, and what performs them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from spinney.model.access import Role
from spinney.model.errors import UsageError
from spinney.model.values.lists import Page
from spinney.model.values.texts import plain_message
from spinney.service.service import Service

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The route of the API by which a server performs a command."""

    method: str
    path: str
    """Below ``/api/v1``, with the names of fields in braces: ``/nodes/{node}/drain``."""
    long: bool
    """Whether it may take longer than a moment: then it is stopped between two steps when its caller loses the
    rights."""
    status: int
    """The HTTP status of its answer, where it has one: 200, or 201 where it creates something."""
    query: tuple[str, ...]
    """Fields that travel in the query although others are in a body."""
    lines: str | None
    """The field whose lines of JSON are the body. The others are in the query, as those of a GET."""
    dry_run: bool
    """Whether it only says what the command with the same route would do. That route gets a field ``dry_run``."""

    @property
    def in_path(self) -> tuple[str, ...]:
        """Return the fields that are part of the path, in order; the others are the body, or the query of a GET."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def has_body(self) -> bool:
        """Return whether fields travel in a body of JSON."""
        return self.method not in ("GET", "DELETE") and self.lines is None


class Returns(Protocol[T_co]):
    """A command whose answer has this type."""

    def run(self, service: Service) -> T_co:
        """Perform the operation and return its answer, as ``Command.run`` does."""

    def perform(self, service: Service) -> Any:
        """Check the caller's role and perform the operation, as ``Command.perform`` does."""


class Performs(Protocol):
    """Performs commands in the name of one caller: on a store, or through a server."""

    @property
    def poll_s(self) -> float:
        """How many seconds a command that waits for something pauses before it looks again."""

    def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """Return the command's answer. ``tell`` is called with each value of the classes that the command's
        ``progress`` names, while it runs. Raises Forbidden, and what the command's ``run`` and ``tell`` raise."""


class Command(BaseModel):
    """An operation that a caller asks for, as a value. A subclass names its route and who may use it::

        class DrainNode(Command, route="POST /nodes/{node}/drain", role=Role.OPERATOR, to="drain nodes"):

    ``role``: the least that its caller needs. ``everywhere``: that the caller may not be limited to collections or
    queues. ``to``: what a refusal says that the caller may not. ``long``, ``status``, ``query``, ``lines``,
    ``dry_run``: see ``Route``. ``then``: what follows, which a server does behind its answer; whoever has the store
    does it, too.
    ``progress``: the classes of the values that ``run`` hands to ``Service.tell``, by what a line of the API's answer
    calls them; a command that has none of them tells nothing before its end.

    Raises UsageError when it is made with values that its fields do not take.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    route: ClassVar[Route]
    role: ClassVar[Role]
    everywhere: ClassVar[bool]
    to: ClassVar[str]
    then: ClassVar[Callable[[Service], None] | None]
    progress: ClassVar[Mapping[str, type]]

    def __init_subclass__(
        cls,
        *,
        route: str,
        role: Role = Role.VIEWER,
        everywhere: bool = False,
        to: str = "look",
        long: bool = False,
        status: int = 200,
        query: tuple[str, ...] = (),
        lines: str | None = None,
        dry_run: bool = False,
        then: Callable[[Service], None] | None = None,
        progress: Mapping[str, type] = MappingProxyType({}),
        **config: Any,
    ) -> None:
        method, _, path = route.partition(" ")
        cls.route = Route(
            method=method, path=path, long=long, status=status, query=query, lines=lines, dry_run=dry_run
        )
        cls.role, cls.everywhere, cls.to, cls.then, cls.progress = role, everywhere, to, then, progress
        super().__init_subclass__(**config)

    if not TYPE_CHECKING:  # type checkers make a better one of the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise UsageError(_sentence(error)) from None

    def run(self, service: Service) -> Any:
        """Perform the operation and return its answer, whose type the annotation of the subclass documents.
        ``perform`` has checked the role; what depends on the fields, such as limits of the caller, is checked
        here."""
        raise NotImplementedError

    def is_long(self) -> bool:
        """Return whether the command, with these values of its fields, may take longer than a moment."""
        return self.route.long

    def uses_folders(self) -> bool:
        """Return whether the command reads or writes the folder root, whose disk may not answer."""
        return False

    def perform(self, service: Service) -> Any:
        """Perform the operation if the caller has the role. Raises Forbidden, and what ``run`` raises."""
        require = service.require_everywhere if self.everywhere else service.require
        require(self.role, self.to)
        return self.run(service)

    @classmethod
    def answer(cls) -> Any:
        """Return the type of the command's answer, as ``run`` is annotated; None for a command that has
        none."""
        hint = get_type_hints(cls.run)["return"]
        return None if hint is type(None) else hint


def require_command(value: object) -> Command:
    """Return a command that was passed to ``do``. Raises UsageError for anything else, such as the class of a
    command."""
    if not isinstance(value, Command):
        raise UsageError(f"do takes a command with its values, such as ShowJob(job=1), not {value!r:.80}")
    return value


class LocalPerformer(Service):
    """Performs commands on a store, in the name and with the rights of one caller."""

    poll_s: ClassVar[float] = 0.1

    def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """Return the command's answer. Raises Forbidden, and what the command and ``tell`` raise."""
        answer: T = require_command(command).perform(self if tell is None else replace(self, tell=tell))
        return answer


class CompletePerformer(LocalPerformer):
    """Performs commands on a store, and what follows them (``Command.then``): for a caller that has no server."""

    def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """Return the command's answer, when what follows the command is done, too. Raises as
        ``LocalPerformer.do``, and what ``Command.then`` raises: then the command itself has been
        performed."""
        answer = super().do(command, tell=tell)
        then = type(cast("Command", command)).then
        if then is not None:
            then(self)
        return answer


def each(performer: Performs, command: Returns[Page[T]]) -> Iterator[T]:
    """Yield all items of a list, page by page: a page is requested when the items before it are used up. The
    command has a field ``after``. Raises what ``Performs.do`` raises."""
    while True:
        page = performer.do(command)
        yield from page.items
        if page.next is None:
            return
        command = cast("Any", command).model_copy(update={"after": page.next})


def _sentence(error: ValidationError) -> str:
    """Return what is wrong with the first of the wrong values: its field, the sentence, and the value,
    cut."""
    first = error.errors(include_url=False, include_context=False)[0]
    sentence = f"{'.'.join(map(str, first['loc']))}: {plain_message(first['msg'])}"
    if first["type"] == "value_error":  # of a type of ours, whose sentence is whole
        return sentence
    return f"{sentence}, not {first['input']!r:.60}"
