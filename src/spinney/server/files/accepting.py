"""A job that is submitted with files: whoever the form comes from, they are in its folder before it may start."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinney.control import Control
from spinney.control.uploading import Begun, Uploads
from spinney.job.options import Options
from spinney.model.access import Role
from spinney.server.asking import Hands
from spinney.server.files import putting
from spinney.server.files.spool import Upload
from spinney.stores.contract import Once


async def require(hands: Hands, root: Path) -> None:
    """To be asked before a long body is read. Raises Forbidden, Refused, StoreUnusable."""

    def call(control: Control) -> None:
        control.require(Role.SUBMITTER, "submit jobs")
        putting.require_here(control.store, root, None)

    await hands.run(call)


async def with_files(
    hands: Hands,
    root: Path,
    upload: Upload,
    type_: str | None,
    params: Mapping[str, Any],
    options: Options,
    *,
    once: Once | None,
) -> Begun:
    """Accept the job under a hold, put its files in place, let it go. Raises what ``Control.submit`` raises, and
    ``putting.put``."""

    def begin(control: Control) -> Begun:
        return control.part(Uploads).begin(type_, params, options, once=once)

    begun = await hands.run(begin)
    if begun.holds:
        await asyncio.to_thread(putting.put, root, begun.job_id, upload.files)
        await hands.run(lambda control: control.part(Uploads).finish(begun))
    return begun
