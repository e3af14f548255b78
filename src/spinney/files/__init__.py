"""Files and disks: path checks, copies, digests, free space, and the threads for such work."""
