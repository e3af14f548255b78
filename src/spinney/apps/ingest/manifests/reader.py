"""Reads and checks manifests of both forms.

``read`` is for processing: it stops at the first problem. ``judge`` is for depositors: it continues and lists
them. Both use the same parsers, so that a manifest without problems can be read.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

from spinney.apps.ingest.manifests import checkm, json_form, lines
from spinney.apps.ingest.manifests.model import (
    Judgement,
    ManifestRefused,
    Parsed,
    PayloadKind,
    Problem,
    Problems,
    Row,
    Warnings,
)
from spinney.files.paths import NotAdmitted, shown

MOST_PROBLEMS = 50


def read(manifest: Path, kind: PayloadKind | None = None, warnings: Warnings | None = None) -> Iterator[Row]:
    """Check the header of a manifest, and return its rows, which are read lazily.

    ``kind``: the kind that was submitted; ``warnings``: collects those about the header and, as they are read, about
    the rows. Raises `ManifestRefused`, at once or at the first invalid row, which names the line; NotAdmitted when the
    file is of another kind, or does not exist. The file is not kept open before the first row is read.
    """
    named_kind = kind_of(manifest)
    if kind not in (None, named_kind):
        raise NotAdmitted(
            f"'{shown(manifest.name)}' is of kind {named_kind} and was submitted as {kind}; "
            f"correct its profile, or submit it as {named_kind}"
        )
    return _rows(manifest, warnings or Warnings())


def kind_of(manifest: Path) -> PayloadKind:
    """Check the header of a manifest, and return the kind that it names. Raises as `read` does."""
    with lines.opened(manifest) as file:
        return _parse(file, manifest, Warnings()).kind


Further = Callable[[PayloadKind], Callable[[Row], Iterator[str]]]
"""Returns additional checks for a kind of manifests: a function that yields the errors of a row as sentences."""


def judge(manifest: Path, most: int = MOST_PROBLEMS, further: Further | None = None) -> Judgement:
    """Read a manifest to its end and return its problems, up to ``most``.

    ``further``: returns a function for a kind of manifest that yields more reasons to refuse a row. Rows with
    a problem count in none of the numbers. Raises NotAdmitted only when the file does not exist, or is no
    regular file.
    """
    problems: list[Problem] = []
    warnings = Warnings()

    def note(problem: Problem) -> None:
        problems.append(problem)
        if len(problems) >= most:
            raise _TooManyProblems

    kind, rows, size_bytes, unknown, whole = None, 0, 0, 0, True
    try:
        with lines.opened(manifest) as file:
            parsed = _form(file, Problems(report=note, note=warnings.note))
            if parsed is not None:
                kind = parsed.kind
                refusals = further(kind) if further else None
                for row in parsed.rows:
                    if refusals and (reasons := list(refusals(row))):
                        for reason in reasons:
                            note(Problem(line=row.line, reason=reason, unit=parsed.unit))
                        continue
                    rows += 1
                    for file_row in row.files or (row,):
                        size_bytes += file_row.size_bytes or 0
                        unknown += file_row.size_bytes is None
    except _TooManyProblems:
        whole = False
    return Judgement(
        kind=kind,
        rows=rows,
        size_bytes=size_bytes,
        sizes_unknown=unknown,
        problems=tuple(problems),
        warnings=warnings,
        whole=whole and kind is not None,
    )


class _TooManyProblems(Exception):
    """The limit of problems has been reached."""


def _rows(manifest: Path, warnings: Warnings) -> Iterator[Row]:
    """Open the manifest again, and yield its rows; it is closed after the last one. Raises
    ManifestRefused."""
    with lines.opened(manifest) as file:
        yield from _parse(file, manifest, warnings).rows


def _parse(file: io.BufferedReader, manifest: Path, warnings: Warnings) -> Parsed:
    """Parse a manifest, and return its kind and rows; the first problem raises ManifestRefused."""

    def refuse(problem: Problem) -> None:
        raise ManifestRefused(shown(manifest.name), problem) from None

    parsed = _form(file, Problems(report=refuse, note=warnings.note))
    assert parsed is not None, "a parser that finds no kind has reported why"
    return parsed


def _form(file: io.BufferedReader, problems: Problems) -> Parsed | None:
    """Parse a manifest in the form that its first character tells; None where it is neither, which is
    reported."""
    first = file.peek(1).lstrip()[:1]
    if first == b"{":
        return json_form.parse(file, problems)
    if first == b"#":
        return checkm.parse(file, problems)
    problems.refuse(
        1,
        f"this is no manifest: it begins neither with #%{checkm.DECLARATION} nor with a JSON object; "
        f"hand in one of them as UTF-8",
    )
    return None
