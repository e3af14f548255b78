"""Puts files into a job's folder: one rename for each, durable before the call returns.

Directories are opened one by one from the folder on, without following links, so that a link in the folder cannot lead
a write elsewhere. When a crash or an error ends the call, some of several files may be in place; each is there whole or
not at all, and the same call may be repeated with the rest.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spinney.features.files.job_folder import elsewhere
from spinney.files.trees import OPEN_FOLDER
from spinney.folders import folders
from spinney.host.ownership import give_to_owner
from spinney.model.errors import Refused
from spinney.store.parts import Store


def require_local_folder(store: Store, root: Path, job_id: int | None) -> None:
    """Raise Refused unless the job's folder belongs below this root, and StoreUnusable when the root is
    another store's.

    ``job_id`` None: a job that is about to be submitted. With local folders such a job, and one that has not
    begun, may run on any host, so its files can be put in place only where there is no other host.
    """
    facts = store.facts()
    folders.check_token(root, facts["folder_token"])
    if facts.get("folders") != "local":
        return
    if job_id is not None and (home := elsewhere(store, job_id, root)) is not None:
        raise Refused(
            f"job {job_id} has its folder on {home}; upload to a server there, or copy the file there"
        )
    mine = folders.fingerprint(root, make=False)
    others = [home for home in store.homes.all() if not home.given_up and home.mark != mine]
    unbound = job_id is None or store.homes.of(job_id) is None
    if others and unbound:
        raise Refused(
            f"the folders of this store are local to its nodes, and the job may run on {others[0]}; put the files "
            f"where its stage can fetch them, and submit their address"
        )


def put(root: Path, job_id: int, files: Mapping[str, Path]) -> None:
    """Move files to these paths in the job's folder, in their order; files that exist there are replaced.

    ``files``: where each file has been received, by its path in the job's folder, which the caller has
    checked (``spool.checked``). They must lie on the same file system as the folder, since they are renamed.
    Raises Refused (a directory or a link is in the way), DiskFull, StoreUnusable.
    """
    folder = folders.make(root, job_id)
    for path, file in files.items():
        *above, name = path.split("/")
        try:
            with _opened(root, folder, above) as levels:
                give_to_owner(file, like=root)
                os.rename(file, name, dst_dir_fd=levels[-1])
                for fd in reversed(levels):
                    os.fsync(fd)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            raise Refused(
                f"{path!r} cannot be put into the folder of job {job_id}: something else has that name there "
                f"({error.strerror}); choose another name"
            ) from error
        except OSError as error:
            failure = f"{path!r} cannot be put into the folder of job {job_id}"
            raise folders.unusable(root, error, failure, f"check that {root} exists") from error


@contextmanager
def _opened(root: Path, folder: Path, above: list[str]) -> Iterator[list[int]]:
    """Open the folder and the directories below it, which are created when they are missing, and yield their
    descriptors from the folder down. A link in place of one raises NotADirectoryError."""
    with ExitStack() as stack:
        levels = [os.open(folder, OPEN_FOLDER)]
        stack.callback(os.close, levels[0])
        for step in above:
            with suppress(FileExistsError):
                os.mkdir(step, 0o700, dir_fd=levels[-1])
                give_to_owner(step, like=root, dir_fd=levels[-1])
            levels.append(os.open(step, OPEN_FOLDER, dir_fd=levels[-1]))
            stack.callback(os.close, levels[-1])
        yield levels
