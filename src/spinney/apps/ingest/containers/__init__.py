"""Containers: zip and tar archives from strangers, unpacked without harm.

``unpack`` writes into a folder that is not there yet, or is empty. The container is only read. Every member's name is
judged before its file is made, every byte is counted before it is written, and a file is made new, following no link.
Names that are equal but for case or accents stay two files. When a container is refused, what had been unpacked is
removed. A crash leaves a part of it, which nobody can tell from the whole: the caller removes the folder and unpacks
again, unless it has recorded elsewhere that the folder is whole. Nothing is synced here.

``formats`` what a file is, by its content and its name · ``member_names`` where a member may go · ``limits``
how much may come out · ``zip_directory`` a zip's table of contents, counted before it is read into
memory · ``zips``, ``tars`` the members of one, in their order · ``safe_folder`` writing below a folder ·
``unpack`` all of it together.
"""

from spinney.apps.ingest.containers.limits import Limits
from spinney.apps.ingest.containers.unpack import Member, unpack

__all__ = ["Limits", "Member", "unpack"]
