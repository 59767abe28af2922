"""Whole runs: processes, files, kill -9 and --resume."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from sklearn.metrics import mean_squared_error, r2_score

from molscore.bundle.reader import load_bundle
from molscore.bundle.structures import KnownStructures
from molscore.chem.parse import structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target, read_labelled
from molscore.errors import ConfigError, MolscoreError
from molscore.nn.config import ModelConfig
from molscore.train import pool
from molscore.train.assess import OutOfFold, average
from molscore.train.config import TrainConfig
from molscore.train.files import write_atomically
from molscore.train.folder import RunFolder
from molscore.train.places import check_places
from molscore.train.run import run_training
from molscore.train.shares import Task
from tests.molecules import VARIED, molecule

SMALL = ModelConfig(width=16)


def write_table(folder: Path, n: int = 36) -> Path:
    path = folder / "table.csv"
    smiles = [*VARIED, *("C" * k + "O" for k in range(3, n))][:n]
    rows = [f"{s},{np.sin(i):.3f}" for i, s in enumerate(smiles)]
    path.write_text("smiles,logS\n" + "\n".join(rows) + "\n")
    return path


def train(folder: Path, *, table=None, repeats=1, epochs=3, seed=1, **options):
    said: list[str] = []
    result = run_training(
        read_labelled(table or write_table(folder), targets=["logS"]),
        output=folder / "m.molscore",
        run_dir=folder / "run",
        model=SMALL,
        train=TrainConfig(epochs=epochs, batch_size=8, folds=3, repeats=repeats, seed=seed),
        log=said.append,
        **options,
    )
    return result, said


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder, *train(folder, repeats=2)


def experts_of(path):
    bundle = load_bundle(path)
    return [bundle.expert_weights(i) for i in range(bundle.manifest.n_experts)]


def test_the_run_folder_holds_the_cross_validation(finished):
    folder, result, _ = finished
    with (folder / "run" / "oof.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "fold", "target", "prediction", "repeat"]
    assert sorted(int(r["row"]) for r in rows) == sorted([*range(36), *range(36)])
    table = read_labelled(folder / "table.csv")
    for row in rows:
        assert float(row["target"]) == table.values[int(row["row"]), 0]
    for single in result.metrics["logS"]["folds"]:
        mine = [
            (float(r["target"]), float(r["prediction"]))
            for r in rows
            if (int(r["fold"]), int(r["repeat"])) == (single["fold"], single["repeat"])
        ]
        y, p = np.array(mine).T
        assert single["rmse"] == pytest.approx(mean_squared_error(y, p) ** 0.5, rel=1e-4)
        assert single["r2"] == pytest.approx(r2_score(y, p), rel=1e-3)
        assert single["n"] == len(mine)
    log = (folder / "run" / "log.txt").read_text()
    assert "36 rows read, 36 used" in log
    assert "expert 5: 3 epochs" in log
    mean = np.mean([s["rmse"] for s in result.metrics["logS"]["folds"]])
    assert result.metrics["logS"]["mean"]["rmse"] == pytest.approx(mean)
    assert json.loads((folder / "run" / "metrics.json").read_text()) == result.metrics


def test_the_bundle_says_where_its_numbers_come_from(finished):
    folder, result, _ = finished
    manifest = load_bundle(result.bundle).manifest
    assert manifest.n_experts == 6
    assert manifest.metrics["logS"]["mean"] == result.metrics["logS"]["mean"]
    assert manifest.training["counts"]["rows_used"] == 36
    assert manifest.training["config"]["seed"] == 1
    assert manifest.training["table"] == "table.csv"
    text = json.dumps(manifest.to_dict())
    assert str(folder) not in text


def test_the_bundle_knows_the_structures_it_was_trained_on(finished):
    _, result, _ = finished
    structures = KnownStructures.from_arrays(load_bundle(result.bundle).arrays)
    keys = [structure_key(molecule(s)) for s in ("OCC", "FC(F)(F)CCCN")]
    assert structures.seen(keys).tolist() == [True, False]


def test_the_same_seed_gives_the_same_model_whatever_the_workers(finished, tmp_path):
    folder, result, _ = finished
    again, _ = train(tmp_path, table=folder / "table.csv", repeats=2, workers=1)
    for a, b in zip(experts_of(result.bundle), experts_of(again.bundle), strict=True):
        assert all(np.array_equal(a[k], b[k]) for k in a)


def test_experts_that_are_cut_are_those_that_are_not(finished, tmp_path):
    """Of three experts in two processes one is trained in two parts."""
    folder, _, _ = finished
    results = []
    for workers in (1, 2):
        place = tmp_path / str(workers)
        place.mkdir()
        results.append(train(place, table=folder / "table.csv", workers=workers)[0].bundle)
    for a, b in zip(*map(experts_of, results), strict=True):
        assert all(np.array_equal(a[k], b[k]) for k in a)


def test_the_log_says_what_the_target_is(finished):
    folder, _, said = finished
    line = "table.csv: the target is 'logS' (regression)"
    assert said[0].endswith(line)
    assert (folder / "run" / "log.txt").read_text().splitlines()[0].endswith(line)


def test_files_of_a_run_have_the_mode_of_any_file(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", lambda p: save_file({"x": np.zeros(1)}, p))
        write_atomically(tmp_path / "b", lambda p: p.write_text("x") and None)
    finally:
        os.umask(before)
    assert [(tmp_path / n).stat().st_mode & 0o777 for n in ("a", "b")] == [0o640, 0o640]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_a_result_is_shown_in_a_line(finished):
    _, result, _ = finished
    shown = repr(result)
    assert len(shown) < 600
    assert result.sha256[:12] in shown
    assert result.sha256 not in shown
    for words in (str(result.bundle), str(result.run_dir), "'rmse'"):
        assert words in shown


@pytest.mark.parametrize("place", ["m.molscore", "run"])
def test_a_folder_that_takes_no_files_is_refused_at_once(tmp_path, monkeypatch, place):
    (tmp_path / "out").mkdir()
    (tmp_path / "runs").mkdir()
    shut = tmp_path / ("out" if place == "m.molscore" else "runs")
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != shut)
    folder = RunFolder(tmp_path / "runs" / "new" / "run")
    with pytest.raises(MolscoreError, match=rf"cannot write .*{place}: the folder .* is read-only"):
        check_places(tmp_path / "out" / "m.molscore", folder, force=False, resume=False)
    assert not folder.path.parent.exists()


def test_what_is_in_the_way_is_not_replaced(finished):
    folder, _, _ = finished
    before = (folder / "m.molscore").read_bytes()
    with pytest.raises(ConfigError, match="--force"):
        train(folder)
    (folder / "m.molscore").rename(folder / "other.molscore")
    try:
        with pytest.raises(ConfigError, match="holds a run already"):
            train(folder)
        with pytest.raises(ConfigError, match=r"seed was 1, is now 2"):
            train(folder, repeats=2, seed=2, resume=True)
        with pytest.raises(ConfigError, match=r"policy\.stereo was 'keep', is now 'drop'"):
            train(folder, repeats=2, resume=True, policy=ChemPolicy(stereo="drop"))
    finally:
        (folder / "other.molscore").rename(folder / "m.molscore")
    assert (folder / "m.molscore").read_bytes() == before


@pytest.mark.parametrize("device", ["tpu", "cuda"])
def test_a_device_that_is_not_there_leaves_no_run_behind(tmp_path, device):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(ConfigError, match=device):
        train(tmp_path, device=device)
    assert not (tmp_path / "run").exists()


def test_a_folder_is_no_place_for_a_model(tmp_path):
    (tmp_path / "m.molscore").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        train(tmp_path, force=True)


def test_config_json_says_all_that_decides_the_outcome(finished):
    folder, _, _ = finished
    config = json.loads((folder / "run" / "config.json").read_text())
    assert config["train"]["seed"] == 1
    assert config["policy"] == ChemPolicy().to_dict()
    assert config["targets"] == [Target(name="logS").to_dict()]


def test_half_written_files_of_a_killed_process_are_removed(tmp_path):
    folder = RunFolder(tmp_path)
    for name in ("checkpoints", "experts"):
        (tmp_path / name).mkdir()
    left = tmp_path / "checkpoints" / ".expert-000.safetensors.7.partial"
    left.touch()
    (tmp_path / "notes.txt").touch()
    folder.remove_partial_files()
    assert not left.exists()
    left.touch()
    folder.clear()
    assert not left.exists()
    assert (tmp_path / "notes.txt").exists()


def test_repeats_are_averaged_as_the_experts_of_a_bundle_are():
    targets = (Target(name="c", transform="log10"), Target(name="toxic", kind="classification"))
    found = average(targets, OutOfFold(np.array([[[1.0, 0.2]], [[3.0, 0.4]]])))
    assert 10 ** found[0, 0] == pytest.approx((10 + 1000) / 2)
    assert found[0, 1] == pytest.approx(0.3)


def test_what_a_library_prints_does_not_reach_the_parent(tmp_path):
    script = "import sys; print('chatter'); import molscore.train.worker as w; "
    script += "w._serve = lambda folder, requests, say, device: (print('more'), say({'a': 1})); "
    script += "sys.exit(w.main(['x', 'cpu']))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[-2:] == ['{"a": 1}', ""]
    assert "more" in done.stderr


def test_a_worker_without_a_parent_ends_without_a_word():
    script = "import sys, molscore.train.worker as w; "
    script += "w._serve = lambda folder, requests, say, device: say({'a': 1}); "
    script += "sys.exit(w.main(['x', 'cpu']))"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_two_runs_never_share_a_folder(finished, tmp_path):
    folder = finished[0]
    before = {path: read_quietly(path) for path in (folder / "run").rglob("*")}
    with RunFolder(folder / "run").hold():
        for options in ({"force": True}, {"force": True, "resume": True}):
            with pytest.raises(ConfigError, match="another run is at work in"):
                train(folder, repeats=2, **options)
    assert {path: read_quietly(path) for path in (folder / "run").rglob("*")} == before
    with RunFolder(folder / "run").hold():  # it was let go
        pass


def test_resuming_replaces_no_file_unasked(tmp_path, finished):
    run, output = tmp_path / "run", tmp_path / "m.molscore"
    shutil.copytree(finished[0] / "run", run)
    output.write_bytes(b"another model")
    with pytest.raises(ConfigError, match="exists"):
        train(tmp_path, repeats=2, resume=True)
    assert output.read_bytes() == b"another model"
    train(tmp_path, repeats=2, resume=True, force=True)
    assert output.read_bytes() != b"another model"


def test_there_must_be_a_run_to_resume(tmp_path):
    with pytest.raises(ConfigError, match="no run"):
        train(tmp_path, resume=True)


KILLED = """
import sys, pathlib
sys.path.insert(0, sys.argv[2])
from test_runs import train
train(pathlib.Path(sys.argv[1]), epochs=400)
"""


@pytest.mark.slow
def test_killed_and_resumed_gives_the_weights_of_a_run_that_was_not(tmp_path):
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    cut.mkdir()
    whole.mkdir()
    here, root = Path(__file__).parent, Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(cut), str(here)],
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    deadline = time.monotonic() + 120
    while not list((cut / "run").glob("checkpoints/expert-*.safetensors")):
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (cut / "m.molscore").exists()
    assert not list(cut.rglob("*.molscore"))
    wait_for_orphans(cut / "run")
    resumed, said = train(cut, epochs=400, resume=True)
    assert any("resuming" in line for line in said)
    straight, _ = train(whole, epochs=400)
    for a, b in zip(experts_of(resumed.bundle), experts_of(straight.bundle), strict=True):
        assert all(np.array_equal(a[k], b[k]) for k in a)
    assert (cut / "run/oof.csv").read_bytes() == (whole / "run/oof.csv").read_bytes()


def wait_for_orphans(run_dir: Path) -> None:
    """Workers end by themselves within seconds of their parent's death."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        alive = [
            p
            for p in Path("/proc").glob("[0-9]*/cmdline")
            if str(run_dir).encode() in read_quietly(p)
        ]
        if not alive:
            return
        time.sleep(0.2)
    raise AssertionError("training processes outlive their killed parent")


