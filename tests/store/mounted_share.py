"""A share that is really mounted, by FUSE, in a mount namespace of this process: it is gone with the process.

    python mounted_share.py FOLDER KIND URL

mounts an empty share of that kind on the folder, makes a store at the URL, and prints as JSON how that was refused
and which requests reached the share. Ends with 77 where the kernel lets nobody mount.
"""

import ctypes
import json
import os
import struct
import sys
import threading
from pathlib import Path

from spinney.model.errors import StoreUnusable
from spinney.store.sql import open_store

CANNOT_MOUNT = 77

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_PRIVATE_AND_ALL_BELOW = (1 << 18) | (1 << 14)
_NO_DEVICES_OR_SETUID = 4 | 2
_INIT, _GETATTR, _FORGET, _INTERRUPT, _BATCH_FORGET = 26, 3, 2, 36, 42
_NO_ANSWER = (_FORGET, _INTERRUPT, _BATCH_FORGET)
_ENOENT = 2
_HEADER = struct.Struct("<IIQQIIII")

_libc = ctypes.CDLL(None, use_errno=True)


def mount(folder: str, kind: str) -> int:
    """Returns the descriptor through which the kernel asks. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    _call(_libc.unshare, _NEW_MOUNTS | (_NEW_USER if user else 0))
    if user:  # who is not root is root in there
        for file, content in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path("/proc/self", file).write_text(content)
    _call(_libc.mount, b"none", b"/", None, _PRIVATE_AND_ALL_BELOW, None)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40755,user_id=0,group_id=0"
    _call(_libc.mount, b"share", folder.encode(), kind.encode(), _NO_DEVICES_OR_SETUID, options.encode())
    return fuse


def serve(fuse: int, seen: list[int]) -> None:
    """Be an empty folder."""
    while True:
        request = os.read(fuse, 2**18)
        _, op, unique, _, uid, gid, _, _ = _HEADER.unpack_from(request)
        seen.append(op)
        if op in _NO_ANSWER:
            continue
        body, error = b"", 0
        if op == _INIT:
            body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0)
        elif op == _GETATTR:
            body = struct.pack("<QIIQQQQQQIIIIIIIIII", 0, 0, 0, 1, *[0] * 8, 0o40755, 2, uid, gid, 0, 4096, 0)
        else:
            error = -_ENOENT
        os.write(fuse, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def _call(function: object, *arguments: object) -> None:
    if function(*arguments) != 0:  # type: ignore[operator]
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main(folder: str, kind: str, url: str) -> None:
    try:
        fuse = mount(folder, kind)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT_MOUNT)
    seen: list[int] = []
    threading.Thread(target=serve, args=(fuse, seen), daemon=True).start()
    output = None
    try:
        open_store(url).create()
    except StoreUnusable as refusal:
        output = str(refusal)
    print(json.dumps({"said": output, "seen": seen, "mounted": Path(folder).is_mount()}))
    sys.stdout.flush()
    os._exit(0)  # with the mount, whatever still asks it


if __name__ == "__main__":
    main(*sys.argv[1:])
