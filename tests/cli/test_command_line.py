"""The command line itself: help, options, usage errors, exit codes."""

import ast
import dataclasses
import importlib.util
import re
import shlex
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest
import typer
from commandline import run_process

import molscore
from molscore.chem.policy import ChemPolicy
from molscore.cli import main as main_module
from molscore.cli.app import app
from molscore.cli.option_texts import OPTION_TEXTS
from molscore.cli.options import OutputFormat
from molscore.cli.train import Task, Transform
from molscore.data import targets, writers
from molscore.data.records import TableOptions
from molscore.errors import MolscoreError
from molscore.nn.config import ModelConfig
from molscore.predict import engine
from molscore.train.config import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands  # type: ignore[attr-defined]
NAMES = ("train", "distill", "predict", "evaluate", "export", "inspect", "models", "featurize")
TRAINING = ("train", "distill")

OPTIONS = {
    "train": "output run-dir target task transform unit note folds-file workers device strict "
    "force resume epochs folds repeats split seed block plan integrator readout width descriptors "
    "salts neutralize stereo tautomers structures smiles-column format separator encoding header "
    "decimal sheet verbose quiet debug",
    "distill": "output run-dir unlabelled folds-file exclude workers device force resume epochs "
    "seed block plan integrator readout width descriptors smiles-column format separator encoding "
    "header decimal sheet verbose quiet debug",
    "predict": "model interval domain neighbours output output-format model-info workers engine "
    "device batch-size strict force smiles-column format separator encoding header decimal sheet "
    "verbose quiet debug",
    "evaluate": "model interval target output output-format json workers engine device strict "
    "force smiles-column format separator encoding header decimal sheet verbose quiet debug",
    "export": "model output force verbose quiet debug",
    "inspect": "model json verbose quiet debug",
    "models": "json verbose quiet debug",
    "featurize": "output kind output-format strict force salts neutralize stereo tautomers "
    "smiles-column format separator encoding header decimal sheet verbose quiet debug",
}


def options_of(name: str) -> dict[str, typing.Any]:
    return {opt: p for p in COMMANDS[name].params for opt in p.opts if opt.startswith("--")}


class TestHelp:
    def test_of_the_program(self, invoke) -> None:
        result = invoke("--help")
        assert (result.code, result.err) == (0, "")
        for name in NAMES:
            assert re.search(rf"^  {name} ", result.out, re.MULTILINE)

    @pytest.mark.parametrize("name", NAMES)
    def test_of_a_command(self, invoke, name: str) -> None:
        result = invoke(name, "--help")
        assert (result.code, result.err) == (0, "")
        assert f"molscore {name}" in result.out.partition("Example")[2]

    @pytest.mark.parametrize("name", NAMES)
    def test_options_are_those_promised_and_each_has_a_text(self, name: str) -> None:
        options = options_of(name)
        assert {f"--{o}" for o in OPTIONS[name].split()} <= set(options)
        for option, parameter in options.items():
            assert parameter.help, f"{name} {option}"
        if "--model" in options:
            assert options["--model"].metavar == "BUNDLE"

    def test_an_option_has_the_same_text_shape_everywhere(self) -> None:
        flags: dict[str, set[bool]] = {}
        for name in NAMES:
            for option, parameter in options_of(name).items():
                flags.setdefault(option, set()).add(parameter.is_flag)
        assert all(len(kinds) == 1 for kinds in flags.values())

    def test_help_of_narrow_terminals(self) -> None:
        assert run_process("train", "--help", env={"COLUMNS": "20"}).code == 0

    def test_version(self, invoke) -> None:
        assert invoke("--version").out == f"molscore {molscore.__version__}\n"

    def test_as_a_module(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "molscore", "--version"], capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == f"molscore {molscore.__version__}\n"


