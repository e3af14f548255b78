"""Redact secrets among parameters: values that a type's schema declares ``writeOnly`` are hidden wherever parameters
are shown.

A parameter annotated ``pydantic.SecretStr`` gets a schema with ``writeOnly: true``, and so does anything annotated
``Annotated[…, Field(json_schema_extra={"writeOnly": True})]``. The real value is stored, because the stage needs it; so
everything that is shown passes through this module. In doubt (alternatives, patterns) it hides more rather than less.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.model.errors import BadParameters
from spinney.model.types import TypeSpec
from spinney.model.values.unreadable import Unreadable

REDACTED = "••••••"
"""The text in place of a secret of any length."""
MIN_SECRET_LENGTH = 6
"""The least length of a secret that is searched in other texts: shorter ones occur in any text by chance."""
MIN_LINE_LENGTH = 16
"""The least length of a line of a secret that is searched by itself, if it has no blanks: a line of a key's base64 is
longer, and a shorter one, as of a JSON file, may occur in any text."""

Schema = Mapping[str, Any]
SecretPath = tuple[str | None, ...]
"""The names of properties that lead to a secret; None: any item of a list, or any property."""
SecretPaths = tuple[SecretPath, ...]
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_CONDITIONAL = ("then", "else")


def has_secrets(schema: Schema) -> bool:
    """Return whether a schema declares any secret."""
    return any(node.get("writeOnly") is True for node in _nodes(schema))


def holds_secret(schema: Schema, part: Schema) -> bool:
    """Return whether a value that a part of the schema describes may have a secret in it."""
    references: list[Schema] = []
    todo: list[Any] = [part]
    while todo:
        for node in _nodes(todo.pop()):
            if node.get("writeOnly") is True:
                return True
            if "$ref" in node and not any(node is known_reference for known_reference in references):
                references.append(node)
                todo.append(_target(schema, str(node["$ref"])))
    return False


def secret_paths(schema: Schema) -> SecretPaths:
    """Return where the schema has secrets. A value that is described by itself again is secret as a whole, if there is
    a secret in it."""
    paths: set[SecretPath] = set()
    _add_paths(schema, schema, (), (), paths)
    return tuple(sorted(paths, key=repr))


def redaction_schema(spec: TypeSpec) -> Schema:
    """Return the schema by which a type's parameters are redacted: what it declares secret, and what its earlier
    declarations did."""
    if not spec.former_secrets:
        return spec.schema
    former: dict[str, Any] = {}
    for path in spec.former_secrets:
        node = former
        for step in path:
            if step is None:  # an item of a list, or any value of an object
                child = node.setdefault("items", {})
                node.setdefault("patternProperties", {})[""] = child
            else:
                child = node.setdefault("properties", {}).setdefault(step, {})
            node = child
        node["writeOnly"] = True
    return {**spec.schema, "allOf": [*spec.schema.get("allOf", ()), former]}


def names_of(schema: Schema) -> frozenset[str]:
    """Return the names of secrets at all levels of the schema."""
    return frozenset(
        name
        for node in _nodes(schema)
        for name, prop in _properties(node).items()
        if any(unfolded.get("writeOnly") is True for unfolded in alternatives_of(schema, prop))
    )


def redact_params(schema: Schema, params: Any) -> Any:
    """Return ``params`` with ``REDACTED`` in place of secrets, also in nested objects and lists; they are not
    changed. Null stays null, so that it can be seen whether there is a secret."""
    return _Walk(schema).shown(schema, params)


def secrets_in(schema: Schema, params: Any) -> list[str]:
    """Return the texts of all secrets in these parameters: for a secret that is an object or a list, the texts of its
    parts."""
    walk = _Walk(schema)
    walk.shown(schema, params)
    return walk.hidden


def require_not_redacted(type_name: str, schema: Schema, params: Any) -> None:
    """Raise BadParameters when a secret is ``REDACTED`` itself, because it was copied from shown parameters."""
    if REDACTED in secrets_in(schema, params):
        raise BadParameters(
            f"job type {type_name!r}: a secret parameter is {REDACTED!r}, as secrets are shown, and not its value. "
            f"Nothing was submitted; give the value itself and submit again"
        )


@dataclass(frozen=True, slots=True)
class Redactor:
    """Hides the secrets of one job in everything that is shown of it: messages, results, data, output. A
    secret of ``MIN_SECRET_LENGTH`` characters or more is searched as it is, in JSON and as Python prints it;
    one that was changed otherwise (encoded, cut, split) is not found."""

    names: frozenset[str] = frozenset()
    """Values with one of these names are hidden."""
    texts: tuple[str, ...] = ()
    """Texts that are hidden wherever they occur, the longest first."""
    hides_all: bool = False
    """Whether everything is hidden, because the secrets cannot be read."""

    @classmethod
    def for_params(cls, schema: Schema, params: Any) -> "Redactor":
        """Make the redactor of a job of a type with this schema and these parameters."""
        if isinstance(params, Unreadable):
            return REDACT_ALL if has_secrets(schema) else REDACT_NOTHING
        forms = {
            form
            for secret in secrets_in(schema, params)
            for text in (secret, *_lines(secret))
            if len(text) >= MIN_SECRET_LENGTH
            for form in _forms(text)
        }
        return cls(names_of(schema), tuple(sorted(forms, key=lambda form: (-len(form), form))))

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        if self.hides_all:
            return f"{REDACTED} (hidden: the job's parameters cannot be read, and with them what is secret)"
        for secret in self.texts:
            text = text.replace(secret, REDACTED)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without the secrets: values are hidden by name, and secrets within each text."""
        if self.hides_all:
            return {} if isinstance(value, Mapping) else self.text("")
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): REDACTED
                if name in self.names and part is not None
                else self.value(part)
                for name, part in value.items()
            }
        return [self.value(part) for part in value] if isinstance(value, list | tuple) else value

    @property
    def overlap_bytes(self) -> int:
        """How many bytes at the end of a piece may be the beginning of a secret that goes on in the next."""
        return max((len(text.encode()) for text in self.texts), default=1) - 1

    def unfinished(self, data: bytes) -> int:
        """Return the length of the longest end of ``data`` that is the beginning of a secret, and not a whole one."""
        longest = 0
        for text in self.texts:
            secret = text.encode()
            end = data[max(0, len(data) - len(secret) + 1) :]
            at = end.find(secret[:1])
            while at >= 0 and not secret.startswith(end[at:]):
                at = end.find(secret[:1], at + 1)
            if at >= 0:
                longest = max(longest, len(end) - at)
        return longest

    def piece(
        self, read: Callable[[int, int], bytes], start: int, length: int, *, grows: bool = False
    ) -> bytes:
        """Return a piece of a file with ``*`` in place of each byte of a secret, so that positions in it stay the same.

        ``read(start, length)`` returns the file's bytes. A little more is read at both ends, because a secret may cross
        them. ``grows``: the file is still written; the end that may be the beginning of a secret is left out."""
        if self.hides_all:
            return b"*" * len(read(start, length))
        if not self.texts or length <= 0:
            return read(start, length)
        more = self.overlap_bytes
        first = max(0, start - more)
        data = read(first, start - first + length + more)
        until = min(start - first + length, len(data) - (self.unfinished(data) if grows else 0))
        for text in self.texts:
            secret = text.encode()
            data = data.replace(secret, b"*" * len(secret))
        return data[start - first : until]


