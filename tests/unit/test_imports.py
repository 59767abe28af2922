"""Imports point one way, and heavy libraries stay where they belong."""

import ast
from pathlib import Path

import pytest

import molscore

PACKAGE = Path(molscore.__file__).parent

# A part may import from itself and from anything at a lower level.
LEVELS = {
    "errors": 0,
    "config": 1,
    "cpus": 1,
    "interrupts": 1,
    "stats": 1,
    "processes": 2,
    "chem": 3,
    "data": 4,
    "score": 5,
    "nn": 6,
    "bundle": 7,
    "trust": 8,
    "train": 9,
    "predict": 9,
    "report": 10,
    "api": 11,
    "cli": 12,
    "__main__": 13,
}
# Libraries that only these parts may import at all, wherever the statement stands.
OWNERS = {
    "rdkit": {"chem"},
    "typer": {"cli"},
    "rich": {"cli"},
    "torch_geometric": {"nn"},
    "catboost": {"train"},
    "torch": {"score", "nn", "bundle", "train", "predict"},
    "onnx": {"bundle", "predict"},
    "onnxruntime": {"bundle", "predict"},
}
# Libraries that no module may import on being imported itself.
LAZY = {"pandas", "torch_geometric", "sklearn", "openpyxl", "onnxscript", "catboost"}

MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imported_names(tree: ast.AST, *, run_on_import: bool) -> set[str]:
    """Every dotted name a module imports; with `run_on_import`, only what importing it runs."""
    names: set[str] = set()
    queue = [tree]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            deferred = isinstance(child, ast.FunctionDef | ast.Lambda) or is_type_checking(child)
            if not (run_on_import and deferred):
                queue.append(child)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
class TestModule:
    def test_imports_point_down(self, path: Path) -> None:
        part = part_of(path)
        if part == "__init__":
            pytest.skip("the package itself re-exports the API")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in imported_names(tree, run_on_import=False):
            if not name.startswith("molscore."):
                continue
            other = name.split(".")[1]
            if other in {part, "__version__"}:
                continue
            assert LEVELS[other] < LEVELS[part], f"{part} imports {name}"

    def test_libraries_stay_with_their_owners(self, path: Path) -> None:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in imported_names(tree, run_on_import=False):
            owners = OWNERS.get(name.split(".")[0])
            assert owners is None or part_of(path) in owners, f"{path} imports {name}"

    def test_slow_libraries_are_imported_late(self, path: Path) -> None:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        eager = {name.split(".")[0] for name in imported_names(tree, run_on_import=True)}
        assert not eager & LAZY, f"{path} imports {eager & LAZY} when it is imported"


def test_every_part_has_a_level() -> None:
    parts = {part_of(path) for path in MODULES} - {"__init__"}
    assert parts == set(LEVELS)


def test_no_module_is_long() -> None:
    too_long = {
        str(p.relative_to(PACKAGE)): n
        for p in MODULES
        if (n := len(p.read_text(encoding="utf-8").splitlines())) > 330
    }
    assert not too_long


def test_nothing_is_unpickled() -> None:
    """A bundle cannot execute anything: no module may even import a pickling library."""
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        roots = {name.split(".")[0] for name in imported_names(tree, run_on_import=False)}
        assert not roots & {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}, path
