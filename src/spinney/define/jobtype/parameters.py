"""The parameters of a job type: checked and converted to JSON at submission, converted back for each stage.

Many jobs are checked together as a list, so that a submission of a hundred thousand costs a microsecond or
two a job. The checks are pydantic's, by the annotations of the stages' functions. Where all values are the
same in Python and in JSON (text, numbers, lists of them) nothing is converted in either direction."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from enum import Enum
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from math import isfinite
from pathlib import Path, PurePath
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import orjson
import typing_extensions as te
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, SchemaError

from spinney.define.jobtype.json_schema import SchemaGenerator
from spinney.define.jobtype.signature import DeclaredParameter, Signature, annotation_text, is_plain
from spinney.define.params.environment import check_variables
from spinney.define.params.redaction import has_secrets, holds_secret
from spinney.define.params.validation_errors import (
    WHOLE,
    Problem,
    ProblemKind,
    check_locks,
    sentences,
    validation_error,
)
from spinney.define.params.values import NOT_FINITE, not_finite, revealed
from spinney.model.attempts.signals import Fail
from spinney.model.errors import BadParameters, UsageError
from spinney.model.values import lock_names
from spinney.model.values.texts import plain_message

Reader = Callable[[str], dict[str, Any]]
"""Turns a job's parameters as JSON text into keyword arguments."""

_NO_JSON = (TypeError, UnicodeDecodeError, PydanticSerializationError)
"""The exceptions for a value that JSON cannot represent."""
_UNUSABLE = (SchemaError, AttributeError, TypeError)
"""The exceptions of pydantic for annotations whose parts do not go together, besides its errors for a user."""
_DEFAULT_MAX = 200
_NO_INSTANCES = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
"""Have orjson refuse what is not JSON already, instead of converting it."""
_CHUNK = 1000
"""How many rows are checked together: an invalid one is reported by its number, and memory stays bounded."""