REDACT_NOTHING = Redactor()
"""Hides nothing."""
REDACT_ALL = Redactor(hides_all=True)
"""Hides everything."""


class _Walk:
    """Walks through parameters and their schema together."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.hidden: list[str] = []

    def shown(self, node: Schema, value: Any) -> Any:
        """Return a value as it may be shown, and add its secrets to ``hidden``."""
        if value is None:
            return None
        unfolded = alternatives_of(self._root, node)
        if any(n.get("writeOnly") is True for n in unfolded):
            self.hidden += _texts(value)
            return REDACTED
        if isinstance(value, Mapping):
            return {name: self._through(_of_property(unfolded, name), part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._through(_of_item(unfolded, i), part) for i, part in enumerate(value)]
        return value

    def _through(self, nodes: Sequence[Schema], value: Any) -> Any:
        """Return a value redacted by all of these schema nodes."""
        for node in nodes:
            value = self.shown(node, value)
        return value


def _add_paths(
    root: Schema, node: Any, path: SecretPath, above: tuple[Schema, ...], paths: set[SecretPath]
) -> None:
    """Add the paths of all secrets in a node, to which ``path`` leads through the nodes ``above``."""
    if not holds_secret(root, node):
        return
    unfolded = alternatives_of(root, node)
    repeats = any(n is other for n in unfolded for other in above)
    if repeats or any(n.get("writeOnly") is True for n in unfolded):
        paths.add(path)
        return
    for n in unfolded:
        for name, part in _properties(n).items():
            _add_paths(root, part, (*path, name), (*above, *unfolded), paths)
        patterns = n.get("patternProperties")
        anything = [*(patterns.values() if isinstance(patterns, Mapping) else ()), *n.get("prefixItems", ())]
        for part in (*anything, n.get("additionalProperties"), n.get("items")):
            if isinstance(part, Mapping):
                _add_paths(root, part, (*path, None), (*above, *unfolded), paths)


def alternatives_of(root: Schema, node: Schema) -> list[Schema]:
    """Return a node with all nodes that it refers to and all its alternatives, each once."""
    unfolded: list[Schema] = []
    todo: list[Any] = [node]
    while todo:
        current = todo.pop()
        if not isinstance(current, Mapping) or any(current is other for other in unfolded):
            continue
        unfolded.append(current)
        if "$ref" in current:
            todo.append(_target(root, str(current["$ref"])))
        for key in _ALTERNATIVES:
            todo += current.get(key, ())
        todo += [current[key] for key in _CONDITIONAL if key in current]
    return unfolded


def _target(root: Schema, reference: str) -> Any:
    """Return the target of ``#/$defs/Name``; None for references to other documents."""
    if not reference.startswith("#"):
        return None
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, Mapping) else None
    return target


