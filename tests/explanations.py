"""Explanations as callers without limits read them."""

from spinney.commands.control import Control
from spinney.features.explain.explanation import Explanation
from spinney.features.explain.service import Explainer
from spinney.store.parts import Store


def explained(store: Store, job_id: int, now_us: int) -> Explanation:
    control = Control(store=store, clock=lambda: now_us, wake_nodes=lambda: None, by="ann")
    return control.part(Explainer).explain(job_id)
