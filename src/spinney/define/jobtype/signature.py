"""The parameters of a stage, read from the annotations of its function.

A parameter without an annotation takes any JSON value. ``job``, and whatever is annotated as ``spinney.Job``,
is the handle and no parameter. All stages of a type get the parameters of one job by their names, so that a
name must mean the same in each (``merge_signatures``)."""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spinney.define.job import Job
from spinney.define.params.secrets import Secret, is_mark
from spinney.model.errors import UsageError

JOB_NAME = "job"
"""The parameter of this name gets the handle, annotated or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredParameter:
    """One parameter of a stage, as its function's signature or ``params`` declares it."""

    annotation: Any
    required: bool
    default: Any = None
    """The default in the function's signature; None also where there is none, or where stages have several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The parameters of one stage, and how its function receives them."""

    fields: Mapping[str, DeclaredParameter]
    job_name: str | None = None
    """The name under which the function gets the handle; None: it does not use it."""
    extra: bool = False
    """It takes any further parameter (``**rest``)."""


def of_function(where: str, function: Callable[..., Any]) -> Signature:
    """Return the signature of a function; ``where`` names it in messages. Raises UsageError for parameters
    that no job can pass, for annotations that cannot be read, and for defaults that are no values but marks, that
    jobs would share, or that are too short for a secret."""
    hints = _hints(where, function)
    fields: dict[str, DeclaredParameter] = {}
    job_name, extra = None, False
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise UsageError(
                f"{where} takes {name!r} by position, but parameters are passed by name; "
                f"declare it as a plain one"
            )
        elif annotation is Job or (name == JOB_NAME and _may_be_handle(annotation)):
            if job_name is not None:
                raise UsageError(
                    f"{where} takes its job twice, as {job_name!r} and as {name!r}; keep one of the two"
                )
            job_name = name
        elif name == JOB_NAME and Job not in hints.values():
            raise UsageError(
                f"{where} takes {name!r}, which is the handle of its job, as {annotation_text(annotation)}; "
                f"annotate it as spinney.Job, or give the parameter another name"
            )
        else:
            required = parameter.default is parameter.empty
            default = None if required else parameter.default
            _require_no_mark(where, name, default)
            _require_no_shared_default(where, name, default)
            _require_long_secret(where, name, annotation, default)
            fields[name] = DeclaredParameter(annotation=annotation, required=required, default=default)
    return Signature(fields=fields, job_name=job_name, extra=extra)


def _may_be_handle(annotation: Any) -> bool:
    """Return whether a parameter named ``job`` may be the handle: untyped, Job or None, or the author's own
    protocol."""
    if annotation is Any:
        return True
    if isinstance(annotation, type) and not getattr(annotation, "_is_protocol", False):
        return issubclass(Job, annotation)
    return not is_plain(annotation)


_GROUPED = "__is_annotated_types_grouped_metadata__"
"""The attribute that annotated_types gives to what stands for several bounds, such as ``StringConstraints``."""


def _require_no_mark(where: str, name: str, default: object) -> None:
    """Refuse what belongs into the annotation and stands in place of the default, as some frameworks have it: the
    function would get it as the value."""
    module = type(default).__module__
    is_secret = is_mark(default)
    is_field = module == "pydantic.fields"  # the module of what ``Field`` returns
    is_bound = module == "annotated_types" or hasattr(default, _GROUPED)
    if is_secret or is_field or is_bound:
        text = "Secret()" if is_secret else f"{'Field' if is_field else type(default).__name__}(…)"
        raise UsageError(
            f"{where}: {text} is no default of {name!r}; write {name}: Annotated[…, {text}], with its type in place of "
            f"the dots"
        )


def _require_no_shared_default(where: str, name: str, default: object) -> None:
    """Refuse a mutable default: a worker runs many jobs, and a change by one of them would be seen by the next. In
    Python what can be changed and is compared by its value has no hash, nor has a tuple that holds it."""
    try:
        hash(default)
    except TypeError:
        raise UsageError(
            f"{where}: the default of {name!r} is {default!r:.80}, one {type(default).__name__} that all jobs of a "
            f"worker would share; write {name}=None and make it in the function"
        ) from None