def _of_property(nodes: Sequence[Schema], name: str) -> list[Schema]:
    nodes_of_value: list[Schema] = []
    for node in nodes:
        properties = _properties(node)
        patterns = node.get("patternProperties")
        if name in properties:
            nodes_of_value.append(properties[name])
        if isinstance(patterns, Mapping):
            nodes_of_value += patterns.values()
        if name not in properties and isinstance(node.get("additionalProperties"), Mapping):
            nodes_of_value.append(node["additionalProperties"])
    return nodes_of_value


def _of_item(nodes: Sequence[Schema], index: int) -> list[Schema]:
    nodes_of_value: list[Schema] = []
    for node in nodes:
        first = node.get("prefixItems", ())
        if index < len(first):
            nodes_of_value.append(first[index])
        elif isinstance(node.get("items"), Mapping):
            nodes_of_value.append(node["items"])
    return nodes_of_value


def _properties(node: Schema) -> Schema:
    properties = node.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _nodes(value: Any) -> Iterator[Schema]:
    """Yield all objects of a schema."""
    todo = [value]
    while todo:
        current = todo.pop()
        if isinstance(current, Mapping):
            yield current
            todo += current.values()
        elif isinstance(current, list | tuple):
            todo += current


def _texts(value: Any) -> list[str]:
    """Return all texts and numbers in a value."""
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _texts(part)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _lines(secret: str) -> list[str]:
    """Return the lines of a secret of several lines (a private key) that can be nothing else: a log or the traceback of
    an exception group sets something before each."""
    lines = [line.strip() for line in secret.splitlines()]
    return (
        [line for line in lines if len(line) >= MIN_LINE_LENGTH and " " not in line] if len(lines) > 1 else []
    )


def _forms(text: str) -> set[str]:
    """Return the forms of a text within others: as it is, in JSON, and as Python prints it."""
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]}
