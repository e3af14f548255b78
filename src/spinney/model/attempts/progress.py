"""Which stage is next: one rule for continuing, resuming, retrying and regrowing.

A job goes to the first stage of its type that has not *passed*. An attempt passes a stage when its
outcome is in ``PASSED`` and it is not superseded. Retrying supersedes nothing; rerunning from a stage supersedes that
stage and all later ones; regrowing supersedes those marked ``again``. So every node computes the same next stage, also
after a crash."""

from collections.abc import Collection

from spinney.model.types import TypeSpec


def next_stage(spec: TypeSpec, passed: Collection[str]) -> str | None:
    """Return the first stage of ``spec`` that is not in ``passed``; None when all have passed."""
    return next((s.name for s in spec.stages if s.name not in passed), None)


def stages_from(spec: TypeSpec, stage: str) -> list[str]:
    """Return this stage and all later ones, which a rerun from it supersedes. Empty when there is no such stage."""
    names = [s.name for s in spec.stages]
    return names[names.index(stage) :] if stage in names else []


def again_stages(spec: TypeSpec, after: str | None = None) -> list[str]:
    """Return the stages that run once more when the tree below has regrown. ``after``: the stage that spawned the
    subjob that is opened again; it and those before it have nothing new to report."""
    stages = stages_from(spec, after)[1:] if after is not None and spec.stage(after) else None
    return [s.name for s in spec.stages if s.again and (stages is None or s.name in stages)]
