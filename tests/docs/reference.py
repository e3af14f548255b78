"""Makes the pages of ``docs/reference`` from the code: ``python tests/docs/reference.py`` writes them anew.

What is said of an option is its docstring in the code, so that both are mended at one place.
"""

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from own_commands import own_commands
from spinney import Defer, Fail, Finish, Hold, Job, NotApplicable, Secret, Spinney, Warn, config
from spinney.define.job.data import Data, Relative
from spinney.define.job.options import Options
from spinney.define.jobtype import ConfiguredJob, JobType, Pipeline, SubmittableType, job_types, stage
from spinney.model.types import Backoff, LockSpec, StageSpec, TypeSpec
from spinney.model.values.durations import Duration
from spinney.node.settings_table import NodeTable
from spinney.reports import Outbox, verify
from spinney.testing import Child, Spawned, StageHarness, StageResult, run_stage
from spinney.web.settings import Oidc, ServerSettings

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
_NOTE = "This page is made from the code by `tests/docs/reference.py`, and a test holds the two together.\n"
_SIGNALS = [Fail, Defer, Hold, NotApplicable, Warn, Finish]
_MADE_BY_THE_ENGINE = {
    Pipeline,
    JobType,
    ConfiguredJob,
    SubmittableType,
    Job,
    Data,
    Relative,
    Child,
    StageResult,
    Spawned,
}
_INSIDE = {
    Spinney: {"submit_rows"},
    JobType: {"spec", "parameters", "runner", "takes_handle"},
    SubmittableType: {"texts"},
    StageHarness: {"ask", "cancelled"},
}
"""What only the engine calls."""
_OF_SPEC = {"timeout": "timeout_s", "grace": "grace_s"}
"""Options whose field in the spec has another name, because it has a unit."""

Row = tuple[str, str, str, str]
"""Name, type, default, what it means."""


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    return {"options.md": _options(), "python.md": _python(), "settings.md": _settings()}


def _options() -> str:
    return _page(
        "Options of job types, stages and submissions",
        "What they are for is in [writing an application](../applications.md). A `Duration` is a number "
        'of seconds, a `timedelta`, or text such as `"90s"`, `"1h30m"` or `"7d"`.\n',
        (
            "Of every job type",
            "`app.job`, `app.pipeline`, `app.program`, `app.external`.",
            _typed(job_types.CommonTypeOptions, TypeSpec),
        ),
        ("Of a pipeline besides", "`app.pipeline`.", _typed(job_types.TypeOptions, TypeSpec)),
        (
            "Of every stage",
            "`pipeline.stage`, `pipeline.program`, `pipeline.external`; and of `app.job`, `app.program` and "
            "`app.external`, whose types have one stage.",
            _typed(stage.CommonStageOptions, StageSpec),
        ),
        (
            "Of a stage that is a function besides",
            "`pipeline.stage` and `app.job`.",
            _typed(stage.StageOptions, StageSpec),
        ),
        (
            "Of a program besides",
            "`pipeline.program` and `app.program`.",
            _typed(stage.ProgramOptions, StageSpec),
        ),
        (
            "Of an external stage besides",
            "`pipeline.external` and `app.external`.",
            _typed(stage.ExternalOptions, StageSpec),
        ),
        ("Of a submission", "`kind.options(…)`, in all ways to submit and to spawn.", _dataclass(Options)),
        ("`LockSpec`", "One of `locks`, where a name alone does not say enough.", _dataclass(LockSpec)),
        ("`Backoff`", _first_line(Backoff), _backoff()),
    )


def _python() -> str:
    sections = [
        ("spinney", [Spinney, Pipeline, SubmittableType, JobType, ConfiguredJob, Job, *_SIGNALS, Secret]),
        ("job.data, job.parent, job.root, job.children", [Data, Relative, Child]),
        ("spinney.testing", [run_stage, StageHarness, StageResult, Spawned]),
        ("spinney.reports", [Outbox, verify]),
    ]
    lead = "What applications call. How it is used is in [writing an application](../applications.md).\n"
    parts = ["# The Python API\n", _NOTE, lead]
    for module, members in sections:
        parts += [f"## `{module}`\n", *(_member(each) for each in members)]
    return "\n".join(parts)


def _member(value: Any) -> str:
    if not inspect.isclass(value):
        return f"### `{value.__name__}{_parameters(value)}`\n\n{_docstring(value)}\n"
    makes = "" if value in _MADE_BY_THE_ENGINE else _parameters(value)
    parts = [f"### `{value.__name__}{makes}`\n", f"{_docstring(value)}\n"]
    if "__init__" in vars(value) and value.__init__.__doc__ and value not in _MADE_BY_THE_ENGINE:
        parts.append(f"{_docstring(value.__init__)}\n")
    for name, member in vars(value).items():
        inner = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(inner) and name not in _INSIDE.get(value, ()):
            shown = name if isinstance(member, property) else f"{name}{_parameters(inner)}"
            parts.append(f"**`{shown}`**\n\n{_docstring(inner)}\n")
    return "\n".join(parts)


class _Verbatim(str):
    """What stands in a signature as it is."""

    def __repr__(self) -> str:
        return str(self)


