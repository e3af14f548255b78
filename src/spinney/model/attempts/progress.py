"""Which stage is next: one rule for going on, resuming, retrying and regrowing.

A job goes to the first stage of its type that has not *passed*. An attempt passes a stage when its
outcome is in ``PASSED`` and it is not superseded. Retrying supersedes nothing; rerunning from a
stage supersedes that stage and all behind it; regrowing supersedes those marked ``again``. So the
same question always has the same answer, whoever asks it after whatever crash.
"""

from collections.abc import Collection

from spinney.model.types import TypeSpec


def next_stage(spec: TypeSpec, passed: Collection[str]) -> str | None:
    """The first stage of ``spec`` that is not in ``passed``; None when all have passed."""
    return next((s.name for s in spec.stages if s.name not in passed), None)


def stages_from(spec: TypeSpec, stage: str) -> list[str]:
    """That stage and all behind it: what a rerun from it supersedes. Empty when there is none so named."""
    found = [s.name for s in spec.stages]
    return found[found.index(stage) :] if stage in found else []


def again_stages(spec: TypeSpec) -> list[str]:
    """The stages that run once more when the tree below regrew."""
    return [s.name for s in spec.stages if s.again]
