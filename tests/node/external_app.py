"""Stages that no node runs, between two that nodes do, for ``test_external``."""

from spinney import Job, Spinney

app = Spinney()
talk = app.pipeline("talk")


@talk.stage
def fetch(file: str) -> int:
    return len(file)


talk.external("listen", params={"language": str}, max_attempts=2)


@talk.stage
def keep(job: Job) -> str:
    return f"{job.results['fetch']} {job.results['listen']}"


app.external("solo", timeout=2.0)
