"""A writer of manifests for tests, which lets everything be wrong."""

from collections.abc import Iterable
from pathlib import Path

PROFILES = "http://uc3.cdlib.org/registry/ingest/manifest/"
MRT = "#%prefix | mrt: | http://merritt.cdlib.org/terms#"
NFO = "#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#"
FILE = (
    "nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName "
    "| mrt:mimeType"
)
OBJECT = (
    f"{FILE.removesuffix(' | mrt:mimeType')} | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator "
    f"| mrt:title | mrt:date"
)

FIRST = 6
"""The line of the first row."""
URL = "https://example.org/p1.tif"


def checkm(
    *rows: str,
    profile: str = f"{PROFILES}mrt-ingest-manifest",
    prefixes: Iterable[str] = (MRT, NFO),
    fields: str = FILE,
    end: str = "#%eof\n",
) -> bytes:
    lines = ["#%checkm_0.7", f"#%profile | {profile}", *prefixes, f"#%fields | {fields}", *rows]
    return ("\n".join(lines) + "\n" + end).encode()


def batch(*rows: str, profile: str = "mrt-single-file-batch-manifest", fields: str = OBJECT) -> bytes:
    return checkm(*rows, profile=PROFILES + profile, fields=fields)


def put(folder: Path, content: bytes, name: str = "deposit.checkm") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path
