"""An application to try Spinney with: what ``spinney up`` runs where none is named.

It makes nothing but what pages and commands can show: a greeting, counting with progress and output, a batch whose
words are counted each as a job of its own, and a stage that fails until somebody mends what it needs.
"""

import time
from collections import Counter

from spinney import Fail, Job, Spinney

app = Spinney()


@app.job
def greet(name: str = "world") -> str:
    """Print a greeting to the attempt's output, and return it."""
    print(f"Hello, {name}!")
    return f"Hello, {name}!"


@app.job
def count(job: Job, to: int = 30, seconds_each: float = 1.0) -> int:
    """Count slowly, telling how far it is: to be watched, or cancelled."""
    for n in range(1, to + 1):
        job.check_cancelled()
        print(n, flush=True)
        job.progress(n / to, f"{n} of {to}")
        time.sleep(seconds_each)
    return to


@app.job
def needs_a_file(job: Job, file: str = "please.txt") -> str:
    """Fail until a file of that name lies in the job's folder: put it there, then retry."""
    path = job.folder / file
    if not path.is_file():
        raise Fail(f"there is no {path}; put one there, then retry", retryable=False)
    return path.read_text()


words = app.pipeline("words", children="settled", description="Count the letters of each word, each as a job")


@words.stage
def expand(job: Job, text: str = "a spinney is a small wood") -> int:
    """Create a subjob for each word of the text, and return how many."""
    parts = text.split()
    job.spawn_many(letters, [{"word": word} for word in parts])
    return len(parts)


@words.stage(again=True)
def report(job: Job) -> dict[str, int]:
    """Return how many subjobs ended in each state."""
    return dict(Counter(child.state for child in job.children()))


@app.job
def letters(word: str) -> dict[str, int]:
    """Count the letters of a word."""
    if not word.isalpha():
        raise Fail(f"{word!r} is no word", retryable=False)
    return dict(Counter(word.lower()))
