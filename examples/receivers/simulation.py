"""Raw files of a receiver near some tags, whose true bursts are known.

The same seed gives the same lines, so that a test, or another process, can know the truth again."""

import gzip
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from spinney.apps.receivers.detection.tags import Tag

BEGUN = datetime(2026, 5, 1, 6, tzinfo=UTC).timestamp()
TAGS = (
    Tag(tag="1.1", frequency=166.38, gap1=45, gap2=61, gap3=99, interval=5.3),
    Tag(tag="1.2", frequency=166.38, gap1=52, gap2=73, gap3=88, interval=9.7),
    Tag(tag="1.3", frequency=166.38, gap1=61, gap2=45, gap3=99, interval=7.1),
)


@dataclass(kw_only=True)
class Scene:
    """Tags that are near a receiver for some time, and what disturbs it: noise, pulses that it misses, and
    clocks that jitter."""

    seconds: float = 600.0
    """How long it lasts, from ``BEGUN`` on."""
    noise_per_s: float = 1.0
    """Pulses of noise, on each port."""
    missed: float = 0.05
    """The part of pulses that the receiver does not hear."""
    jitter_s: float = 0.0002
    """The standard deviation of the time of each pulse."""
    ports: tuple[int, ...] = (1, 2)
    tags: tuple[Tag, ...] = TAGS
    seed: int = 1
    truth: set[tuple[str, int, float]] = field(default_factory=set)
    """Tag, port and time of each burst of which all four pulses were heard."""

    def lines(self) -> list[str]:
        """Return the lines of pulses, by time, and enter the bursts of which all pulses were heard into
        ``truth``."""
        # Everything is drawn from one generator in a fixed order, so that the seed decides all of it.
        rng = np.random.default_rng(self.seed)
        rows: list[tuple[float, int, float, float]] = []
        for port in self.ports:
            for tag in self.tags:
                offset = 4 + rng.normal(0, 0.3)
                for begin in np.arange(rng.uniform(0, tag.interval), self.seconds, tag.interval):
                    at = np.cumsum((0.0, *tag.gaps_s)) + begin + rng.normal(0, self.jitter_s, 4)
                    # A burst of which a pulse was missed cannot be detected, so it is not part of the truth.
                    heard = rng.random(4) >= self.missed
                    rows += [(t, port, offset + rng.normal(0, 0.05), -60.0) for t in at[heard]]
                    if heard.all():
                        self.truth.add((tag.tag, port, round(BEGUN + at[0], 3)))
            number = rng.poisson(self.noise_per_s * self.seconds)
            noise = zip(rng.uniform(0, self.seconds, number), rng.uniform(-8, 8, number), strict=True)
            rows += [(t, port, offset, -85.0) for t, offset in noise]
        return [
            f"p,{port},{BEGUN + t:.6f},{offset:.3f},{signal:.1f},-90.0"
            for t, port, offset, signal in sorted(rows)
        ]


def file_name(session: int, begun: float, serial: str = "7F5ERPI46977") -> str:
    """Return the name of a raw file, as a receiver gives it. ``begun``: seconds since 1970."""
    moment = datetime.fromtimestamp(begun, UTC)
    return f"sim-{serial}-{session:06d}-{moment:%Y-%m-%dT%H-%M-%S}.{int(begun % 1 * 1e4):04d}P-all.txt"


def write_files(
    lines: list[str], folder: Path, cuts: list[int], *, session: int = 3, packed: bool = False
) -> list[Path]:
    """Write the lines to files that end at these indices, and return the files in their order. Indices that
    would make an empty file are left out. ``packed``: with gzip."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [*sorted({cut for cut in cuts if 0 < cut < len(lines)}), len(lines)]
    files, begin = [], 0
    for end in ends:
        begun = float(lines[begin].split(",")[2])
        path = folder / (file_name(session, begun) + (".gz" if packed else ""))
        text = "".join(f"{line}\n" for line in lines[begin:end]).encode()
        path.write_bytes(gzip.compress(text) if packed else text)
        files.append(path)
        begin = end
    return files
