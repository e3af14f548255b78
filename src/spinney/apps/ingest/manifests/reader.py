"""Reading and judging manifests, whichever form they have."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.manifests import checkm, json_form, lines
from spinney.apps.ingest.manifests.model import (
    Judgement,
    Manifest,
    ManifestRefused,
    PayloadKind,
    Problem,
    Report,
    Row,
    Warnings,
)

MOST_PROBLEMS = 50


def read(manifest: Path, kind: PayloadKind | None = None, warnings: Warnings | None = None) -> Manifest:
    """Judge the header of a manifest; its rows follow as they are asked for.

    ``kind``: what it was handed in as; ``warnings``: where to note them. Raises `ManifestRefused`, which names
    the line; NotAdmitted when the file is of another kind, or not there. Nothing stays open before the first
    row is asked for.
    """
    found = kind_of(manifest)
    if kind not in (None, found):
        raise NotAdmitted(
            f"'{shown(manifest.name)}' says that it is of kind {found} and was handed in as {kind}; "
            f"mend its profile, or hand it in as {found}"
        )
    warnings = Warnings() if warnings is None else warnings
    return Manifest(kind=found, rows=_rows(manifest, warnings), warnings=warnings)


def kind_of(manifest: Path) -> PayloadKind:
    """The kind that a manifest names itself, its header judged. Raises as `read` does."""
    with lines.opened(manifest) as file:
        kind, _ = _parsed(file, manifest, Warnings())
    return kind


Further = Callable[[PayloadKind], Callable[[Row], Iterator[str]]]
"""By the kind of a manifest, what else is wrong with each of its rows, sentence by sentence."""


def judge(manifest: Path, most: int = MOST_PROBLEMS, further: Further | None = None) -> Judgement:
    """Read a manifest to its end and tell what is wrong with it, up to ``most`` problems.

    Raises NotAdmitted only when there is no such file.
    """
    problems: list[Problem] = []
    warnings = Warnings()

    def note(problem: Problem) -> None:
        problems.append(problem)
        if len(problems) >= most:
            raise _Enough

    kind, rows, size_bytes, unknown, whole = None, 0, 0, 0, True
    try:
        with lines.opened(manifest) as file:
            parsed = _form(file, note, warnings.note)
            if parsed is not None:
                kind, found = parsed
                refusals = further(kind) if further else _none
                for row in found:
                    if reasons := list(refusals(row)):
                        for reason in reasons:
                            note(Problem(line=row.line, reason=reason, unit=row.unit))
                        continue
                    rows += 1
                    for one in row.files or (row,):
                        size_bytes += one.size_bytes or 0
                        unknown += one.size_bytes is None
    except _Enough:
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


def _none(row: Row) -> Iterator[str]:
    return iter(())


class _Enough(Exception):
    """So many problems that the rest tells nothing new."""


def _rows(manifest: Path, warnings: Warnings) -> Iterator[Row]:
    with lines.opened(manifest) as file:
        _, rows = _parsed(file, manifest, warnings)
        yield from rows


def _parsed(file: io.BufferedReader, manifest: Path, warnings: Warnings) -> tuple[PayloadKind, Iterator[Row]]:
    def refuse(problem: Problem) -> None:
        raise ManifestRefused(shown(manifest.name), problem) from None

    parsed = _form(file, refuse, warnings.note)
    assert parsed is not None, "a parser that finds no kind has reported why"
    return parsed


def _form(file: io.BufferedReader, report: Report, warn: Report) -> tuple[PayloadKind, Iterator[Row]] | None:
    first = file.peek(1).lstrip()[:1]
    if first == b"{":
        return json_form.parse(file, report, warn)
    if first == b"#":
        return checkm.parse(file, report, warn)
    report(
        Problem(
            line=1,
            reason=f"this is no manifest: it begins neither with #%{checkm.DECLARATION} nor with a JSON "
            f"object; hand in one of them as UTF-8",
        )
    )
    return None
