import gzip
import shutil
from collections import Counter
from pathlib import Path

from spinney import Job, Spinney

app = Spinney()


@app.job(max_attempts=3, timeout=600)
def compress(file: Path, into: Path) -> None:
    with file.open("rb") as source, gzip.open(into / f"{file.name}.gz", "wb") as target:
        shutil.copyfileobj(source, target)


folder = app.pipeline("folder", children="settled")


@folder.stage
def expand(path: Path, job: Job) -> None:
    files = [file for file in path.iterdir() if file.is_file()]
    job.spawn_many(compress, [{"file": file, "into": job.folder} for file in files])


@folder.stage(again=True)
def report(job: Job) -> dict[str, int]:
    return Counter(child.state for child in job.children())
