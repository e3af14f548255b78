"""What Spinney asks of the machine that a process runs on: boot id, name resolution, file systems, standard streams,
and the import of modules that users name."""