class TestOptionsFollowTheConfigurations:
    @pytest.mark.parametrize("config", [TableOptions, ChemPolicy, ModelConfig, TrainConfig])
    def test_every_field_is_an_option(self, config) -> None:
        assert set(OPTION_TEXTS[config]) == {f.name for f in dataclasses.fields(config)}

    @pytest.mark.parametrize("config", [TableOptions, ChemPolicy, ModelConfig, TrainConfig])
    def test_defaults_and_choices(self, config) -> None:
        options = options_of("train")
        hints = typing.get_type_hints(config)
        for field in OPTION_TEXTS[config]:
            option = options["--" + field.replace("_", "-")]
            assert option.default == config.default(field)
            if typing.get_origin(hints[field]) is typing.Literal:
                assert tuple(option.type_descriptor.choices) == typing.get_args(hints[field])

    def test_lists_of_values_that_cannot_be_imported_at_start_up(self) -> None:
        assert typing.get_args(Transform) == typing.get_args(targets.Transform)
        assert set(typing.get_args(Task)) == {"auto", *typing.get_args(targets.TargetKind)}
        assert typing.get_args(OutputFormat) == typing.get_args(writers.OutputFormat)
        assert set(options_of("predict")["--engine"].type_descriptor.choices) == set(engine.ENGINES)
        assert set(options_of("predict")["--device"].type_descriptor.choices) == set(engine.DEVICES)


class TestUsageErrors:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("", "Missing command"),
            ("predikt x", "predikt"),
            ("predict", "FILE"),
            ("predict x --model", "--model"),
            ("predict x --model m --nope", "--nope"),
            ("train -", "--output"),
            ("train x --output ./", "is a folder"),
            ("train x --output /", "is a folder"),
            ("train x --output ..", "is a folder"),
            ("train x --output m --readout max", "virtual-node"),
            ("train x --output m --epochs many", "--epochs"),
            ("train x --output m --epochs 0", "epochs"),
            ("train x --output m --plan 0x4", "plan"),
            ("train x --output m --block resnet", "dmpnn"),
            ("train x --output m --split by-luck", "by-luck"),
            ("train x --output m --salts none", "parent"),
            ("train x --output m --header maybe", "auto"),
            ("featurize x --kind graphs", ".npz"),
            ("export --model m --output m.pb", ".onnx"),
            ("evaluate x --model m --output -", "--output -"),
        ],
    )
    def test_one_line_and_exit_code_2(self, invoke, arguments: str, words: str) -> None:
        result = invoke(*shlex.split(arguments))
        assert (result.code, result.out) == (2, "")
        (line,) = result.err.splitlines()
        assert line.startswith("error: ")
        assert words in line

    def test_a_wrong_choice_is_told_in_plain_words(self, invoke) -> None:
        result = invoke("predict", "x", "--model", "m", "--output-format", "pdf")
        assert "'--output-format': 'pdf' is not one of 'auto', 'csv'" in result.err
        assert "Value error" not in result.err


class TestExitCodes:
    @pytest.mark.parametrize("command", ["predict x", "evaluate x", "export", "inspect"])
    def test_a_model_that_cannot_be_read_is_a_bad_model(
        self, invoke, monkeypatch, tmp_path: Path, command: str
    ) -> None:
        model = tmp_path / "m.molscore"
        model.touch()
        open_path = Path.open

        def refuse(path: Path, *args: object, **options: object):
            if path == model:
                raise PermissionError(13, "Permission denied", str(path))
            return open_path(path, *args, **options)

        # root may read everything, so the mode of the file would not do
        monkeypatch.setattr("os.access", lambda *_, **__: False)
        monkeypatch.setattr(Path, "open", refuse)
        more = ("--output", tmp_path / "m.onnx") if command == "export" else ()
        result = invoke(*command.split(), "--model", model, *more)
        assert (result.code, result.out) == (4, "")
        assert result.err == f"error: cannot read {model}: Permission denied\n"

    @pytest.fixture
    def raising(self, monkeypatch, invoke):
        """Make the command raise what is given."""

        def run(error: BaseException, *arguments: str):
            def dispatch(_: object) -> int:
                raise error

            monkeypatch.setattr("molscore.cli.app.dispatch", dispatch)
            return invoke(*arguments)

        return run

    def test_codes_of_our_errors_are_in_the_table(self) -> None:
        codes = {kind.exit_code for kind in [MolscoreError, *MolscoreError.__subclasses__()]}
        documented = set(map(int, re.findall(r"^\| (\d+) \|", main_module.__doc__ or "", re.M)))
        assert codes | {0, 130, 141} == documented

    def test_a_bug_is_one_line(self, raising) -> None:
        result = raising(KeyError("[nH]\nsecond"))
        assert result.code == 1
        (line,) = result.err.splitlines()
        assert line.startswith("error: internal fault: KeyError: ")
        assert "--debug" in line

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (KeyboardInterrupt(), 130),
            (MemoryError(), 1),
            (OSError(28, "No space left on device", "x"), 1),
        ],
    )
    def test_others(self, raising, error: BaseException, code: int) -> None:
        result = raising(error)
        assert result.code == code
        assert len(result.err.splitlines()) == 1

    @pytest.mark.parametrize("place", ["before", "behind"])
    def test_debug_shows_the_traceback(self, invoke, tmp_path: Path, place: str) -> None:
        arguments = ["inspect", "--model", str(tmp_path / "none")]
        arguments.insert(0 if place == "before" else 3, "--debug")
        result = invoke(*arguments)
        assert result.code == 4
        assert "Traceback (most recent call last)" in result.err
        assert "Traceback" not in invoke("inspect", "--model", tmp_path / "none").err