class Parameters:
    """The parameters of the jobs of one type. Making it raises UsageError for a lock that is named by a
    parameter which does not exist or is a secret, and ``schema`` for an annotation without JSON form."""

    def __init__(
        self,
        type_name: str,
        fields: Mapping[str, DeclaredParameter],
        *,
        anything: bool = False,
        program: bool = False,
        lock_templates: Iterable[str] = (),
        as_stored: Collection[str] = (),
    ) -> None:
        """``anything``: jobs may have parameters beside ``fields``. ``program``: a program gets them. ``as_stored``:
        those that no function takes, but programs and external workers, who get them in the form in which they are
        stored."""
        self._type_name, self._as_stored = type_name, as_stored
        self._by_environment = anything and program
        self._locks = tuple(dict.fromkeys(lock_templates))
        self._anything = anything
        named = {field for template in self._locks for field in lock_names.fields(template)}
        self._fields = {
            # A job without the parameter in the name of its lock could not take the lock.
            name: DeclaredParameter(
                annotation=f.annotation, required=f.required or name in named, default=f.default
            )
            for name, f in fields.items()
        }
        if not anything:
            _require_known(type_name, named, self._fields)
        _require_no_secret(type_name, named, self._fields)
        self._plain = all(is_plain(_path_as(str, f.annotation)) for f in self._fields.values())

    @cached_property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema that nodes register; empty when any parameters are allowed."""
        if self._anything and not self._fields:
            return {}
        schema = self._row.json_schema(schema_generator=SchemaGenerator)
        schema.pop("title", None)
        for name, prop in schema.get("properties", {}).items():
            prop.pop("title", None)
            field = self._fields[name]
            default = field.default.value if isinstance(field.default, Enum) else field.default
            if not field.required and _is_shown(default) and not holds_secret(schema, prop):
                prop["default"] = default
        return schema

    def text(self, params: Mapping[str, Any]) -> str:
        """Return one job's parameters as JSON text. Raises BadParameters."""
        return self._texts([params], None)[0]

    def texts(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return many jobs' parameters as JSON texts. Raises BadParameters, with the row's number if there are
        several."""
        texts: list[str] = []
        rows = iter(rows)
        while chunk := list(islice(rows, _CHUNK)):
            texts += self._texts(chunk, len(texts) + 1 if texts or len(chunk) > 1 else None)
        return texts

    @cached_property
    def _row(self) -> TypeAdapter[Any]:
        """Return the validator of one job's parameters; paths are text in it."""
        fields = {
            name: DeclaredParameter(annotation=_path_as(_PATH_TEXT, f.annotation), required=f.required)
            for name, f in self._fields.items()
        }
        return adapter(f"job type {self._type_name!r}", fields, "allow" if self._anything else "forbid")

    @cached_property
    def _reader(self) -> TypeAdapter[Any]:
        """Return the validator by which functions read one job's parameters."""
        fields = {name: f for name, f in self._fields.items() if name not in self._as_stored}
        return adapter(f"job type {self._type_name!r}", fields, "ignore")

    @cached_property
    def _rows(self) -> TypeAdapter[Any]:
        """Return the validator of a list of jobs' parameters."""
        return TypeAdapter(list[self._row._type])  # type: ignore[name-defined]

    @cached_property
    def _stored_rows(self) -> TypeAdapter[Any]:
        """Return the validator of a list of jobs' parameters as they are stored. A dataclass is stored with the fields
        that it sets itself, which it does not take."""
        row = adapter(f"job type {self._type_name!r}", self._fields, "ignore")
        return TypeAdapter(list[row._type])  # type: ignore[name-defined]

    def _texts(self, rows: list[Any], first: int | None) -> list[str]:
        """Check some rows together and return them as JSON texts. ``first``: the number of the first row in
        its list, for messages; None: there is only one. Raises BadParameters."""
        try:
            valid = self._rows.validate_python(rows)
        except ValidationError as error:
            # A ValidationError quotes the values.
            raise self._refusal(error, rows, first) from (None if self._secret else error)
        try:
            plain = valid if self._plain else self._readable(valid, rows, first)
            if self._by_environment:
                for row in plain:
                    check_variables(self._type_name, row)
            if self._locks:
                for row in plain:
                    check_locks(self._type_name, self._locks, row)
            dumps = orjson.dumps
            texts = [dumps(row).decode() for row in plain]
        except ValidationError as error:
            raise self._refusal(error, rows, first) from (None if self._secret else error)
        except _NO_JSON as error:
            raise self._no_json(rows, first) or error from (None if self._secret else error)
        for i, text in enumerate(texts):
            # In dicts, lists and models, where no annotation forbids them, NaN and infinity would become null.
            if "null" in text and (name := not_finite(valid[i])) is not None:
                problem = Problem(ProblemKind.WRONG, name, rows[i][name], NOT_FINITE)
                raise validation_error(self._type_name, self.schema, [problem], _where(first, i))
        return texts

    def _readable(self, valid: list[Any], rows: list[Any], first: int | None) -> Any:
        """Return valid rows as JSON has them; ``rows`` are the same as they came. Raises ValidationError for rows that
        no stage could read: pydantic takes an instance of a dataclass or a model as it is, whatever its fields
        hold. Raises UsageError where an annotation does not read what it writes."""
        plain = self._dumped(self._rows, valid)
        if not _is_json(rows):
            self._stored_rows.validate_json(orjson.dumps(plain))
            return plain
        try:
            self._reader.validate_json(orjson.dumps(plain[0]))  # the others are written alike
        except Exception as error:  # noqa: BLE001 - a validator of the application's own may raise anything
            if (faulty := not_finite(rows[0])) is not None:  # a model writes null
                problem = Problem(ProblemKind.WRONG, faulty, rows[0][faulty], NOT_FINITE)
                raise validation_error(self._type_name, self.schema, [problem], _where(first, 0)) from None
            of = "a parameter"
            if isinstance(error, ValidationError):
                of = f"parameter {error.errors()[0]['loc'][0]!r}"
            raise UsageError(
                f"job type {self._type_name!r}: what would be stored of {of} is not what its annotation reads; let "
                f"its aliases and serializers write what it reads, its validators take what they return, and exclude "
                f"nothing"
            ) from (None if self._secret else error)
        return plain

    def _dumped(self, by: TypeAdapter[Any], valid: Any) -> Any:
        """Return valid values as JSON has them, with the real values of secrets: ``by`` is the validator that
        made them."""
        dump = partial(by.dump_python, valid, by_alias=self._by_alias, round_trip=True, warnings="none")
        json_value = dump(mode="json")
        return revealed(dump(mode="python"), json_value) if self._secret else json_value

    @cached_property
    def _by_alias(self) -> bool:
        """Whether the stage reads a model by aliases. One that is only for serialization is not among them."""
        return self._row.json_schema() != self._row.json_schema(by_alias=False)

    @cached_property
    def _secret(self) -> bool:
        """Return whether any parameter may hold a secret. Then no error may have the validator's own as its
        cause, which quotes values."""
        return not self._plain and has_secrets(self.schema)

    def _refusal(self, error: ValidationError, rows: list[Any], first: int | None) -> BadParameters:
        """Return the refusal of the first row that the validator did not take."""
        errors = error.errors(include_url=False, include_context=False)
        row = int(errors[0]["loc"][0])
        problems = (_problem(e, e["loc"][1:], rows[row]) for e in errors if e["loc"][0] == row)
        return validation_error(self._type_name, self.schema, problems, _where(first, row))

    def _no_json(self, rows: list[Any], first: int | None) -> BadParameters | None:
        """Return the refusal of the first parameter that is valid, but that JSON cannot represent."""
        for i, row in enumerate(rows):
            for name, value in self._row.validate_python(row).items():
                try:
                    param = {name: value}
                    orjson.dumps(param if self._plain else self._dumped(self._row, param))
                except _NO_JSON as error:
                    problem = Problem(ProblemKind.WRONG, name, value, str(error))
                    return validation_error(self._type_name, self.schema, [problem], _where(first, i))
        return None


class _Same:
    """An annotation as a key that only equals itself, because unions are equal in any order, but are tried in their
    own."""

    __slots__ = ("annotation",)

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.annotation is self.annotation

    def __hash__(self) -> int:
        return id(self.annotation)


def adapter(where: str, fields: Mapping[str, DeclaredParameter], extra: str) -> TypeAdapter[Any]:
    """Return the validator of a dict with these fields. Raises UsageError for an annotation without JSON form."""
    try:
        validator, named = _adapter(
            tuple((n, _Same(f.annotation), f.required) for n, f in fields.items()), extra
        )
    except UsageError as error:
        raise UsageError(f"{where}: {_without_form(fields)}: {error}") from error
    except PydanticUserError as error:
        if error.code == "typed-dict-version":
            raise UsageError(
                f"{where}: {_without_form(fields)} cannot be read; import TypedDict from typing_extensions, not from "
                f"typing, for Python before 3.12"
            ) from error
        raise UsageError(
            f"{where}: {_without_form(fields)} cannot be a parameter, for it has no JSON form; take text, numbers, "
            f"lists, dicts, paths, dates, dataclasses or pydantic models"
        ) from error
    except _UNUSABLE as error:
        # An error of a type's own schema may have no text.
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1].strip()
        raise UsageError(
            f"{where}: the annotation of {_without_form(fields)} cannot be used: {reason}; correct it "
            "(the first part of Annotated[…] is the type)"
        ) from error
    if aliases := named - fields.keys():
        raise UsageError(
            f"{where}: a parameter has the alias {min(aliases)!r}, and parameters are stored and passed by their own "
            f"names; rename the parameter, and leave out the alias"
        )
    return validator


