from collections import Counter
from pathlib import Path

from spinney import Job, Spinney

app = Spinney()
folder = app.pipeline("folder", children="settled")


@folder.stage
def expand(path: Path, job: Job) -> None:
    job.spawn_many(words, [{"file": file} for file in path.iterdir()])


@folder.stage(again=True)
def report(job: Job) -> dict[str, int]:
    return Counter(child.state for child in job.children())


@app.job(max_attempts=3, timeout=60)
def words(file: Path) -> int:
    return len(file.read_text().split())
