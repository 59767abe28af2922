"""Students: what they see, who judges them, and what is left of a run."""

import dataclasses
import json
from pathlib import Path

import handmade_bundle
import numpy as np
import pytest
from tree_bundle import NAMES, TARGETS, blended_bundle

from molscore.bundle.reader import load_bundle, parse_bundle
from molscore.bundle.structures import STRUCTURES, KnownStructures
from molscore.bundle.trees import WEIGHT
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import Target, read_labelled
from molscore.errors import BundleError, ConfigError, InputError
from molscore.nn.config import ModelConfig
from molscore.train import transfer
from molscore.train.config import TrainConfig
from molscore.train.data import TrainingData
from molscore.train.distillation import _prepare, run_distillation
from molscore.train.expert import ExpertTrainer
from molscore.train.folder import RunConfig
from molscore.train.listing import Listing
from molscore.train.prepare import prepare
from molscore.train.student import StudentModel, StudentTraining
from molscore.train.teacher import Teacher
from molscore.train.transfer import add_transfer
from tests.molecules import VARIED, molecule, pack

FOLDS = 3
MEANT = (
    Target(name="c", unit="mol/L", transform="log10"),
    Target(name="toxic", kind="classification", classes=("no", "yes")),
)
SMALL = StudentModel(width=8, plan="1x1@0.5")
QUICK = StudentTraining(epochs=2, batch_size=8)


def write_table(path: Path, n: int = 30) -> Path:
    smiles = [*VARIED, *("C" * k + "N" for k in range(3, n))][:n]
    rows = [
        f"{s},{'' if i % 7 == 3 else 1 + i % 5},{'yes' if i % 3 else 'no'}"
        for i, s in enumerate(smiles)
    ]
    path.write_text("smiles,c,toxic\n" + "\n".join(rows) + "\n")
    return path


def prepared_table(path: Path, **changes):
    settings = {"split": "random", "n_folds": FOLDS, "seed": 4, "descriptors": False} | changes
    table = read_labelled(path, targets=MEANT)
    return table, prepare(table, policy=ChemPolicy(), workers=1, **settings)


