"""Secrets among parameters: what a type's schema declares ``writeOnly``, hidden wherever parameters are shown.

A parameter annotated ``pydantic.SecretStr`` gets a schema with ``writeOnly: true``, and so does anything annotated
``Annotated[…, Field(json_schema_extra={"writeOnly": True})]``. What is stored is the real value, for the stage needs
it; so all that is shown passes through here. In doubt (alternatives, patterns) more is hidden rather than less.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.model.errors import BadParameters
from spinney.model.values.unreadable import Unreadable

MASK = "••••••"
"""In place of a secret, whatever its length."""
MIN_SECRET_LENGTH = 6
"""Characters of a secret that is looked for in other texts: shorter ones stand in any text by chance."""

Schema = Mapping[str, Any]
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_CONDITIONAL = ("then", "else")


def has_secrets(schema: Schema) -> bool:
    """Whether a schema declares any secret."""
    return any(node.get("writeOnly") is True for node in _nodes(schema))


def holds_secret(schema: Schema, part: Schema) -> bool:
    """Whether what a part of the schema describes may have a secret in it."""
    found: list[Schema] = []
    todo: list[Any] = [part]
    while todo:
        for node in _nodes(todo.pop()):
            if node.get("writeOnly") is True:
                return True
            if "$ref" in node and not any(node is seen for seen in found):
                found.append(node)
                todo.append(_target(schema, str(node["$ref"])))
    return False


def names_of(schema: Schema) -> frozenset[str]:
    """The names that secrets have in it, wherever they stand."""
    return frozenset(
        name
        for node in _nodes(schema)
        for name, prop in _properties(node).items()
        if any(found.get("writeOnly") is True for found in _unfolded(schema, prop))
    )


def mask(schema: Schema, params: Any) -> Any:
    """``params`` with ``MASK`` in place of what is secret; nested objects and lists, too. Null stays null."""
    return _Walk(schema).shown(schema, params)


def secrets_in(schema: Schema, params: Any) -> list[str]:
    """The texts of all secrets in these parameters."""
    walk = _Walk(schema)
    walk.shown(schema, params)
    return walk.hidden


def require_unmasked(type_name: str, schema: Schema, params: Any) -> None:
    """Raise BadParameters when a secret is the mask itself: it was copied from where parameters are shown."""
    if MASK in secrets_in(schema, params):
        raise BadParameters(
            f"job type {type_name!r}: a secret parameter is {MASK!r}, as secrets are shown, and not its value. "
            f"Nothing was submitted; give the value itself and submit again"
        )


@dataclass(frozen=True, slots=True)
class Redactor:
    """Hides the secrets of one job in all that is shown of it."""

    names: frozenset[str] = frozenset()
    """What bears one of these names is hidden."""
    texts: tuple[str, ...] = ()
    """These are hidden wherever they stand; the longest first."""
    hides_all: bool = False
    """Everything is hidden: what the secrets are cannot be read."""

    @classmethod
    def for_params(cls, schema: Schema, params: Any) -> "Redactor":
        """For a job of a type with this schema and these parameters."""
        if isinstance(params, Unreadable):
            return REDACT_ALL if has_secrets(schema) else REDACT_NOTHING
        forms = {
            form
            for text in secrets_in(schema, params)
            if len(text) >= MIN_SECRET_LENGTH
            for form in _forms(text)
        }
        return cls(names_of(schema), tuple(sorted(forms, key=lambda form: (-len(form), form))))

    def text(self, text: str) -> str:
        """A text without the secrets."""
        if self.hides_all:
            return f"{MASK} (hidden: the job's parameters cannot be read, and with them what is secret)"
        for secret in self.texts:
            text = text.replace(secret, MASK)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value without them: by name, and within each text."""
        if self.hides_all:
            return {} if isinstance(value, Mapping) else self.text("")
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): MASK if name in self.names and part is not None else self.value(part)
                for name, part in value.items()
            }
        return [self.value(part) for part in value] if isinstance(value, list | tuple) else value

    def piece(self, read: Callable[[int, int], bytes], start: int, length: int) -> bytes:
        """A piece of a file with ``*`` in place of each byte of a secret, so that places in it stay what they are.

        ``read(start, length)``: the file's bytes. A little more is read at both ends: a secret may lie across them.
        """
        if self.hides_all:
            return b"*" * len(read(start, length))
        if not self.texts or length <= 0:
            return read(start, length)
        more = max(len(text.encode()) for text in self.texts) - 1
        first = max(0, start - more)
        found = read(first, start - first + length + more)
        for text in self.texts:
            secret = text.encode()
            found = found.replace(secret, b"*" * len(secret))
        return found[start - first : start - first + length]


REDACT_NOTHING = Redactor()
"""Hides nothing."""
REDACT_ALL = Redactor(hides_all=True)
"""Hides everything."""


class _Walk:
    """Parameters and their schema, walked through together."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.hidden: list[str] = []

    def shown(self, node: Schema, value: Any) -> Any:
        if value is None:
            return None
        unfolded = _unfolded(self._root, node)
        if any(n.get("writeOnly") is True for n in unfolded):
            self.hidden += _texts(value)
            return MASK
        if isinstance(value, Mapping):
            return {name: self._through(_of_property(unfolded, name), part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._through(_of_item(unfolded, i), part) for i, part in enumerate(value)]
        return value

    def _through(self, nodes: Sequence[Schema], value: Any) -> Any:
        """What all that is said of a value leaves of it."""
        for node in nodes:
            value = self.shown(node, value)
        return value


def _unfolded(root: Schema, node: Schema) -> list[Schema]:
    """A node with all that it refers to and all alternatives that it names, each once."""
    found: list[Schema] = []
    todo: list[Any] = [node]
    while todo:
        one = todo.pop()
        if not isinstance(one, Mapping) or any(one is other for other in found):
            continue
        found.append(one)
        if "$ref" in one:
            todo.append(_target(root, str(one["$ref"])))
        for key in _ALTERNATIVES:
            todo += one.get(key, ())
        todo += [one[key] for key in _CONDITIONAL if key in one]
    return found


def _target(root: Schema, reference: str) -> Any:
    """What ``#/$defs/Name`` leads to; nothing for what lies elsewhere."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _of_property(nodes: Sequence[Schema], name: str) -> list[Schema]:
    found: list[Schema] = []
    for node in nodes:
        properties = _properties(node)
        patterns = node.get("patternProperties")
        if name in properties:
            found.append(properties[name])
        if isinstance(patterns, Mapping):
            found += patterns.values()
        if name not in properties and isinstance(node.get("additionalProperties"), Mapping):
            found.append(node["additionalProperties"])
    return found


def _of_item(nodes: Sequence[Schema], index: int) -> list[Schema]:
    found: list[Schema] = []
    for node in nodes:
        first = node.get("prefixItems", ())
        if index < len(first):
            found.append(first[index])
        elif isinstance(node.get("items"), Mapping):
            found.append(node["items"])
    return found


def _properties(node: Schema) -> Schema:
    found = node.get("properties")
    return found if isinstance(found, Mapping) else {}


def _nodes(value: Any) -> Iterator[Schema]:
    """All objects of a schema, whatever they say."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping):
            yield one
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one


def _texts(value: Any) -> list[str]:
    """All texts and numbers in a value."""
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _texts(part)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _forms(text: str) -> set[str]:
    """How a text stands in others: as it is, in JSON, in what Python prints."""
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]}