@lru_cache
def _adapter(fields: tuple[tuple[str, _Same, bool], ...], extra: str) -> tuple[TypeAdapter[Any], Set[str]]:
    """Return the validator of a dict with these fields, and the names that its schema has for them.

    It is cached because many stages of an application have the same parameters, and a schema takes longer to build than
    most modules to import."""
    shape = te.TypedDict(  # type: ignore[misc]
        "Parameters",
        {n: same.annotation if required else te.NotRequired[same.annotation] for n, same, required in fields},
    )
    shape.__pydantic_config__ = ConfigDict(extra=extra, allow_inf_nan=False)  # type: ignore[attr-defined,typeddict-item]
    validator: TypeAdapter[Any] = TypeAdapter(shape)
    return validator, validator.json_schema(schema_generator=SchemaGenerator).get("properties", {}).keys()


def reader(where: str, signature: Signature) -> Reader:
    """Return the function that turns a job's JSON text into the keyword arguments of one stage: it converts values by
    the annotations, and leaves out what the stage does not take. It raises Fail, and the job is not tried again, for
    parameters that do not fit: the type has changed since the job was submitted."""
    validator = adapter(where, signature.fields, "allow" if signature.extra else "ignore")
    convert = validator.validate_json
    schema_of = cache(partial(validator.json_schema, schema_generator=SchemaGenerator))

    def converted(text: str) -> dict[str, Any]:
        try:
            converted_params: dict[str, Any] = convert(text)
        except ValidationError as error:
            schema, row = schema_of(), orjson.loads(text)
            errors = error.errors(include_url=False, include_context=False)
            # Without the values, which would make a cause of failures of each.
            problems = (_problem(fault, fault["loc"], row) for fault in errors)
            faults = sentences(schema, problems, quotes=False)
            cause = None if has_secrets(schema) else error  # which quotes the values
            raise Fail(f"the parameters do not fit {where}: {faults}", retryable=False) from cause
        return converted_params

    return converted


