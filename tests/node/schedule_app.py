"""An application that declares a schedule."""

from spinney import Job, Spinney

app = Spinney()


@app.job
def stamp(job: Job, word: str = "") -> str:
    """Returns the time for which it was made."""
    told: str = job.data["schedule"]["at"]
    return told + word


app.schedule(
    stamp.options(submitter="clock"),
    every=1,
    params={"word": "!"},
    name="declared",
    catch_up="all",
    overlap="allow",
)
