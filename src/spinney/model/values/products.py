"""Products and summaries of the jobs of a tree, as entries in the data of its root.

Each is an entry of its own, so that many jobs may add theirs at once, and that a stage that runs again replaces what it
had added. The names end in ``_``, as those of all that jobs write where a type has ``names="generated_"``."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

TITLE_CHARS = 500
SUMMARY_CHARS = 10_000
WEB = ("http://", "https://")
_DIGITS = 16
_NAME = re.compile(r"(product|summary):(\d+)(:[0-9a-f]+)?_")


class Product(NamedTuple):
    """A result for people: a file in a job's folder, or an address elsewhere."""

    job: int
    """The job that made it."""
    title: str
    path: str | None
    """Its path in the folder of that job; None: it is elsewhere."""
    url: str | None


class Summary(NamedTuple):
    """What a job says of its work."""

    job: int
    text: str


def product_entry(job_id: int, target: str) -> str:
    """Return the name of the entry of a product; the same for the same path or address."""
    return f"product:{job_id}:{hashlib.sha256(target.encode()).hexdigest()[:_DIGITS]}_"


def summary_entry(job_id: int) -> str:
    """Return the name of the entry of a job's summary."""
    return f"summary:{job_id}_"


def is_entry(name: str) -> bool:
    """Return whether an entry of a job's data is a product or a summary."""
    return _NAME.fullmatch(name) is not None


def products_of(data: Mapping[str, Any]) -> list[Product]:
    """Return the products in a root's data, by job and title. Invalid entries are left out, because a stage may write
    any data under these names, and pages link to what is returned."""
    products = []
    for job_id, kind, value in _entries(data):
        match value:
            case {"title": str(title), "path": str(path)} if kind == "product":
                products.append(Product(job_id, title, path, None))
            case {"title": str(title), "url": str(url)} if kind == "product" and url.startswith(WEB):
                products.append(Product(job_id, title, None, url))
    return sorted(products, key=lambda product: product[:2])


def summaries_of(data: Mapping[str, Any]) -> list[Summary]:
    """Return the summaries in a root's data, by job."""
    texts = [(job_id, value) for job_id, kind, value in _entries(data) if kind == "summary"]
    return sorted(Summary(job_id, text) for job_id, text in texts if isinstance(text, str))


def without_entries(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other entries of a job's data."""
    return {name: value for name, value in data.items() if not is_entry(name)}


def _entries(data: Mapping[str, Any]) -> list[tuple[int, str, Any]]:
    matches = ((_NAME.fullmatch(name), value) for name, value in data.items())
    return [(int(match[2]), match[1], value) for match, value in matches if match]
