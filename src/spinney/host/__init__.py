"""What Spinney asks of the machine that a process runs on: its boot id, file systems, standard streams."""