def write_teacher(path: Path, data: TrainingData, **config) -> Path:
    """Write a handmade model that says it was trained on `data`."""
    train = {"folds": FOLDS, "seed": 4} | config
    n = train["folds"] * train.get("repeats", 1)
    training = {
        "config": train,
        "data_sha256": data.digest(),
        "table": "table.csv",
        "counts": {"rows_used": len(data)},
    }
    path.write_bytes(handmade_bundle.bundle_bytes(MEANT, n_experts=n, training=training))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a teacher of three experts."""
    folder = tmp_path_factory.mktemp("distil")
    _, prepared = prepared_table(write_table(folder / "table.csv"))
    write_teacher(folder / "teacher.molscore", prepared.data)
    return folder


def distill(place: Path, out: Path, **options):
    said: list[str] = []
    options = {"model": SMALL, "training": QUICK} | options
    result = run_distillation(
        read_labelled(options.pop("table", place / "table.csv"), targets=MEANT),
        load_bundle(options.pop("teacher", place / "teacher.molscore")),
        output=out / "s.molscore",
        run_dir=out / "run",
        log=said.append,
        **options,
    )
    return result, said


@pytest.fixture(scope="module")
def finished(place, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    extra = Listing("more.smi", "5" * 64, ("OCC", "CCBr", "BrCC", "oops", "CCCl"))
    return place, out, *distill(place, out, extra=extra, workers=2)


def raw_outputs(smiles, expert: int) -> np.ndarray:
    """What expert `expert` of the handmade teacher says, [n, 2]."""
    symbols = [[a.GetSymbol() for a in molecule(s).mol.GetAtoms()] for s in smiles]
    return np.array(
        [[handmade_bundle.expected(s, target=t, expert=expert) for t in (0, 1)] for s in symbols]
    )


class TestTeacher:
    def test_student_k_is_told_what_expert_k_says_and_nothing_else(self, place):
        table, prepared = prepared_table(place / "table.csv")
        said = Teacher.of(load_bundle(place / "teacher.molscore")).teach(prepared.data)
        assert said.shape == (FOLDS + 1, len(prepared.data), 2)
        smiles = [table.smiles[row] for row in prepared.data.table_rows]
        raw = np.stack([raw_outputs(smiles, expert) for expert in range(FOLDS)])
        classes = 1 / (1 + np.exp(-raw[:, :, 1]))
        np.testing.assert_allclose(said[:FOLDS, :, 0], raw[:, :, 0], rtol=1e-5)
        np.testing.assert_allclose(said[:FOLDS, :, 1], classes, rtol=1e-5)
        # The student that ships: the mean where a prediction takes it, in the table's unit.
        mean = np.log10((10 ** raw[:, :, 0]).mean(axis=0))
        np.testing.assert_allclose(said[FOLDS, :, 0], mean, rtol=1e-5)
        np.testing.assert_allclose(said[FOLDS, :, 1], classes.mean(axis=0), rtol=1e-5)

    def test_several_experts_blind_to_a_fold_teach_together(self, place, tmp_path):
        _, prepared = prepared_table(place / "table.csv")
        path = write_teacher(tmp_path / "t.molscore", prepared.data, repeats=2)
        said = Teacher.of(load_bundle(path)).teach(prepared.data)
        single = Teacher.of(load_bundle(place / "teacher.molscore")).teach(prepared.data)
        assert said.shape == single.shape
        # Expert 0 and expert 3: 1 and 1.3 times the same sums.
        pair = np.log10((10 ** single[0, :, 0] + 10 ** (1.3 * single[0, :, 0])) / 2)
        np.testing.assert_allclose(said[0, :, 0], pair, rtol=1e-5)

    @pytest.mark.parametrize(("n", "said"), [(0, 0), (7, 1)])
    def test_a_teacher_whose_own_start_knew_the_rows_flatters_its_students(self, place, n, said):
        start = {"name": "wide", "sha256": "0" * 64, "rows_it_was_trained_on": n}
        warnings = teacher_from(place, start).warnings()
        assert len(warnings) == said
        assert all("wide, which was trained on the structures of 7" in text for text in warnings)

    @pytest.mark.parametrize("n", [-1, True, 2.5, "many\nrows", None, [1]])
    def test_a_number_of_rows_that_is_none_is_refused(self, place, n):
        with pytest.raises(BundleError, match="must be a whole number from 0, got") as error:
            teacher_from(place, {"name": "wide", "rows_it_was_trained_on": n}).warnings()
        assert "\n" not in str(error.value)

    def test_names_of_a_stranger_are_cut_and_printable(self, place):
        start = {"name": "\x1b[31m\n" + "w" * 500, "rows_it_was_trained_on": 7}
        teacher = teacher_from(place, start, name="\t" + "n" * 500)
        (said,) = teacher.warnings()
        assert said.startswith(f"?{'n' * 79} started from ?[31m?{'w' * 74}, which ")
        assert said.isprintable()
        assert teacher.about()["name"] == "?" + "n" * 79

    def test_an_expert_of_a_blend_speaks_with_the_weight_of_its_fold(self):
        bundle = parse_bundle(blended_bundle((0.5, 0.5)), where="blend")
        folds = [{"fold": k, "graph": float(k)} for k in (0, 1)]
        manifest = dataclasses.replace(
            bundle.manifest, metrics={t.name: {"weight": {"folds": folds}} for t in TARGETS}
        )
        bundle = dataclasses.replace(bundle, manifest=manifest)
        _, prepared = prepared_for_blend()
        teacher = Teacher(bundle, TrainConfig(folds=2))
        said = teacher.teach(prepared)
        trees = teacher._say(prepared, 0, {WEIGHT: np.zeros(2, np.float32)})
        network = teacher._say(prepared, 1, {WEIGHT: np.ones(2, np.float32)})
        shipped = np.mean([teacher._say(prepared, i, {}) for i in (0, 1)], axis=0)
        for found, wanted in zip(said, (trees, network, shipped), strict=True):
            np.testing.assert_allclose(found[:, 0], wanted[:, 0], rtol=1e-5)

    def test_a_fold_without_rows_needs_no_weight_of_a_blend(self):
        bundle = parse_bundle(blended_bundle((0.5, 0.5)), where="blend")
        folds = [{"fold": 0, "graph": 0.0}]
        manifest = dataclasses.replace(
            bundle.manifest, metrics={t.name: {"weight": {"folds": folds}} for t in TARGETS}
        )
        teacher = Teacher(dataclasses.replace(bundle, manifest=manifest), TrainConfig(folds=2))
        _, data = prepared_for_blend()
        data = dataclasses.replace(data, folds=np.array([0, 0, -1]))
        said = teacher.teach(data)
        np.testing.assert_allclose(said[1, :, 0], teacher._say(data, 1, {})[:, 0], rtol=1e-5)

    def test_a_blend_that_does_not_know_the_weights_of_its_folds(self):
        bundle = parse_bundle(blended_bundle((0.5, 0.5)), where="blend")
        _, data = prepared_for_blend()
        with pytest.raises(BundleError, match=r"which weight of the blend belongs to fold 0"):
            Teacher(bundle, TrainConfig(folds=2)).teach(data)

    @pytest.mark.parametrize("training", [{}, {"config": {"folds": 5}}, {"config": {"fold": 3}}])
    def test_a_bundle_that_does_not_say_how_it_was_trained(self, training):
        raw = handmade_bundle.bundle_bytes(n_experts=3, training=training)
        with pytest.raises(BundleError):
            Teacher.of(parse_bundle(raw, where="odd"))


def teacher_from(place: Path, start, **changes) -> Teacher:
    """Return the teacher as if it had started from another model."""
    bundle = load_bundle(place / "teacher.molscore")
    training = {**bundle.manifest.training, "start": start}
    manifest = dataclasses.replace(bundle.manifest, training=training, **changes)
    return Teacher.of(dataclasses.replace(bundle, manifest=manifest))


def prepared_for_blend():
    smiles = ["CCO", "CCN", "c1ccccc1"]
    rng = np.random.default_rng(0)
    data = TrainingData(
        graphs=pack(*smiles),
        values=np.zeros((3, 2)),
        is_class=(False, True),
        folds=np.array([0, 1, 0]),
        table_rows=np.arange(3),
        descriptors=rng.standard_normal((3, len(NAMES))) * 100,
    )
    return smiles, data


class TestHonesty:
    """Whatever a student must not see is replaced by nonsense, and nothing changes."""

    CONFIG = ModelConfig(width=8, plan="1x1@0.5")

    @pytest.fixture
    def data(self, place):
        _, prepared = prepared_table(place / "table.csv")
        teacher = Teacher.of(load_bundle(place / "teacher.molscore"))
        return dataclasses.replace(prepared.data, teacher=teacher.teach(prepared.data))

    def weights(self, data: TrainingData, student: int):
        train = TrainConfig(folds=FOLDS, epochs=1, batch_size=8)
        trainer = ExpertTrainer(data.of_expert(student), self.CONFIG, train, student)
        trainer.run_epoch()
        return trainer.result().weights

    @pytest.mark.parametrize("student", range(FOLDS + 1))
    def test_labels_and_other_experts_and_the_own_fold_are_not_seen(self, data, student):
        teacher = data.teacher.copy()
        teacher[np.arange(FOLDS + 1) != student] = 1e6
        if student < FOLDS:
            teacher[student, data.folds == student] = -1e6
        other = dataclasses.replace(data, values=np.full_like(data.values, 77.0), teacher=teacher)
        before, after = self.weights(data, student), self.weights(other, student)
        assert all(np.array_equal(before[k], after[k]) for k in before)

    def test_what_the_own_teacher_says_is_seen(self, data):
        teacher = data.teacher.copy()
        teacher[1, np.flatnonzero(data.folds != 1)[0]] += 1.0
        other = dataclasses.replace(data, teacher=teacher)
        before, after = self.weights(data, 1), self.weights(other, 1)
        assert any(not np.array_equal(before[k], after[k]) for k in before)

    def test_the_student_that_ships_is_blind_to_nothing(self, data):
        seen, held_out = data.of_expert(FOLDS).parts(0)
        assert (len(seen), len(held_out)) == (len(data), 0)


class TestRun:
    def test_one_expert_ships(self, finished):
        _, _, result, _ = finished
        manifest = load_bundle(result.bundle).manifest
        assert (manifest.n_experts, manifest.model.width) == (1, 8)
        assert manifest.targets == MEANT

    def test_the_bundle_says_whose_student_it_is(self, finished):
        place, _, result, _ = finished
        teacher = load_bundle(place / "teacher.molscore")
        about = load_bundle(result.bundle).manifest.training
        assert about["teacher"]["sha256"] == teacher.sha256
        assert about["teacher"]["name"] == "handmade"
        assert about["transfer"] == {
            "table": "more.smi",
            "sha256": "5" * 64,
            "rows_read": 5,
            "unusable_smiles": 1,
            "excluded": 0,
            "in_table_or_twice": 2,
            "used": 2,
        }

    def test_it_is_judged_as_a_training_run_is(self, finished):
        place, out, result, _ = finished
        table, prepared = prepared_table(place / "table.csv")
        rows = (out / "run" / "oof.csv").read_text().splitlines()
        assert rows[0] == "row,fold,target,prediction,name"
        n_labels = int(np.isfinite(table.values).sum())
        assert len(rows) == 1 + n_labels
        fold_of = dict(zip(prepared.data.table_rows, prepared.data.folds, strict=True))
        for line in rows[1:]:
            row, fold = map(int, line.split(",")[:2])
            assert fold_of[row] == fold
        of_c = result.metrics["c"]
        assert of_c["pooled"]["n"] == int(np.isfinite(table.values[:, 0]).sum())
        assert json.loads((out / "run" / "metrics.json").read_text()) == result.metrics

    def test_it_is_compared_with_its_teacher(self, finished):
        place, _, result, _ = finished
        _, prepared = prepared_table(place / "table.csv")
        data = prepared.data
        said = Teacher.of(load_bundle(place / "teacher.molscore")).teach(data)
        errors = []
        for fold in range(FOLDS):
            rows = (data.folds == fold) & np.isfinite(data.values[:, 0])
            errors.append(np.sqrt(np.mean((said[fold, rows, 0] - data.values[rows, 0]) ** 2)))
        assert result.metrics["c"]["teacher"]["mean"]["rmse"] == pytest.approx(np.mean(errors))
        for name in ("c", "toxic"):
            # Of every row, labelled or not.
            assert result.metrics[name]["against_teacher"]["pooled"]["n"] == len(data)
            assert result.metrics[name]["against_teacher"]["mean"]["rmse"] > 0

    def test_structures_are_those_with_a_label(self, finished):
        _, _, result, _ = finished
        arrays = load_bundle(result.bundle).arrays
        assert len(arrays[STRUCTURES]) == result.prepared.counts["structures"]

    def test_structures_of_the_teacher_are_kept(self, place, tmp_path):
        teacher = load_bundle(place / "teacher.molscore")
        strange = KnownStructures.of(["strange"]).parts[b""]
        teacher = dataclasses.replace(teacher, arrays={**teacher.arrays, STRUCTURES: strange})
        table, prepared = prepared_table(place / "table.csv")
        result = run_distillation(
            table,
            teacher,
            output=tmp_path / "s.molscore",
            run_dir=tmp_path / "run",
            model=SMALL,
            training=dataclasses.replace(QUICK, epochs=1),
        )
        found = load_bundle(result.bundle).arrays[STRUCTURES]
        assert set(found) == {*strange, *KnownStructures.of(prepared.keys).parts[b""]}

    def test_the_log_speaks_of_students(self, finished):
        _, _, _, said = finished
        assert "training 4 students of 2 epochs in 2 processes on cpu" in said
        assert "asking 3 experts for 32 molecules" in said

    def test_the_same_seed_gives_the_same_student_whatever_the_workers(self, place, tmp_path):
        one, _ = distill(place, tmp_path, workers=1)
        first = load_bundle(one.bundle).expert_weights(0)
        (tmp_path / "run" / "experts" / "expert-003.safetensors").unlink()
        again, said = distill(place, tmp_path, workers=2, resume=True, force=True)
        assert "resuming: 3 of 4 students are done" in said
        second = load_bundle(again.bundle).expert_weights(0)
        assert all(np.array_equal(first[k], second[k]) for k in first)

    def test_a_teacher_without_folds_has_one_student(self, place, tmp_path):
        _, prepared = prepared_table(place / "table.csv", n_folds=1)
        teacher = write_teacher(tmp_path / "t.molscore", prepared.data, folds=1)
        result, said = distill(place, tmp_path, teacher=teacher)
        assert result.metrics == {}
        assert "training 1 student of 2 epochs in 1 process on cpu" in said


class TestRefusals:
    def refused(self, place, tmp_path, error, words, **options):
        with pytest.raises(error, match=words):
            distill(place, tmp_path, **options)
        assert not (tmp_path / "run").exists()

    def test_another_table(self, place, tmp_path):
        table = write_table(tmp_path / "other.csv", n=28)
        words = r"other.csv: 28 usable rows, which are not the data .*table.csv \(30 rows used\)"
        self.refused(place, tmp_path, InputError, words, table=table)

    def test_the_same_rows_with_another_value(self, place, tmp_path):
        text = (place / "table.csv").read_text()
        (tmp_path / "other.csv").write_text(text.replace("CCO,1,no", "CCO,2,no"))
        self.refused(place, tmp_path, InputError, "not the data", table=tmp_path / "other.csv")

    def test_other_folds(self, place, tmp_path):
        folds = np.arange(30) % FOLDS
        self.refused(place, tmp_path, InputError, "not the data", folds=folds)

    def test_a_folds_file_is_asked_for(self, place, tmp_path):
        _, prepared = prepared_table(place / "table.csv")
        teacher = write_teacher(tmp_path / "t.molscore", prepared.data, split="file")
        self.refused(place, tmp_path, ConfigError, "the same --folds-file", teacher=teacher)

    def test_excluded_structures_are_asked_for(self, place, tmp_path):
        benchmark = Listing("b.smi", "", ("OCC", "c1ccccc1"))
        keys, _ = benchmark.read(ChemPolicy())
        _, prepared = prepared_table(place / "table.csv", exclude=keys)
        path = write_teacher(tmp_path / "t.molscore", prepared.data)
        self.refused(place, tmp_path, InputError, "not the data", teacher=path)
        table = read_labelled(place / "table.csv", targets=MEANT)
        found = _prepare(table, Teacher.of(load_bundle(path)), SMALL, None, keys, 1)
        assert len(found.data) == len(prepared.data) == 28

    def test_a_student(self, finished, tmp_path):
        place, _, result, _ = finished
        words = r"is a student itself: distil the model it learned from \(handmade\)"
        self.refused(place, tmp_path, ConfigError, words, teacher=result.bundle)

    def test_a_student_with_trees(self):
        with pytest.raises(ConfigError, match="a student is one network"):
            StudentModel(block="catboost")
        with pytest.raises(ConfigError, match="a student is one network"):
            StudentModel(blend=True)

    def test_a_schedule_is_checked_as_in_training(self):
        with pytest.raises(ConfigError, match="epochs must be between"):
            StudentTraining(epochs=0)


def test_transfer_molecules_stand_behind_the_table_in_no_fold(place):
    _, prepared = prepared_table(place / "table.csv", descriptors=True)
    extra = Listing("x", "", ("C(C)O", "CCBr", "CCBr", ""))
    data, counts = add_transfer(prepared.data, prepared.keys, extra, ChemPolicy())
    assert len(data) == len(data.graphs) == len(data.descriptors) == len(prepared.data) + 1
    assert (data.folds[-1], data.table_rows[-1]) == (-1, -1)
    assert np.isnan(data.values[-1]).all()
    assert (counts["used"], counts["in_table_or_twice"], counts["unusable_smiles"]) == (1, 2, 1)


def test_excluded_structures_do_not_come_back_as_transfer_molecules(place, tmp_path):
    benchmark = Listing("b.smi", "", ("OCC", "CCBr", "c1ccccc1"))
    _, prepared = prepared_table(place / "table.csv", exclude=benchmark.read(ChemPolicy())[0])
    path = write_teacher(tmp_path / "t.molscore", prepared.data)
    extra = Listing("x.smi", "", ("BrCC", "CCCl", "CCO", "CCCBr"))
    training = dataclasses.replace(QUICK, epochs=1)
    result, said = distill(
        place, tmp_path, teacher=path, extra=extra, exclude=[benchmark], training=training
    )
    counts = load_bundle(result.bundle).manifest.training["transfer"]
    assert (counts["excluded"], counts["used"]) == (2, 2)
    assert "b.smi: 3 structures to leave out (0 rows could not be read)" in said
    assert any("4 rows read, 2 used" in t and "2 of excluded ones" in t for t in said)


def test_blocks_of_transfer_molecules_change_nothing(place, monkeypatch):
    _, prepared = prepared_table(place / "table.csv", descriptors=True)
    extra = Listing("x", "", tuple("C" * k + "Br" for k in range(2, 9)))
    whole, _ = add_transfer(prepared.data, prepared.keys, extra, ChemPolicy())
    monkeypatch.setattr(transfer, "BLOCK", 3)
    cut, counts = add_transfer(prepared.data, prepared.keys, extra, ChemPolicy())
    assert counts["used"] == 7
    assert cut.digest() == whole.digest()
    none, _ = add_transfer(prepared.data, prepared.keys, Listing("x", "", ()), ChemPolicy())
    assert none.digest() == prepared.data.digest()


def test_the_settings_of_students_come_back_from_a_file(tmp_path, place):
    _, prepared = prepared_table(place / "table.csv")
    data = dataclasses.replace(prepared.data, teacher=np.zeros((4, len(prepared.data), 2)))
    data.save(tmp_path / "data.safetensors")
    again = TrainingData.load(tmp_path / "data.safetensors")
    assert again.digest() == data.digest() != prepared.data.digest()
    config = RunConfig(
        model=SMALL.plain(), train=QUICK.schedule(TrainConfig(folds=3)), teacher_sha256="a" * 64
    )
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert (config.n_experts, config.kind(3)) == (4, "graph")
