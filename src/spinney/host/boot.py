"""The machine that this process runs on."""

from pathlib import Path


def boot_id() -> str:
    """Return the id of the kernel's boot: processes of an earlier boot of this machine cannot be alive."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
