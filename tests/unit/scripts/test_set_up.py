"""The set-up scripts: which torch they take, and that the files they rest on agree."""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


dev = load("dev")
install_torch = load("install_torch")


class FakePip:
    """Stands in for pip: an index at each place, and a record of what was installed."""

    def __init__(self, cpu_index: str | None, own_index: str) -> None:
        self.cpu_index, self.own_index = cpu_index, own_index
        self.installed: list[tuple[str, ...]] = []

    def run(self, command, *, timeout=None, **options):
        assert options["stdin"] is subprocess.DEVNULL
        arguments = tuple(command[3:])
        if arguments[0] == "install":
            self.installed.append(arguments)
            return subprocess.CompletedProcess(command, 0)
        assert arguments[:3] == ("index", "versions", "torch")
        if "--index-url" not in arguments:
            return subprocess.CompletedProcess(command, 0, stdout=self.own_index)
        assert timeout is not None
        assert timeout <= 15
        if self.cpu_index is None:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 0, stdout=self.cpu_index)


LISTING = "torch ({0})\nAvailable versions: {0}, 2.5.1+cpu, 2.4.0\n"
PIN = install_torch.pinned("torch", (ROOT / "constraints.txt").read_text())


@pytest.fixture
def torch_install(monkeypatch):
    def install(cpu_index, own_index, *, system="Linux", present=None, choice=None):
        fake = FakePip(cpu_index, own_index)
        monkeypatch.setattr(install_torch.subprocess, "run", fake.run)
        monkeypatch.setattr(install_torch.platform, "system", lambda: system)
        monkeypatch.setattr(install_torch, "installed", lambda name: present)
        monkeypatch.delenv("MOLSCORE_TORCH", raising=False)
        if choice:
            monkeypatch.setenv("MOLSCORE_TORCH", choice)
        return install_torch.main(), fake.installed

    return install


CPU, PLAIN = LISTING.format(f"{PIN}+cpu"), LISTING.format(PIN)


def test_the_cpu_index_is_asked_first(torch_install):
    code, installed = torch_install(CPU, CPU)
    wanted = ("install", "--no-deps", "--index-url", install_torch.CPU_INDEX, f"torch=={PIN}+cpu")
    assert (code, installed) == (0, [wanted])


@pytest.mark.parametrize("cpu_index", [None, "", LISTING.format("1.0.0+cpu")])
def test_then_the_places_pip_knows(torch_install, cpu_index):
    code, installed = torch_install(cpu_index, CPU)
    assert (code, installed) == (0, [("install", "--no-deps", f"torch=={PIN}+cpu")])


@pytest.mark.parametrize("own_index", ["", PLAIN, LISTING.format(f"{PIN}+cpu.cxx11")])
def test_a_cuda_build_is_never_taken_unasked(torch_install, capsys, own_index):
    code, installed = torch_install(None, own_index)
    assert (code, installed) == (1, [])
    message = capsys.readouterr().err
    assert "MOLSCORE_TORCH=any" in message
    assert "CUDA" in message
    assert f"{PIN}+cpu" in message


def test_any_build_is_taken_where_asked(torch_install):
    code, installed = torch_install(None, PLAIN, choice="any")
    assert code == 0
    assert [arguments[-1] for arguments in installed] == [f"torch=={PIN}"]


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_elsewhere_the_ordinary_wheel_is_a_cpu_build(torch_install, system):
    code, installed = torch_install(None, PLAIN, system=system)
    assert code == 0
    assert [arguments[-1] for arguments in installed] == [f"torch=={PIN}"]


def test_an_installed_torch_is_kept(torch_install):
    assert torch_install(None, "", present=PIN) == (0, [])
    assert torch_install(CPU, "", present="2.0.0")[1] != []


def test_installed_reads_the_version_without_its_label():
    import torch

    assert install_torch.installed("torch") == torch.__version__.split("+")[0]
    assert install_torch.installed("no-such-distribution") is None


def test_constraints_pin_every_direct_dependency_within_its_range():
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    text = (ROOT / "constraints.txt").read_text()
    pins = dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)$", text, flags=re.MULTILINE))
    for requirement in map(Requirement, itertools.chain.from_iterable(groups)):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_supported_pythons_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = re.findall(r"Python :: (\d)\.(\d+)", " ".join(project["classifiers"]))
    assert [(int(a), int(b)) for a, b in listed] == list(dev.VERSIONS)


def test_the_environment_is_set_up_once_per_state_of_its_inputs(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(dev, "run", lambda *command: calls.append(command))
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    dev.setup()
    assert [command[1] for command in calls] == ["scripts/install_torch.py", "-m"]
    dev.setup()
    assert len(calls) == 2
    monkeypatch.setattr(dev, "fingerprint", lambda: "changed")
    dev.setup()
    assert len(calls) == 4


def test_a_failing_command_stops_the_task_with_its_exit_code():
    with pytest.raises(SystemExit) as stopped:
        dev.run(sys.executable, "-c", "raise SystemExit(7)")
    assert stopped.value.code == 7


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["setup", "extra"], ["demo", "-k", "x"]])
def test_wrong_usage_installs_nothing(arguments):
    script = ROOT / "scripts" / "dev.py"
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ")


def test_make_and_ci_are_thin_over_the_script():
    makefile = (ROOT / "Makefile").read_text()
    for task in ("setup", "demo", "test"):
        assert re.search(rf"^[a-z ]*\b{task}\b[a-z ]*:", makefile, flags=re.MULTILINE)
    ci = ROOT / ".ci" / "run"
    assert os.access(ci, os.X_OK)
    assert subprocess.run(["bash", "-n", ci], check=False).returncode == 0
