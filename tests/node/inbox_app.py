"""An application whose jobs read what was dropped."""

import os

from spinney import Job, Spinney

app = Spinney()


@app.job
def read(job: Job, file: str) -> str:
    """Returns the text of the file, and on which host it was read."""
    return f"{(job.folder / file).read_text()} on {os.environ.get('SPINNEY_TEST_HOST', '')}"
