"""The command ``explain``: why a job is not running."""

import typer

from spinney.features.explain.commands import ExplainJob
from spinney.features.explain.explanation import Explanation
from spinney.terminal.connection import open_commands
from spinney.terminal.for_each import for_each
from spinney.terminal.options.arguments import JobsArgument, JsonOption, StoreOption
from spinney.terminal.output import display

app = typer.Typer()


@app.command()
def explain(jobs: JobsArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Explain why jobs are not running, and what would start them."""
    with open_commands(store) as performer:

        def explain_job(job: int) -> None:
            explanation = performer.do(ExplainJob(job=job))
            if json:
                display.print_json_lines([explanation])
            else:
                _print(explanation)

        for_each(jobs, explain_job)


def _print(explanation: Explanation) -> None:
    """Print an explanation: the sentence, the expected start if it is known, and the command that would
    change something."""
    out = display.console()
    out.print(display.safe(f"job {explanation.job_id}: {explanation.sentence}"))
    if explanation.start_us is not None and explanation.cause != "next":
        out.print(f"  expected to start at {display.format_time(explanation.start_us)}")
    if explanation.command is not None:
        out.print(f"  {display.safe(explanation.command)}")