def _path_as(instead: Any, annotation: Any) -> Any:
    """Return the annotation with ``Path`` replaced: a submission only needs text, and a conversion to paths and back
    would cost more than all the rest."""
    if annotation is Path:
        return instead
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list and args:
        return list[_path_as(instead, args[0])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(_path_as(instead, arg) for arg in args)]  # noqa: UP007  built at run time
    return annotation


def _path_text(value: object) -> object:
    """Return a path as text, and anything else as it is, for the validator to judge."""
    return str(value) if isinstance(value, PurePath) else value


_PATH_TEXT = Annotated[str, BeforeValidator(_path_text), WithJsonSchema({"type": "string", "format": "path"})]


def _require_known(type_name: str, named: Iterable[str], fields: Mapping[str, DeclaredParameter]) -> None:
    """Raise UsageError for a lock whose name has a field that is no parameter."""
    for name in named:
        if name not in fields:
            raise UsageError(
                f"job type {type_name!r} has a lock named by {{{name}}}, but no parameter {name!r}; "
                f"add it to a stage or correct the lock"
            )


def _require_no_secret(type_name: str, named: Iterable[str], fields: Mapping[str, DeclaredParameter]) -> None:
    """Raise UsageError for a lock that is named by a secret."""
    for name in named:
        annotation = fields[name].annotation if name in fields else str
        if not is_plain(annotation) and has_secrets(
            adapter(type_name, {name: fields[name]}, "forbid").json_schema()
        ):
            raise UsageError(
                f"job type {type_name!r} has a lock named by the secret parameter {name!r}, and names of locks are "
                f"shown; name the lock by another parameter"
            )


def _without_form(fields: Mapping[str, DeclaredParameter]) -> str:
    """Return which parameter has no JSON form, with its annotation."""
    for name, field in fields.items():
        try:
            TypeAdapter(field.annotation).json_schema(schema_generator=SchemaGenerator)
        except (PydanticUserError, UsageError, *_UNUSABLE):
            return f"{name!r} ({annotation_text(field.annotation)})"
    return "one of them"


def _is_shown(default: Any) -> bool:
    """Return whether a default belongs in the schema, where forms and subjects of jobs find it: a plain value that JSON
    has, and not a long text."""
    if type(default) not in (str, int, float, bool):
        return False
    if isinstance(default, float) and not isfinite(default):
        return False
    try:
        return len(orjson.dumps(default)) <= _DEFAULT_MAX
    except TypeError:  # a whole number of more than 64 bits, or half of a surrogate pair
        return False


def _is_json(rows: list[Any]) -> bool:
    """Return whether rows consist of nothing but dicts, lists, text, numbers, booleans and None."""
    try:
        orjson.dumps(rows, option=_NO_INSTANCES)
    except TypeError:
        return False
    return True


def _where(first: int | None, row: int) -> str:
    return "" if first is None else f", job {first + row} of the list"


def _problem(error: Any, path: Sequence[int | str], row: Any) -> Problem:
    """Return what one error of the validator says, in terms of the parameter: unknown, missing or wrong. ``path`` leads
    to its place in the parameters, ``row``."""
    if not path:
        kind = type(error["input"]).__name__
        return Problem(
            ProblemKind.WRONG, WHOLE, detail=f"each job needs a dict of them, and this is a {kind}"
        )
    name, message = str(path[0]), plain_message(error["msg"])
    if len(path) == 1 and error["type"] == "extra_forbidden":
        return Problem(ProblemKind.UNKNOWN, name)
    if len(path) == 1 and error["type"] == "missing":
        return Problem(ProblemKind.MISSING, name)
    is_instance = len(path) > 1 and hasattr(row[path[0]], "__dict__")  # of a dataclass or a model
    if not isinstance(row[path[0]], list | dict) and not is_instance:
        # The rest of the path is then no place inside the value, but one of the alternatives that were tried.
        obvious = error["type"].endswith(("_type", "_parsing", "_error")) or len(path) > 1
        return Problem(ProblemKind.WRONG, name, row[path[0]], "" if obvious else message)
    return Problem(ProblemKind.WRONG, ".".join(str(part) for part in path), error["input"], message)
