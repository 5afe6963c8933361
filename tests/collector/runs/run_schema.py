"""The JSON Schemas of the files of runs and sweeps, derived from the classes of `run` and `sweep`."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from collector.runs.parameter_sweep import SCHEMA_VERSION as SWEEP_SCHEMA_VERSION
from collector.runs.parameter_sweep import Sweep
from collector.runs.run import Run
from collector.runs.run_file import SCHEMA_VERSION

_SIMPLE = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}


def run_schema() -> dict[str, Any]:
    return _file_schema(Run, "casstat run", SCHEMA_VERSION)


def sweep_schema() -> dict[str, Any]:
    return _file_schema(Sweep, "casstat sweep", SWEEP_SCHEMA_VERSION)


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as a file's content."""
    return json.dumps(schema, indent=2) + "\n"


def _file_schema(kind: type, title: str, version: int) -> dict[str, Any]:
    """Return a schema (draft 2020-12). Additional fields are allowed, because later versions may add fields."""
    schema = _schema_of(kind)
    schema["properties"] = {"schema_version": {"const": version}, **schema["properties"]}
    schema["required"] = ["schema_version", *schema["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _schema_of(kind: Any) -> dict[str, Any]:
    """Return the schema of a type that occurs in a run."""
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {
            "type": "object",
            "properties": {field.name: _schema_of(hints[field.name]) for field in fields(kind)},
            "required": [
                field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING
            ],
        }
    arguments = get_args(kind)
    if get_origin(kind) is UnionType:
        return {"anyOf": [_schema_of(argument) for argument in arguments]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    raise TypeError(kind)
