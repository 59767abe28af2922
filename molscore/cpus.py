"""How many CPUs this process may use."""

import math
import os
from pathlib import Path
from typing import Final

from molscore.errors import ConfigError

_PROC: Final = Path("/proc/self/cgroup")
_ROOT: Final = Path("/sys/fs/cgroup")


def available_cpus() -> int:
    """Return the CPUs of this process: affinity mask and cgroup quotas honoured, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    n = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    quota = cgroup_quota(_PROC, _ROOT)
    return max(1, n if quota is None else min(n, math.ceil(quota)))


def worker_count(workers: int) -> int:
    """Return how many processes an option `--workers` stands for; 0 takes the available CPUs.

    Raises:
        ConfigError: when it is negative.
    """
    if workers < 0:
        raise ConfigError(f"workers must be 0 (one per CPU) or more, got {workers}")
    return workers or available_cpus()


def cgroup_quota(proc: Path, root: Path) -> float | None:
    """Return the smallest CPU quota over this process's groups and their parents, in CPUs.

    Reads `cpu.max` (cgroup v2) and `cpu.cfs_quota_us` with `cpu.cfs_period_us` (v1). Inside a
    container the path that /proc names may not exist below `root`; the root itself then counts.

    Args:
        proc: /proc/self/cgroup.
        root: where cgroups are mounted.

    Returns:
        CPUs, or None without a limit.
    """
    quotas = []
    for line in _lines(proc):
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        _, controllers, path = parts
        if controllers == "":
            quotas += [_quota_v2(folder) for folder in _upwards(root, path)]
        elif "cpu" in controllers.split(","):
            for mount in (root / controllers, root / "cpu"):
                quotas += [_quota_v1(folder) for folder in _upwards(mount, path)]
    known = [quota for quota in quotas if quota is not None]
    return min(known, default=None)


def _upwards(mount: Path, path: str) -> list[Path]:
    """The group's folder and all above it, up to the mount."""
    names = [name for name in path.split("/") if name not in ("", ".", "..")]
    return [mount.joinpath(*names[:depth]) for depth in range(len(names), -1, -1)]


def _quota_v2(folder: Path) -> float | None:
    fields = " ".join(_lines(folder / "cpu.max")).split()
    return _ratio(*fields) if len(fields) == 2 else None


def _quota_v1(folder: Path) -> float | None:
    quota = _lines(folder / "cpu.cfs_quota_us")
    period = _lines(folder / "cpu.cfs_period_us")
    return _ratio(quota[0], period[0]) if quota and period else None


def _ratio(quota: str, period: str) -> float | None:
    """`max` and -1 stand for no limit."""
    try:
        result = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return result if result > 0 else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
