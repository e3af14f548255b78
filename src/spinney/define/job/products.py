"""Products of a job: what people get of it, collected at the root of its tree."""

from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path

from spinney.define.job.data import Data
from spinney.model.errors import BadParameters
from spinney.model.values.products import TITLE_CHARS, WEB, Product, product_entry, products_of


class Products:
    """The products of a job's tree. Iteration yields those of all its jobs, by job and title; adding belongs
    to one job."""

    __slots__ = ("_folder", "_job_id", "_redact", "_root_data")

    def __init__(
        self, job_id: int, root_data: Data, folder: Callable[[], Path], redact: Callable[[str], str]
    ) -> None:
        """``folder`` returns the job's own, which is made when it is first used. ``redact`` hides the job's secrets."""
        self._job_id, self._root_data, self._folder, self._redact = job_id, root_data, folder, redact

    def add(self, path_or_url: "str | PathLike[str]", title: str) -> None:
        """Add a file in the job's folder, or an address (``https://…``), which pages, ``spinney show`` and reports list
        under its title. It stays whatever becomes of the attempt; the same path or address again replaces it.

        Raises BadParameters for a path outside the job's folder, where no file is, or which holds a secret, or a title
        that is empty or longer than 500 characters."""
        target = fspath(path_or_url)
        if not isinstance(title, str) or not 0 < len(title.strip()) <= TITLE_CHARS:
            shown = self._redact(repr(title))  # before it is cut, since nobody recognises a part of a secret
            raise BadParameters(f"a product's title has 1 to {TITLE_CHARS} characters, not {shown:.80}")
        if target.startswith(WEB):
            place = {"url": self._redact(target)}
        else:
            target = self._relative(target)
            if (shown := self._redact(target)) != target:  # a redacted path would lead nowhere
                raise BadParameters(f"the name of the file {shown!r} holds a secret; rename it")
            place = {"path": target}
        value = {"title": self._redact(title)} | place
        self._root_data[product_entry(self._job_id, target)] = value

    def __iter__(self) -> Iterator[Product]:
        yield from products_of(self._root_data.snapshot())

    def _relative(self, target: str) -> str:
        """Return the path of a file in the job's folder, relative to it. Links are followed first, so that
        none leads out. Raises BadParameters."""
        folder = self._folder().resolve()
        path = (folder / target).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            raise BadParameters(
                f"{target!r} is no file in the job's folder; write products into job.folder, or give their address"
            )
        return path.relative_to(folder).as_posix()
