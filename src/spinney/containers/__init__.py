"""Containers: archives from untrusted sources, unpacked safely.

``unpack`` writes into a folder that does not exist yet, or is empty. The container is only read. Every member's name
is checked before its file is made, every byte is counted before it is written, and every file is new, following no
link. Names that differ only in case or accents stay two files. When a container is refused, the unpacked files are
removed. A crash leaves an incomplete folder, which cannot be told from a complete one: the caller removes the folder
and unpacks again, unless it has recorded elsewhere that the folder is complete. Nothing is synced here.

``formats`` the kind of a container, by its content and its name · ``member_names`` the names of members ·
``limits`` how much may be unpacked · ``zip_directory`` a zip's table of contents, counted before it is read into
memory · ``zips``, ``tars`` the members, in their order · ``converted`` 7z and rar as a tar · ``safe_folder`` writing
below a folder · ``unpack`` the whole operation.
"""

from spinney.containers.limits import Limits
from spinney.containers.unpack import Member, unpack

__all__ = ["Limits", "Member", "unpack"]