def read_quietly(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_worker_that_dies_ends_the_run_with_its_reason(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    monkeypatch.setattr(
        pool,
        "worker_command",
        lambda run_dir, device: [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"],
    )
    with pytest.raises(MolscoreError, match=r"killed by SIGKILL.*--resume"):
        train(tmp_path)
    assert folder.exists()
    assert not (tmp_path / "m.molscore").exists()


def test_a_worker_that_fails_hands_on_its_message(tmp_path, monkeypatch):
    def damaged(run_dir: Path, device: str) -> list[str]:
        (run_dir / "data.safetensors").write_bytes(b"junk")
        return original(run_dir, device)

    original = pool.worker_command
    monkeypatch.setattr(pool, "worker_command", damaged)
    with pytest.raises(MolscoreError, match="cannot be read as training data"):
        train(tmp_path)


@pytest.mark.parametrize("last", ["", "half a mess"])
def test_a_worker_that_prints_and_ends_is_noticed(tmp_path, monkeypatch, capfd, last):
    code = f"print('note from a library'); print('5'); print({last!r}, end='')"
    monkeypatch.setattr(pool, "worker_command", lambda *_: [sys.executable, "-c", code])
    with pytest.raises(MolscoreError, match="ended with exit code 0 while starting"):
        pool.train_experts(
            tmp_path, [Task(0)], n_workers=1, threads=1, device="cpu", report=lambda *_: None
        )
    assert "note from a library" in capfd.readouterr().err


def test_a_run_is_resumed_on_its_own_device_alone(tmp_path):
    train(tmp_path)
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    assert config["device"] == "cpu"
    path.write_text(json.dumps(config | {"device": "cuda"}))
    with pytest.raises(ConfigError, match="device was 'cuda', is now 'cpu'"):
        train(tmp_path, resume=True, force=True)


def test_what_killed_workers_left_is_cleared(tmp_path):
    left = tmp_path / "run" / "scratch" / "molscore-x"
    left.mkdir(parents=True)
    (left / "trees.json").write_text("{}")
    train(tmp_path)
    assert not (tmp_path / "run" / "scratch").exists()
