"""The JSON schemas of parameters, as pydantic makes them, with what it leaves out."""

from collections.abc import Mapping
from enum import Flag
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import DataclassField, DecimalSchema, EnumSchema, WithDefaultSchema

from spinney.define.params.secrets import is_mark
from spinney.define.params.validation_errors import ALLOW_INF_NAN, DECIMAL_DIGITS
from spinney.model.errors import UsageError


class SchemaGenerator(GenerateJsonSchema):
    """Generates pydantic's schemas, with the bounds of a ``Decimal`` also for its text, which pydantic takes for any
    text, and with the numbers of its digits, which JSON schema has no words for."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of a field with a default. Raises UsageError for the mark of a secret in its place: in a
        model or a dataclass it marks nothing, either."""
        if is_mark(schema.get("default")):
            raise UsageError(
                "Secret() is the default of a field; write Annotated[…, Secret()], with the type of the field in place "
                "of the dots"
            )
        return super().default_schema(schema)

    def enum_schema(self, schema: EnumSchema) -> JsonSchemaValue:
        """Return the schema of an enum. Values of a ``Flag`` are its members and their combinations; an ``IntFlag`` has
        all whole numbers."""
        generated, kind = super().enum_schema(schema), schema["cls"]
        if issubclass(kind, Flag):
            del generated["enum"]
            generated["type"] = "integer"
            if not issubclass(kind, int):
                generated |= {"minimum": 0, "maximum": sum(member.value for member in kind)}
        return generated

    def dataclass_field_schema(self, schema: DataclassField) -> JsonSchemaValue:
        """Return the schema of a field of a dataclass. Raises UsageError for an InitVar, whose value no instance has:
        the stage would get the default in its place."""
        if schema.get("init_only"):
            raise UsageError(
                f"{schema['name']!r} is an InitVar, which a dataclass does not keep, so that it could not be stored; "
                "make it a field"
            )
        return super().dataclass_field_schema(schema)

    def decimal_schema(self, schema: DecimalSchema) -> JsonSchemaValue:
        """Return the schema of a ``Decimal``."""
        generated = super().decimal_schema(schema)
        if "anyOf" in generated:
            number, text = generated["anyOf"]
            limits: Mapping[str, Any] = schema
            digits = {key: limits[field] for key, field in DECIMAL_DIGITS.items() if field in limits}
            if digits or "multipleOf" in number:  # what JSON schema does not say, or not of fractions
                number |= {"format": "decimal", **digits}
            text |= {**number, "type": "string", "format": "decimal"}
            if schema.get("allow_inf_nan"):
                text[ALLOW_INF_NAN] = True
        return generated