class TestExamplesInHelp:
    """The examples of `--help` are run as they stand (training ones are only parsed)."""

    @pytest.fixture
    def folder(self, tmp_path: Path, model: Path, monkeypatch) -> Path:
        (tmp_path / "esol.molscore").write_bytes(model.read_bytes())
        (tmp_path / "smiles.txt").write_text("CCO ethanol\nCCN ethylamine\n")
        (tmp_path / "measured.csv").write_text("smiles,y\nCCO,0.1\nCCN,0.2\nCCC,0.3\n")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    @pytest.mark.parametrize("name", [n for n in NAMES if n not in TRAINING])
    def test_runs(self, folder: Path, name: str) -> None:
        lines = re.findall(r"^  (.*molscore .*)$", COMMANDS[name].epilog, re.MULTILINE)
        assert lines
        for line in lines:
            script, sink = [*line.split(" > "), ""][:2]
            source, _, command = script.rpartition(" | ")
            stdin = source.removeprefix("echo ").encode() + b"\n" if source else b""
            result = run_process(*shlex.split(command)[1:], stdin=stdin)
            assert result.code == 0, result.err
            assert sink in {"", "predictions.csv"}

    @pytest.mark.parametrize("name", TRAINING)
    def test_training_ones_parse(self, name: str) -> None:
        lines = re.findall(rf"^  molscore {name} (.*)$", COMMANDS[name].epilog, re.MULTILINE)
        assert lines
        for line in lines:
            with COMMANDS[name].make_context(name, shlex.split(line)) as context:
                assert context.params["output"]


@pytest.fixture(scope="module")
def script() -> types.ModuleType:
    path = ROOT / "scripts" / "cli_reference.py"
    spec = importlib.util.spec_from_file_location("cli_reference", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestReference:
    def test_covers_every_command(self, script) -> None:
        assert set(script.COMMANDS) == set(COMMANDS) == set(NAMES)

    def test_replaces_what_stands_between_the_markers(self, script, monkeypatch) -> None:
        monkeypatch.setattr(script, "reference", lambda: "new\n")
        text = f"before\n{script.BEGIN}\nold\n{script.END}\nafter\n"
        assert script.with_reference(text) == text.replace("\nold\n", "\n\nnew\n\n")
        for bad in ("no markers", f"{script.END} {script.BEGIN}", text + text):
            with pytest.raises(ValueError, match="expected one"):
                script.with_reference(bad)

    def test_readme_is_not_stale(self, script) -> None:
        """`python scripts/cli_reference.py --write README.md` mends this."""
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        if script.BEGIN not in readme:
            pytest.skip("the README has no command-line reference")
        assert script.with_reference(readme) == readme


def test_the_package_calls_train_whatever_was_imported_first() -> None:
    assert isinstance(molscore.train, types.ModuleType)
    assert callable(molscore.train)
    assert molscore.train.config.TrainConfig is TrainConfig  # type: ignore[attr-defined]


def test_rich_is_used_for_bars_alone() -> None:
    """Data and messages never go through Rich, which reads brackets as markup."""
    for path in (ROOT / "molscore").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            alias.name if isinstance(node, ast.Import) else node.module or ""
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        if any(name.partition(".")[0] == "rich" for name in names):
            assert path.name == "progress.py"
