"""Memory and cores that this process may use, within the limits of its container."""

import math
from collections.abc import Iterator
from pathlib import Path

import psutil

_ROOT = Path("/")


def available_memory(root: Path = _ROOT) -> int:
    """Return how many bytes this process can still take.

    That is the lower of what the machine has available and what its control groups have left.
    Memory in which a group caches files counts as left, since Linux gives it back. `root` is the
    root directory.
    """
    left = [int(psutil.virtual_memory().available)]
    for group in _control_groups("memory", root):
        for limit in map(_number, (group / "memory.max", group / "memory.limit_in_bytes")):
            left += [] if limit is None else [limit - _used_memory(group)]
    return max(0, min(left))


def available_cores(root: Path = _ROOT) -> int:
    """Return how many cores this process can use: by its affinity, and by its control groups."""
    process = psutil.Process()
    cores = len(process.cpu_affinity()) if hasattr(process, "cpu_affinity") else psutil.cpu_count()
    shares = [float(cores or 1)]
    for group in _control_groups("cpu", root):
        quota = _number(group / "cpu.max") or _number(group / "cpu.cfs_quota_us")
        period = _number(group / "cpu.max", 1) or _number(group / "cpu.cfs_period_us")
        if quota and period:
            shares.append(quota / period)
    return max(1, math.ceil(min(shares)))


def _control_groups(controller: str, root: Path) -> Iterator[Path]:
    """Yield the directories of this process's groups, of either version, and of those above them.

    A container may show the path that its group has outside; then only the top one is there.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # it is not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            top = root / "sys/fs/cgroup" / (controller if controllers else "")
            names = Path(path).parts[1:]
            yield from (top.joinpath(*names[:depth]) for depth in range(len(names) + 1))


def _used_memory(group: Path) -> int:
    used = _number(group / "memory.current") or _number(group / "memory.usage_in_bytes") or 0
    counts = dict(line.split() for line in _text(group / "memory.stat").splitlines())
    return used - int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))


def _number(path: Path, place: int = 0) -> int | None:
    """Return a number in a file; None for "max" and -1, which are no limits, or without a file."""
    words = _text(path).split()
    return int(words[place]) if len(words) > place and words[place].isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
