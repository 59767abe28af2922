"""molscore train, and what can be done with its result."""

import csv
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from commandline import MOLSCORE, TRAINING_TABLE, run_process

from molscore.bundle.reader import load_bundle

QUICK = ("--width", "8", "--folds", "2", "--epochs", "1", "--workers", "1")


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class TestResult:
    def test_run_folder(self, trained: Path) -> None:
        oof = read_rows(trained / "tiny-run" / "oof.csv")
        assert len(oof) == 44
        assert list(oof[0])[:4] == ["row", "fold", "target", "prediction"]
        assert json.loads((trained / "tiny-run" / "metrics.json").read_text())["logS"]
        assert json.loads((trained / "tiny-run" / "config.json").read_text())["train"]["seed"] == 3

    def test_bundle_carries_target_and_settings(self, trained: Path) -> None:
        manifest = load_bundle(trained / "tiny.molscore").manifest
        (target,) = manifest.targets
        assert (target.name, target.unit, target.note) == ("logS", "log10 mol/L", "made up")
        assert (manifest.model.width, manifest.n_experts) == (16, 2)

    def test_log_is_plain_and_ends_with_the_cross_validation(self, trained: Path) -> None:
        log = (trained / "log.txt").read_text()
        assert "44 rows read, 44 used" in log
        assert "\x1b" not in log
        assert re.search(r"^logS: mean over 2 held-out folds: rmse [\d.]+", log, re.MULTILINE)

    def test_the_log_of_the_run_says_what_the_terminal_said(self, trained: Path) -> None:
        kept = (trained / "tiny-run" / "log.txt").read_text()
        for text in ("the target is 'logS' (regression)", "training 2 experts of 2 epochs"):
            assert text in kept
            assert text in (trained / "log.txt").read_text()

    def test_nothing_else_is_written(self, trained: Path) -> None:
        names = {p.name for p in trained.iterdir()}
        assert names == {"table.csv", "tiny.molscore", "tiny-run", "log.txt"}

    def test_predict_evaluate_inspect(self, trained: Path, invoke) -> None:
        model = trained / "tiny.molscore"
        assert invoke("predict", trained / "table.csv", "--model", model).code == 0
        evaluated = invoke("evaluate", trained / "table.csv", "--model", model)
        assert "44 of 44 rows hold a structure the model was trained on" in evaluated.out
        assert "made up" in invoke("inspect", "--model", model).out

    @pytest.mark.slow
    def test_torch_engine_agrees(self, trained: Path) -> None:
        arguments = ["predict", trained / "table.csv", "--model", trained / "tiny.molscore"]
        ours = csv.DictReader(run_process(*arguments).out.splitlines())
        theirs = csv.DictReader(run_process(*arguments, "--engine", "torch").out.splitlines())
        for a, b in zip(ours, theirs, strict=True):
            assert float(a["pred_logS"]) == pytest.approx(float(b["pred_logS"]), abs=1e-4)

    def test_export_is_valid_onnx_with_a_guide(self, trained: Path, invoke, tmp_path: Path) -> None:
        out = tmp_path / "tiny.onnx"
        result = invoke("export", "--model", trained / "tiny.molscore", "--output", out)
        assert (result.code, result.out) == (0, "")
        onnx.checker.check_model(onnx.load(out), full_check=True)
        guide = json.loads((tmp_path / "tiny.json").read_text())
        assert [t["name"] for t in guide["targets"]] == ["logS"]


MLP = ("--block", "mlp", "--head-plan", "1x2@learned", "--integrator", "heun")


@pytest.fixture(scope="module")
def mlp_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mlp")
    (folder / "table.csv").write_text(TRAINING_TABLE)
    done = run_process(
        *("train", "table.csv", "--target", "logS", "--output", "m.molscore"),
        *(*QUICK, *MLP),
        cwd=folder,
    )
    assert done.code == 0, done.err
    return folder


