"""Containers are archives; this package unpacks those from untrusted sources safely, and packs files into new ones.

``unpack`` writes into a folder that does not exist yet, or is empty. The container is only read. Every member's name
is checked before its file is made, every byte is counted before it is written, and every file is new, following no
link. Names that differ only in case or accents stay two files. When a container is refused, the unpacked files are
removed. A crash leaves an incomplete folder, which cannot be told from a complete one: the caller removes the folder
and unpacks again, unless it has recorded elsewhere that the folder is complete. Nothing is synced here.

``pack``           zip, tar and tar.gz as streams, the same bytes on any host
``unpack``         the whole operation, member by member
``formats``        the kind of a container, by its content, which must agree with its name
``limits``         how much may be unpacked, and the meter that stops it
``member_names``   the rules for a member's name, and for all names of a container together
``members``        the data of a member, from any reader
``zips``           the members of a zip
``zip_directory``  a zip's table of contents, counted before it is read into memory
``tars``           the members of a tar, compressed or not, read once as a stream
``converted``      7z and rar, read as the tar that ``bsdtar`` makes of them
``safe_folder``    new files below one folder, following no link

A container that is refused raises ``NotAdmitted`` with a sentence for the depositor; the names of members in it are
escaped. Nothing here knows of jobs.

Specified by ``tests/containers``; ``pack`` by ``tests/apps/ingest/access/test_packing.py``.
"""

from spinney.containers.limits import Limits, Meter
from spinney.containers.unpack import Member, unpack

__all__ = ["Limits", "Member", "Meter", "unpack"]
