import os
import subprocess
import sys
from pathlib import Path

import pytest

from molscore import cpus
from molscore.cpus import available_cpus, cgroup_quota


def make(tmp_path: Path, proc: str, files: dict[str, str]) -> float | None:
    (tmp_path / "cgroup").write_text(proc)
    root = tmp_path / "sys"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return cgroup_quota(tmp_path / "cgroup", root)


@pytest.mark.parametrize(
    ("proc", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2.0),
        ("0::/a/b\n", {"a/cpu.max": "400000 100000", "a/b/cpu.max": "300000 100000"}, 3.0),
        ("0::/../../a\n", {"a/cpu.max": "100000 100000"}, 1.0),
        (
            "4:cpu,cpuacct:/docker/x\n",
            {
                "cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            0.5,
        ),
        (
            "4:cpu:/x\n1:memory:/x\n",
            {"cpu/x/cpu.cfs_quota_us": "250000\n", "cpu/x/cpu.cfs_period_us": "100000\n"},
            2.5,
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "0"}, None),
        ("0::/\n", {"cpu.max": "nonsense"}, None),
        ("0::/\n", {}, None),
        ("rubbish\n", {}, None),
        ("", {}, None),
    ],
)
def test_quotas_of_both_versions(
    tmp_path: Path, proc: str, files: dict[str, str], quota: float | None
) -> None:
    assert make(tmp_path, proc, files) == quota


def test_no_cgroups_at_all(tmp_path: Path) -> None:
    assert cgroup_quota(tmp_path / "none", tmp_path) is None


@pytest.mark.parametrize(("quota", "n"), [(None, 3), (8.0, 3), (1.5, 2), (0.2, 1)])
def test_the_smaller_of_affinity_and_quota(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, n: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    monkeypatch.setattr(cpus, "cgroup_quota", lambda proc, root: quota)
    assert available_cpus() == n


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_the_affinity_of_a_real_process() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from molscore.cpus import available_cpus; print(available_cpus())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
