"""What it costs a failing job to keep its frames."""

from collections.abc import Mapping

from benchmarks.place import Site, percentile, site

JOBS = 500
ROUNDS = 3


def frames() -> Mapping[str, float]:
    """Milliseconds a failing job with its frames kept and without, in turn; and the bytes that are kept of one."""
    with site() as here, here.node(slots=1):
        app = here.app()
        taken: dict[str, list[float]] = {"refuse": [], "refuse-bare": []}
        submitted = 0
        for _ in range(ROUNDS):
            for name, times in taken.items():
                app.submit_many(name, [{"text": "none"}] * JOBS)
                here.wait_settled()
                times.append(1000 / here.rate(submitted))
                submitted += JOBS
        app.close()
        return {
            "ms a failing job, frames kept": percentile(taken["refuse"], 0.5),
            "ms a failing job, none kept": percentile(taken["refuse-bare"], 0.5),
            "kB of frames a job": _kept_bytes(here) / 1000,
        }


def _kept_bytes(here: Site) -> float:
    sizes = [path.stat().st_size for path in (here.folder / "bench.folders").rglob("*.frames")]
    if len(sizes) != JOBS * ROUNDS:
        raise RuntimeError(f"frames of {len(sizes)} jobs are kept, not of {JOBS * ROUNDS}: no figure")
    return sum(sizes) / len(sizes)
