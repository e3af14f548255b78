"""The settings of a Disbatch node: ``disbatch.toml``, and over it the document of the collection ``config``.

activequeues = []                      # only these queues, by name or id; they win
ignorequeues = ["slow"]                # all but these
gfs = "auto"                           # output in GridFS: auto (what is too large), always, never
orphaned_after = "5m"                  # a host that has not beaten for so long has lost its tasks
config = "/etc/disbatch/config.json"   # handed to programs of the kind "default"

[plugins]
"Disbatch::Plugin::Demo" = "demo"      # plugin = job type
# a program (release 4.4): default or nomongo; killed after so long
"/usr/lib/disbatch/migrate" = {type = "nomongo", timeout = "2h"}
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from spinney import settings_files
from spinney.errors import UsageError
from spinney.settings_files import Seconds

FILE = "disbatch.toml"
PROGRAM_TYPE = "disbatch.program"
_PLUGIN = re.compile(r"[A-Za-z]\w*(::\w+)*")


class Program(BaseModel):
    """A plugin that is a program, after the contract of release 4.4."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["default", "nomongo"] = "default"
    timeout: Annotated[Seconds, Field(gt=0)] | None = None
    """It is killed after so long; None: never."""


def _kind(target: Any) -> str:
    """Return which kind of target a value is meant to be, so that a fault names what is wrong with that kind."""
    return "program" if isinstance(target, Mapping | Program) else "type"


Target = Annotated[Annotated[str, Tag("type")] | Annotated[Program, Tag("program")], Discriminator(_kind)]
"""What runs a plugin: the name of a job type, or a program."""


class Settings(BaseModel):
    """All settings; see the example above."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    plugins: Mapping[str, Target] = Field(default_factory=dict)
    """What runs a queue's plugin."""
    activequeues: tuple[str, ...] = ()
    """Names or ids of the only queues that are served; empty: all but ``ignorequeues``."""
    ignorequeues: tuple[str, ...] = ()
    gfs: Literal["auto", "always", "never"] = "auto"
    """When output goes to GridFS: ``auto``, what is too large for the document."""
    orphaned_after: Annotated[Seconds, Field(ge=10, le=86_400)] = 300.0
    config: str = ""
    """The path of the configuration that programs of the kind ``default`` get."""

    def over(self, document: Mapping[str, Any] | None) -> tuple["Settings", Sequence[str]]:
        """Return these settings with those of a document of the collection ``config`` over them, and a sentence for
        each field that is invalid and ignored. Fields that other programs keep there are ignored, too."""
        settings, errors = self, []
        for name in type(self).model_fields:
            if name in (document or {}):
                changed = {**settings.model_dump(), name: (document or {})[name]}
                try:
                    settings = _checked(changed, "the document in the collection 'config'")
                except UsageError as error:
                    errors.append(str(error))
        return settings, errors

    def serves(self, queue: Mapping[str, Any]) -> bool:
        """Return whether this node looks into a queue, which the settings may name by its id or its name."""
        names = {str(queue["_id"]), str(queue.get("name"))}
        if self.activequeues:
            return not names.isdisjoint(self.activequeues)
        return names.isdisjoint(self.ignorequeues)


def load(path: Path) -> Settings:
    """Return the settings of a file; the defaults where there is none of the usual name. Raises UsageError that names
    the file, and the field that is wrong."""
    return _checked(settings_files.document(path, optional=path == Path(FILE)), str(path))


def _checked(document: Mapping[str, Any], where: str) -> Settings:
    """Return checked settings. Raises UsageError that names where they are from, also for a plugin and a
    target that do not go together."""
    checked = settings_files.checked(Settings, document, where)
    for name, target in checked.plugins.items():
        is_program = isinstance(target, Program)
        if is_program != name.startswith("/") or not (is_program or _PLUGIN.fullmatch(name)):
            raise UsageError(
                f"{where}: plugins.{name}: name a job type for a plugin such as Disbatch::Plugin::Demo, and "
                f'{{type = "default"}} or {{type = "nomongo"}} for a program with an absolute path; correct it'
            )
    return checked
