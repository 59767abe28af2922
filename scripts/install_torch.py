"""Install the torch release that constraints.txt pins, as a CPU build.

    python scripts/install_torch.py        # into the environment of this Python

On Linux the torch wheel of the ordinary index is built for CUDA: 0.5 GB, and it pulls several
GB of nvidia packages. CPU builds carry the version label `+cpu`, so this script asks for that
label: first at PyTorch's index of CPU wheels, then wherever pip is configured to look. Without
such a wheel it stops. (Looking at a wheel's dependencies instead of its label would not do:
`pip install --dry-run` downloads the whole wheel first.)

MOLSCORE_TORCH=any takes the wheel that pip finds on its own, CUDA or not.
"""

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

CPU_INDEX: Final = "https://download.pytorch.org/whl/cpu"
CONSTRAINTS: Final = Path(__file__).resolve().parents[1] / "constraints.txt"
PROBE_SECONDS: Final = 10
"""Patience with PyTorch's index; a network without a route to it must not stall the set-up."""


def main() -> int:
    """Install torch unless the pinned release is there; return the exit code."""
    pin = pinned("torch", CONSTRAINTS.read_text(encoding="utf-8"))
    if installed("torch") == pin:
        print(f"torch {pin}: already installed")
        return 0
    if os.environ.get("MOLSCORE_TORCH") == "any" or platform.system() != "Linux":
        return pip("install", "--constraint", str(CONSTRAINTS), f"torch=={pin}")
    wanted = f"{pin}+cpu"
    for place in (["--index-url", CPU_INDEX], []):
        if offers(wanted, place):
            # The rest of torch's dependencies come with the package, from pip's own indexes.
            return pip("install", "--no-deps", *place, f"torch=={wanted}")
    print(refusal(wanted), file=sys.stderr)
    return 1


def pinned(name: str, constraints: str) -> str:
    """Return the version that `constraints` (the text of the file) pins `name` to."""
    match = re.search(rf"^{re.escape(name)}==(\S+)$", constraints, flags=re.MULTILINE)
    if match is None:
        raise SystemExit(f"constraints.txt does not pin {name}")
    return match.group(1)


def installed(name: str) -> str | None:
    """Return the installed version of `name` without its label, or None."""
    try:
        return importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def offers(version: str, place: Sequence[str]) -> bool:
    """Tell whether pip sees a torch wheel of exactly `version` for this Python at `place`.

    Args:
        version: version with label.
        place: pip options that say where to look; none for pip's configuration.
    """
    command = [sys.executable, "-m", "pip", "index", "versions", "torch", *place]
    # Only PyTorch's index may be out of reach; pip's own indexes get the patience pip gives them.
    quick = ["--retries", "0"] if place else []
    try:
        answer = subprocess.run(
            [*command, *quick],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PROBE_SECONDS if place else None,
        ).stdout
    except subprocess.TimeoutExpired:
        return False
    return version in re.split(r"[\s,()]+", answer)


def pip(*arguments: str) -> int:
    """Run pip of this Python; return its exit code."""
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def refusal(wanted: str) -> str:
    """Return what to tell a user for whom there is no CPU build."""
    python = ".".join(map(str, sys.version_info[:2]))
    return (
        f"No CPU build of torch ({wanted}) for Python {python} on {platform.machine()} was found,\n"
        f"neither at {CPU_INDEX} nor where pip is configured to look.\n"
        "The ordinary torch wheel for Linux is built for CUDA and brings several GB of nvidia\n"
        "packages, so it is not installed unasked. Either\n"
        "  - make the CPU wheel reachable: a network route to the address above, or\n"
        "    PIP_FIND_LINKS=FOLDER with the wheel in FOLDER, or\n"
        "  - allow any build, CUDA included, with the environment variable MOLSCORE_TORCH=any."
    )


if __name__ == "__main__":
    sys.exit(main())