@pytest.mark.slow
class TestModelsOfDescriptors:
    """`--block mlp`, and a head with a plan, from the table to the exported graph."""

    def test_settings_are_stored_as_they_were_meant(self, mlp_folder: Path) -> None:
        model = load_bundle(mlp_folder / "m.molscore").manifest.model
        assert (model.block, model.descriptors, model.readout) == ("mlp", "rdkit", "sum")
        assert model.head_plan == "1x2@learned"

    def test_every_row_has_its_answer(self, mlp_folder: Path) -> None:
        smiles = ["CCO", "", "C1CC", "[Na+].[Cl-]", "C[Sn](C)(C)C", "C" * 300, "CCO"]
        (mlp_folder / "in.csv").write_text("smiles,n\n" + "".join(f"{s},1\n" for s in smiles))
        answers = {}
        for engine in ("onnx", "torch"):
            done = run_process(
                *("predict", "in.csv", "--model", "m.molscore", "--engine", engine), cwd=mlp_folder
            )
            assert done.code == 0, done.err
            answers[engine] = list(csv.DictReader(done.out.splitlines()))
        rows = answers["onnx"]
        assert [row["smiles"] for row in rows] == smiles
        statuses = ["ok", "empty", "invalid_smiles", "ok", "ok", "ok", "ok"]
        assert [row["status"] for row in rows] == statuses
        assert rows[0] == rows[-1]
        for a, b in zip(rows, answers["torch"], strict=True):
            if a["status"] == "ok":
                assert float(a["pred_logS"]) == pytest.approx(float(b["pred_logS"]), abs=1e-4)

    def test_a_run_goes_on_and_ends_at_the_same_weights(self, mlp_folder: Path) -> None:
        before = load_bundle(mlp_folder / "m.molscore")
        for what in ("m.molscore", "m-run/experts/expert-001.safetensors"):
            (mlp_folder / what).unlink()
        done = run_process(
            *("train", "table.csv", "--target", "logS", "--output", "m.molscore", "--resume"),
            *(*QUICK, *MLP),
            cwd=mlp_folder,
        )
        assert done.code == 0, done.err
        after = load_bundle(mlp_folder / "m.molscore")
        for name, array in before.expert_weights(1).items():
            assert np.array_equal(array, after.expert_weights(1)[name]), name

    def test_export_takes_descriptors_alone(self, mlp_folder: Path) -> None:
        done = run_process("export", "--model", "m.molscore", "--output", "m.onnx", cwd=mlp_folder)
        assert (done.code, done.out) == (0, "")
        graph = onnx.load(mlp_folder / "m.onnx").graph
        assert [port.name for port in graph.input] == ["descriptors"]


class TestRefusals:
    @pytest.fixture
    def train(self, invoke, tmp_path: Path):
        def run(content: str, *options: str):
            (tmp_path / "in.csv").write_text(content)
            out = tmp_path / "m.molscore"
            return invoke("train", tmp_path / "in.csv", "--output", out, *QUICK, *options)

        return run

    def test_ambiguous_target_lists_the_candidates(self, train) -> None:
        result = train("smiles,a,b\nCCO,1.5,2.5\nCCN,2.5,3.5\n")
        assert (result.code, result.out) == (2, "")
        assert "'a', 'b'" in result.err
        assert "--target" in result.err

    def test_existing_model(self, train, tmp_path: Path) -> None:
        (tmp_path / "m.molscore").write_text("precious")
        result = train("smiles,y\nCCO,1.5\nCCN,2.5\n")
        assert result.code == 2
        assert "--force" in result.err
        assert (tmp_path / "m.molscore").read_text() == "precious"

    def test_strict_names_the_first_bad_row(self, train, tmp_path: Path) -> None:
        result = train("smiles,y\nCCO,1.5\nC[/x],2.5\nCCN,<3\n", "--strict")
        assert result.code == 3
        assert result.err.splitlines()[-1].startswith("error: ")
        assert "line 3: C[/x]: " in result.err
        assert not (tmp_path / "m.molscore").exists()
        assert not (tmp_path / "m-run").exists()

    def test_an_mlp_without_descriptors(self, train) -> None:
        table = "smiles,y\nCCO,1.5\nCCN,2.5\n"
        result = train(table, "--block", "mlp", "--descriptors", "none")
        assert (result.code, result.out) == (2, "")
        assert "block 'mlp' is made of descriptors" in result.err

    def test_header_alone(self, train) -> None:
        assert train("smiles,y\n").code == 3

    def test_resume_without_a_run(self, train) -> None:
        result = train("smiles,y\nCCO,1.5\nCCN,2.5\n", "--resume")
        assert result.code == 2
        assert "--resume" in result.err

    def test_two_words_without_an_order(self, train) -> None:
        result = train("smiles,y\nCCO,hit\nCCN,miss\n", "--target", "y", "--task", "classification")
        assert result.code == 3
        assert "inactive/active" in result.err
        assert "it holds 'hit', 'miss'" in result.err

    def test_a_read_only_folder_is_told_before_the_table_is_read(self, train, monkeypatch) -> None:
        monkeypatch.setattr("os.access", lambda *_, **__: False)
        result = train("")
        assert result.code == 1
        (line,) = result.err.splitlines()
        assert line.startswith("error: cannot write ")

    def test_transform_of_what_has_no_logarithm(self, train) -> None:
        result = train("smiles,y\nCCO,-1.5\nCCN,-2.5\n", "--transform", "log10")
        assert result.code == 3
        assert "log10" in result.err


