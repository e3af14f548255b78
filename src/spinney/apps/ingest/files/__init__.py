"""Files and disks, whatever they hold: admitted paths, copies, digests, room, and the threads that do such work."""
