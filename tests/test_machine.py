"""Memory and cores of this process, in containers made up here."""

import os
from pathlib import Path

import psutil
import pytest

from microveil.machine import available_cores, available_memory

MB = 2**20


def container(root: Path, groups: str, files: dict[str, str]) -> Path:
    """Write what Linux shows of the control groups of a process."""
    for name, content in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.fixture
def _of_eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: list(range(8)), raising=False)


def test_outside_of_a_container_the_machine_decides(tmp_path: Path) -> None:
    assert 0 < available_memory(tmp_path) <= psutil.virtual_memory().total
    assert 0 < available_memory() <= psutil.virtual_memory().total
    assert 1 <= available_cores() <= available_cores(tmp_path) <= (os.cpu_count() or 1)


@pytest.mark.usefixtures("_of_eight_cores")
def test_control_groups_of_version_2(tmp_path: Path) -> None:
    top, job = "sys/fs/cgroup", "sys/fs/cgroup/user/job"
    root = container(
        tmp_path,
        "0::/user/job\n",
        {
            f"{top}/memory.max": "max\n",
            f"{top}/cpu.max": "max 100000\n",
            f"{top}/user/memory.max": f"{90 * MB}\n",
            f"{top}/user/memory.current": f"{30 * MB}\n",
            f"{job}/memory.max": f"{64 * MB}\n",
            f"{job}/memory.current": f"{40 * MB}\n",
            f"{job}/memory.stat": f"anon {10 * MB}\ninactive_file {16 * MB}\n",
            f"{job}/cpu.max": "250000 100000\n",
        },
    )
    assert available_memory(root) == 40 * MB  # files in the cache are given back
    assert available_cores(root) == 3
    (root / top / "user" / "memory.current").write_text(f"{89 * MB}\n")
    assert available_memory(root) == MB
    (root / job / "memory.current").write_text(f"{99 * MB}\n")
    assert available_memory(root) == 0
    (root / job / "cpu.max").write_text("10000 100000\n")
    assert available_cores(root) == 1


@pytest.mark.usefixtures("_of_eight_cores")
def test_control_groups_of_version_1(tmp_path: Path) -> None:
    memory, cpu = "sys/fs/cgroup/memory", "sys/fs/cgroup/cpu"
    root = container(
        tmp_path,
        "9:memory:/docker/0123\n8:cpu,cpuacct:/docker/0123\n1:name=systemd:/\n0::/\n",
        {  # a container sees its own group as the top one
            f"{memory}/memory.limit_in_bytes": f"{64 * MB}\n",
            f"{memory}/memory.usage_in_bytes": f"{60 * MB}\n",
            f"{memory}/memory.stat": f"inactive_file 0\ntotal_inactive_file {20 * MB}\n",
            f"{cpu}/cpu.cfs_quota_us": "200000\n",
            f"{cpu}/cpu.cfs_period_us": "100000\n",
        },
    )
    assert available_memory(root) == 24 * MB
    assert available_cores(root) == 2
    (root / memory / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")  # no limit
    (root / cpu / "cpu.cfs_quota_us").write_text("-1\n")
    assert available_memory(root) > 64 * MB
    assert available_cores(root) == 8


@pytest.mark.usefixtures("_of_eight_cores")
def test_the_tightest_of_nested_groups_of_version_2_decides(tmp_path: Path) -> None:
    top = "sys/fs/cgroup"
    files = {f"{top}/memory.max": "max\n", f"{top}/cpu.max": "max 100000\n"}
    for depth, (memory, cpu) in enumerate(
        [("max", "50000 100000"), (f"{32 * MB}", "max 100000"), ("max", "400000 100000")], 1
    ):  # the middle one limits memory, the outer one cores, to half of one
        group = top + "".join(f"/{name}" for name in ("kube", "pod", "job")[:depth])
        files |= {f"{group}/memory.max": f"{memory}\n", f"{group}/cpu.max": f"{cpu}\n"}
        files[f"{group}/memory.current"] = f"{(4 - depth) * 8 * MB}\n"
    root = container(tmp_path, "0::/kube/pod/job\n", files)
    assert available_memory(root) == 16 * MB
    assert available_cores(root) == 1
    (root / top / "kube" / "cpu.max").write_text("max 100000\n")
    assert available_cores(root) == 4
    (root / top / "kube" / "pod" / "memory.max").write_text("0\n")
    assert available_memory(root) == 0


@pytest.mark.usefixtures("_of_eight_cores")
def test_the_tightest_of_nested_groups_of_version_1_decides(tmp_path: Path) -> None:
    memory, cpu = "sys/fs/cgroup/memory", "sys/fs/cgroup/cpu"
    root = container(
        tmp_path,
        "9:memory:/batch/job\n8:cpu,cpuacct:/batch/job\n0::/\n",
        {
            f"{memory}/memory.limit_in_bytes": f"{2**63 - 4096}\n",
            f"{memory}/batch/memory.limit_in_bytes": f"{20 * MB}\n",
            f"{memory}/batch/memory.usage_in_bytes": f"{15 * MB}\n",
            f"{memory}/batch/job/memory.limit_in_bytes": f"{64 * MB}\n",
            f"{memory}/batch/job/memory.usage_in_bytes": f"{10 * MB}\n",
            f"{cpu}/cpu.cfs_quota_us": "-1\n",
            f"{cpu}/cpu.cfs_period_us": "100000\n",
            f"{cpu}/batch/cpu.cfs_quota_us": "150000\n",
            f"{cpu}/batch/cpu.cfs_period_us": "50000\n",
            f"{cpu}/batch/job/cpu.cfs_quota_us": "-1\n",
            f"{cpu}/batch/job/cpu.cfs_period_us": "100000\n",
        },
    )
    assert available_memory(root) == 5 * MB
    assert available_cores(root) == 3
    (root / cpu / "batch/job/cpu.cfs_quota_us").write_text("1000\n")
    assert available_cores(root) == 1