@pytest.mark.slow
class TestInterruption:
    def test_ctrl_c_leaves_a_run_that_goes_on(self, tmp_path: Path) -> None:
        (tmp_path / "in.csv").write_text(TRAINING_TABLE)
        command = [
            *(str(MOLSCORE), "train", "in.csv", "--target", "logS", "--output", "m.molscore"),
            *("--width", "8", "--folds", "2", "--epochs", "200", "--workers", "1"),
        ]
        with subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            end = time.monotonic() + 60
            while not (tmp_path / "m-run" / "config.json").exists():
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (130, "")
        assert err.splitlines()[-1] == "interrupted"
        assert "--resume goes on" in err
        assert not (tmp_path / "m.molscore").exists()
        done = run_process(*command[1:], "--resume", cwd=tmp_path)
        assert done.code == 0, done.err
        assert (tmp_path / "m.molscore").exists()

    def test_train_needs_only_its_output_folder(self, trained: Path, tmp_path: Path) -> None:
        shutil.copy(trained / "table.csv", tmp_path / "table.csv")
        done = run_process(
            *("train", tmp_path / "table.csv", "--target", "acid", *QUICK),
            *("--output", tmp_path / "m.molscore"),
            env={"HOME": "/missing", "TMPDIR": "/missing", "XDG_CACHE_HOME": "/missing"},
            cwd=Path("/proc"),
        )
        assert done.code == 0, done.err
        assert "acid: mean over 2 held-out folds: roc_auc" in done.err


class TestTrees:
    """Block catboost and --blend, from the table to the prediction."""

    TREES = ("--folds", "2", "--iterations", "10", "--workers", "1")

    @pytest.fixture
    def train(self, invoke, tmp_path: Path):
        pytest.importorskip("catboost")
        (tmp_path / "in.csv").write_text(TRAINING_TABLE)

        def run(*options: str):
            out = tmp_path / "m.molscore"
            return invoke("train", tmp_path / "in.csv", "--output", out, *self.TREES, *options)

        return run

    def predict(self, invoke, folder: Path) -> list[dict[str, str]]:
        done = invoke("predict", folder / "in.csv", "--model", folder / "m.molscore")
        assert done.code == 0
        return list(csv.DictReader(done.out.splitlines()))

    def test_one_flag_trains_trees_on_the_same_folds(self, train, trained, invoke, tmp_path):
        result = train("--target", "logS", "--block", "catboost", "--seed", "3")
        assert (result.code, result.out) == (0, "")
        assert "training 2 experts of 10 trees in 1 process" in result.err
        ours = read_rows(tmp_path / "m-run" / "oof.csv")
        theirs = read_rows(trained / "tiny-run" / "oof.csv")
        assert [(r["row"], r["fold"]) for r in ours] == [(r["row"], r["fold"]) for r in theirs]
        rows = self.predict(invoke, tmp_path)
        assert all(r["status"] == "ok" and float(r["pred_logS_sd"]) >= 0 for r in rows)
        shown = invoke("inspect", "--model", tmp_path / "m.molscore").out
        assert "block catboost: boosted trees (10 a target) on 217 RDKit descriptors" in shown
        refused = invoke(
            *("predict", tmp_path / "in.csv", "--model", tmp_path / "m.molscore"),
            *("--engine", "torch"),
        )
        assert refused.code == 2
        assert "use --engine onnx" in refused.err
        evaluated = invoke("evaluate", tmp_path / "in.csv", "--model", tmp_path / "m.molscore")
        assert evaluated.code == 0
        out = tmp_path / "m.onnx"
        assert invoke("export", "--model", tmp_path / "m.molscore", "--output", out).code == 0
        onnx.checker.check_model(onnx.load(out), full_check=True)

    @pytest.mark.slow
    def test_a_blend_shows_network_trees_and_both(self, train, invoke, tmp_path: Path) -> None:
        result = train(
            *("--blend", "--target", "logS", "--target", "acid", "--width", "8"),
            *("--epochs", "1"),
        )
        assert result.code == 0, result.err
        assert re.search(
            r"^logS: network alone rmse [\d.]+, trees alone rmse [\d.]+; "
            r"weight of the network [01]\.",
            result.err,
            re.MULTILINE,
        )
        metrics = json.loads((tmp_path / "m-run" / "metrics.json").read_text())
        for target in ("logS", "acid"):
            assert {"mean", "graph", "trees", "weight"} <= set(metrics[target])
            assert 0 <= metrics[target]["weight"]["graph"] <= 1
        rows = self.predict(invoke, tmp_path)
        assert all(r["status"] == "ok" and 0 <= float(r["pred_acid"]) <= 1 for r in rows)
        shown = invoke("inspect", "--model", tmp_path / "m.molscore").out
        assert "blended with boosted trees (10 a target) on 217 RDKit descriptors" in shown

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--block", "catboost", "--plan", "4x1@1"), "plan '4x1@1' belongs to a network"),
            (("--block", "catboost", "--epochs", "3"), "epochs 3 belongs to a network"),
            (("--block", "catboost", "--blend"), "blend True belongs to a network"),
            (("--block", "dmpnn"), "iterations 10 belongs to trees"),
        ],
    )
    def test_options_that_would_do_nothing_are_refused(
        self, train, tmp_path: Path, options: tuple[str, ...], words: str
    ) -> None:
        result = train("--target", "logS", *options)
        assert result.code == 2
        assert words in result.err
        assert not (tmp_path / "m-run").exists()