def _require_long_secret(where: str, name: str, annotation: Any, default: object) -> None:
    """Refuse a default that is shorter than values of the secret may be. An empty one means that there is no secret."""
    if default is None or default in ("", b""):
        return
    for secret in _secrets(annotation):
        try:
            secret.require_long(default)
        except ValueError as error:
            raise UsageError(
                f"{where}: the default of {name!r} is shorter than the secret may be: {error}; write {name}=None, or "
                "a smaller min_length"
            ) from None


def _secrets(annotation: Any) -> Iterator[Secret]:
    """Yield the marks of secrets in an annotation, at any depth."""
    for part in typing.get_args(annotation):
        if isinstance(part, Secret):
            yield part
        else:
            yield from _secrets(part)


def of_mapping(where: str, params: Mapping[str, Any]) -> Signature:
    """Return the signature of a program, given as name to type. A parameter that may be None may also be left out.
    Raises UsageError."""
    if not isinstance(params, Mapping):
        raise UsageError(f'{where}: params must map names to types, for example params={{"path": Path}}')
    for name in params:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise UsageError(f"{where}: {name!r:.80} cannot name a parameter; use printable text")
    return Signature(
        fields={n: DeclaredParameter(annotation=a, required=not _may_be_none(a)) for n, a in params.items()}
    )


def merge_signatures(type_name: str, stages: Mapping[str, Signature]) -> dict[str, DeclaredParameter]:
    """Return the parameters of a job: those of all its stages.

    A parameter that one stage requires is required. Raises UsageError when two stages give one parameter different
    types."""
    merged: dict[str, DeclaredParameter] = {}
    owner: dict[str, str] = {}
    for stage, signature in stages.items():
        for name, new in signature.fields.items():
            old = merged.get(name)
            if old is None or old.annotation is Any:
                owner[name] = stage
            elif new.annotation is not Any and not _mean_the_same(old.annotation, new.annotation):
                raise UsageError(
                    f"job type {type_name!r}: parameter {name!r} is {annotation_text(old.annotation)} in stage "
                    f"{owner[name]!r} but {annotation_text(new.annotation)} in stage {stage!r}; "
                    f"annotate both alike, best with one name (such as Size = Annotated[…]), or rename one"
                )
            annotation = new.annotation if old is None or old.annotation is Any else old.annotation
            required = new.required or (old is not None and old.required)
            default = new.default if old is None or old.default == new.default else None
            merged[name] = DeclaredParameter(annotation=annotation, required=required, default=default)
    return merged


def _mean_the_same(one: Any, other: Any) -> bool:
    """Return whether two annotations are equal, at any depth. What ``pydantic.Field`` returns only equals itself, so
    the attributes of such objects are compared."""
    if one == other:
        return True
    from pydantic.fields import FieldInfo  # here, because most applications never come this far

    if type(one) is type(other) is FieldInfo:
        return all(getattr(one, name, None) == getattr(other, name, None) for name in FieldInfo.__slots__)
    origin, parts = typing.get_origin(one), (typing.get_args(one), typing.get_args(other))
    if (
        origin in (None, typing.Literal)
        or origin is not typing.get_origin(other)
        or len(parts[0]) != len(parts[1])
    ):
        return False
    return all(map(_mean_the_same, *parts))


def is_plain(annotation: Any) -> bool:
    """Return whether every valid value is the same in Python and in JSON, so that no conversion is needed."""
    if annotation in _PLAIN:
        return True
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType, list):
        return all(is_plain(arg) for arg in args)
    if origin is dict:
        return args[0] is str and is_plain(args[1])
    if origin is typing.Literal:
        return all(type(arg) in (str, int, bool, type(None)) for arg in args)
    return False


_PLAIN: tuple[Any, ...] = (str, int, float, bool, None, type(None), Any, list, dict)


def annotation_text(annotation: Any) -> str:
    """Return an annotation as text, about as its author wrote it."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).removeprefix("typing.")


def _hints(where: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function by parameter. Raises UsageError when one names something that is
    not defined."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise UsageError(
            f"the annotations of {where} cannot be read: {error}; define or import what they name "
            f"at the top of the module"
        ) from error


def _may_be_none(annotation: Any) -> bool:
    """Return whether None is a value of an annotation, at any depth of unions, literals and ``Annotated``."""
    if annotation is None or annotation is type(None):
        return True
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _may_be_none(args[0])
    return origin in (typing.Union, types.UnionType, typing.Literal) and any(map(_may_be_none, args))