def _parameters(function: Any) -> str:
    """As they are called: without ``self``, with the bare names of types, and without the inside of a default."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(
            annotation=_Verbatim(_bare(each.annotation)),
            default=each.empty
            if each.default is each.empty
            else _Verbatim("…" if callable(each.default) else repr(each.default)),
        )
        for name, each in signature.parameters.items()
        if name != "self" and each.annotation is not typing.Never  # that is there to be refused
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def _bare(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Unpack:
        (annotation,) = typing.get_args(annotation)
    text = inspect.formatannotation(annotation).replace("float | str | datetime.timedelta", "Duration")
    # One with a type variable is still written in the old way by some versions of Python.
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", re.sub(r"\b(?:\w+\.)+(?=\w)|[~']", "", text))


def _docstring(value: Any) -> str:
    text = inspect.getdoc(value)
    assert text, f"{value.__qualname__} has no docstring"
    return text.replace("``", "`")


def _settings() -> str:
    return _page(
        "Settings",
        "`spinney.toml` is read from the current directory. What an argument says wins over the environment, and that "
        "over the file. Durations are a number of seconds, or text such as `90s`.\n",
        (
            "`[spinney]`",
            "Where things are.",
            [(name, "text", "", text) for name, _, _, text in _dataclass(config.Settings)],
        ),
        (
            "`[node]`",
            "What `spinney node` goes by, unless its options say otherwise.",
            _model(NodeTable),
        ),
        ("`[server]`", "What `spinney serve` goes by ([the server](../server.md)).", _model(ServerSettings)),
        ("`[server.oidc]`", _first_line(Oidc), _model(Oidc)),
        ("`spinney node`", "Options of the command, which win over `[node]`.", _command("node")),
    )


def _page(title: str, lead: str, *sections: tuple[str, str, Iterable[Row]]) -> str:
    parts = [f"# {title}\n", _NOTE, lead]
    for heading, about, rows in sections:
        table = "".join(f"| `{name}` | {kind} | {default} | {text} |\n" for name, kind, default, text in rows)
        parts.append(
            f"## {heading}\n\n{about}\n\n| name | type | default | meaning |\n|---|---|---|---|\n{table}"
        )
    return "\n".join(parts)


# --- what a table is made from ----------------------------------------------------------------


def _typed(options: Any, spec: type) -> list[Row]:
    """The options that a TypedDict itself declares, with the defaults of the spec that they end up in."""
    default = {each.name: _default(each) for each in fields(spec)}
    return [
        (name, _code(kind), default.get(_OF_SPEC.get(name, name), ""), text)
        for name, kind, text in _documented(options)
    ]


def _dataclass(cls: type) -> list[Row]:
    default = {each.name: _default(each) for each in fields(cls)}
    return [(name, _code(kind), default[name], text) for name, kind, text in _documented(cls)]


def _backoff() -> list[Row]:
    """Its fields are floats, and its parameters what may be made of such: types and defaults are those of these."""
    parameters = inspect.signature(Backoff).parameters
    return [
        (
            name,
            "`Duration`" if parameters[name].annotation is Duration else _code(kind),
            _shown(parameters[name].default),
            text,
        )
        for name, kind, text in _documented(Backoff)
    ]


def _model(cls: Any) -> list[Row]:
    schema = cls.model_json_schema()
    return [
        (
            name,
            _toml(schema["properties"][name], schema.get("$defs", {})),
            "" if name in schema.get("required", ()) else _shown(cls.model_fields[name].default),
            text,
        )
        for name, _, text in _documented(cls)
    ]


def _toml(schema: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """What such a value looks like in a TOML file."""
    if "$ref" in schema:
        return _toml(named[schema["$ref"].rpartition("/")[2]], named)
    if "anyOf" in schema:
        kinds = (each for each in schema["anyOf"] if each.get("type") != "null")
        return " or ".join(dict.fromkeys(_toml(each, named) for each in kinds))
    if "enum" in schema:
        return ", ".join(f'`"{word}"`' for word in schema["enum"])
    if schema["type"] == "array":
        return "list of text"
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    word = {
        "string": "text",
        "number": "number",
        "integer": "integer",
        "boolean": "true, false",
        "object": "table",
    }
    return word[schema["type"]] + (
        f", {least:,} to {most:,}" if least is not None and most is not None else ""
    )


def _command(name: str) -> list[Row]:
    command = own_commands()[name]
    return [
        (each.opts[0], "" if each.is_flag else _cell(each.metavar or "TEXT"), "", each.help)
        for each in command.params
        if each.opts[0].startswith("--")
    ]


def _documented(cls: type) -> list[tuple[str, str, str]]:
    """The annotated names of a class body, their types, and the texts below them. Raises AssertionError for a name
    without a text."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    sections = []
    for node, behind in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            assert isinstance(behind, ast.Expr), f"{cls.__name__}.{name} has no docstring"
            assert isinstance(behind.value, ast.Constant), f"{cls.__name__}.{name} has no docstring"
            text = " ".join(str(behind.value.value).split()).replace("``", "`")
            sections.append((name, ast.unparse(node.annotation), _cell(text)))
    return sections


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0].replace("``", "`")


def _default(each: Any) -> str:
    if each.default_factory is not MISSING:
        return _shown(each.default_factory())
    return "" if each.default is MISSING else _shown(each.default)


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, str | tuple | Mapping) and not value):
        return "none"
    if isinstance(value, Backoff):
        return "`Backoff()`"
    return f"`{value}`" if isinstance(value, str) else f"`{value!r}`"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for file, text in pages().items():
        REFERENCE.mkdir(exist_ok=True)
        (REFERENCE / file).write_text(text)
