"""molscore distill: as a process, killed, resumed, and refused."""

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from commandline import MOLSCORE, TRAINING_TABLE, run_process

from molscore.bundle.reader import load_bundle

QUICK = ("--width", "8", "--epochs", "2", "--workers", "1")


@pytest.fixture(scope="module")
def distilled(trained: Path) -> Path:
    """The folder of `trained`, with `fast.molscore` and `fast-run` beside it."""
    (trained / "more.smi").write_text("CCBr\nOC\nC1CC oops\n")
    done = run_process(
        *("distill", "tiny.molscore", "table.csv", "--output", "fast.molscore"),
        *("--unlabelled", "more.smi", *QUICK),
        cwd=trained,
    )
    assert done.code == 0, done.err
    assert done.out == ""
    (trained / "fast.txt").write_text(done.err)
    yield trained
    for name in ("more.smi", "fast.molscore", "fast.txt"):
        (trained / name).unlink()
    for path in sorted((trained / "fast-run").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (trained / "fast-run").rmdir()


class TestResult:
    def test_the_log_says_what_was_learned_and_how_well(self, distilled: Path) -> None:
        log = (distilled / "fast.txt").read_text()
        for line in (
            "table.csv: 44 rows read, 44 used",
            "more.smi: 3 rows read, 1 used, 1 with an unusable SMILES, 1 of structures that are "
            "in the table or came before",
            "asking 2 experts for 45 molecules",
            "training 3 students of 2 epochs in 1 process on cpu",
        ):
            assert line in log
        last = log.splitlines()[-4:]
        for line, start in zip(
            last,
            (
                "mean over 2 held-out folds: rmse ",
                "the experts it learned from have rmse ",
                "90% intervals hold ",
                "",
            ),
            strict=True,
        ):
            assert line.startswith(f"logS: {start}")
        assert "outside the domain: rmse " in last[3]

    def test_it_predicts_and_is_evaluated_like_any_model(self, distilled: Path, invoke) -> None:
        model = distilled / "fast.molscore"
        done = invoke("predict", distilled / "table.csv", "--model", model)
        assert done.code == 0
        rows = list(csv.DictReader(done.out.splitlines()))
        assert len(rows) == 44
        assert {(row["status"], row["pred_logS_sd"]) for row in rows} == {("ok", "")}
        evaluated = invoke("evaluate", distilled / "table.csv", "--model", model)
        assert evaluated.code == 0
        assert "44 of 44 rows hold a structure the model was trained on" in evaluated.out

    def test_inspect_says_whose_student_it_is(self, distilled: Path, invoke) -> None:
        teacher = load_bundle(distilled / "tiny.molscore")
        shown = invoke("inspect", "--model", distilled / "fast.molscore").out
        assert f"student of      2 experts of tiny, sha256 {teacher.sha256}\n" in shown
        assert "against_teacher:" in shown
        about = json.loads(invoke("inspect", "--model", distilled / "fast.molscore", "--json").out)
        assert about["training"]["teacher"]["sha256"] == teacher.sha256
        assert about["n_experts"] == 1

    def test_folds_are_those_of_the_teacher(self, distilled: Path) -> None:
        pairs = []
        for run in ("tiny-run", "fast-run"):
            with (distilled / run / "oof.csv").open(newline="") as file:
                pairs.append([(r["row"], r["fold"], r["target"]) for r in csv.DictReader(file)])
        assert pairs[0] == pairs[1]

    def test_figures_of_the_teacher_are_its_own(self, distilled: Path) -> None:
        ours = load_bundle(distilled / "fast.molscore").manifest.metrics["logS"]["teacher"]
        theirs = load_bundle(distilled / "tiny.molscore").manifest.metrics["logS"]
        assert ours["mean"]["rmse"] == pytest.approx(theirs["mean"]["rmse"], rel=1e-4)


class TestRefusals:
    def test_another_table(self, trained: Path, tmp_path: Path, invoke) -> None:
        other = tmp_path / "other.csv"
        other.write_text(TRAINING_TABLE.replace("\n3,", "\n99,").rsplit("\n", 2)[0] + "\n")
        output = tmp_path / "x.molscore"
        result = invoke("distill", trained / "tiny.molscore", other, "--output", output, *QUICK)
        assert (result.code, result.out) == (3, "")
        (line,) = [x for x in result.err.splitlines() if x.startswith("error: ")]
        assert "43 usable rows, which are not the data" in line
        assert "give the table it was trained on, table.csv (44 rows used)" in line
        assert list(tmp_path.iterdir()) == [other]

    def test_a_table_without_the_target(self, trained: Path, tmp_path: Path, invoke) -> None:
        (tmp_path / "in.csv").write_text("smiles,y\nCCO,1\n")
        result = invoke(
            *("distill", trained / "tiny.molscore", tmp_path / "in.csv"),
            *("--output", tmp_path / "x.molscore"),
        )
        assert result.code == 2
        assert "logS" in result.err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--block", "catboost"), "a student is one network"),
            (("--folds", "3"), "No such option"),
            (("--epochs", "0"), "epochs must be between 1"),
        ],
    )
    def test_options_that_cannot_be_used(
        self, trained: Path, tmp_path: Path, invoke, options: tuple[str, ...], words: str
    ) -> None:
        result = invoke(
            *("distill", trained / "tiny.molscore", trained / "table.csv"),
            *("--output", tmp_path / "x.molscore", *options),
        )
        assert (result.code, result.out) == (2, "")
        assert words in result.err

    def test_the_model_is_not_written_over(self, trained: Path, invoke) -> None:
        model = trained / "tiny.molscore"
        before = model.read_bytes()
        result = invoke("distill", model, trained / "table.csv", "--output", model, "--force")
        assert result.code == 2
        assert "is the model itself" in result.err
        assert model.read_bytes() == before

    def test_no_such_model(self, trained: Path, tmp_path: Path, invoke) -> None:
        result = invoke(
            *("distill", tmp_path / "none.molscore", trained / "table.csv"),
            *("--output", tmp_path / "x.molscore"),
        )
        assert result.code == 4


@pytest.mark.slow
def test_killed_and_resumed_gives_the_student_of_a_run_that_was_not(
    trained: Path, tmp_path: Path
) -> None:
    long = ("--width", "8", "--epochs", "300", "--workers", "1")
    command = [
        *("distill", str(trained / "tiny.molscore"), str(trained / "table.csv")),
        *("--output", "cut.molscore", *long),
    ]
    with subprocess.Popen(
        [str(MOLSCORE), *command], cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        end = time.monotonic() + 120
        while not list((tmp_path / "cut-run" / "experts").glob("expert-000.*")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "cut.molscore").exists()
    resumed = run_process(*command, "--resume", cwd=tmp_path)
    assert resumed.code == 0, resumed.err
    assert "of 3 students are done" in resumed.err
    command[4] = "whole.molscore"
    whole = run_process(*command, cwd=tmp_path)
    assert whole.code == 0, whole.err
    a, b = (load_bundle(tmp_path / n).expert_weights(0) for n in ("cut.molscore", "whole.molscore"))
    assert all(np.array_equal(a[k], b[k]) for k in a)
    oof = [(tmp_path / run / "oof.csv").read_bytes() for run in ("cut-run", "whole-run")]
    assert oof[0] == oof[1]
