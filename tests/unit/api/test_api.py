"""The Python surface."""

import inspect
import math
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commandline import predicted, write_model, write_two_target_model

import molscore
from molscore import api
from molscore.api.options import build_configs
from molscore.api.training import refuse_unusable_rows, training_extra
from molscore.chem.policy import ChemPolicy
from molscore.data.names import free_names
from molscore.data.records import TableOptions
from molscore.data.targets import read_labelled
from molscore.errors import BundleError, ConfigError, InputError
from molscore.nn.config import ModelConfig
from molscore.predict.engine import OnnxEngine
from molscore.train.config import TrainConfig


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("api") / "hand.molscore")


class TestPredictor:
    COLUMNS = ("smiles", "pred_y", "pred_y_sd", "status", "error")

    def test_one_smiles(self, model: Path) -> None:
        frame = molscore.load(model).predict("CCO")
        assert tuple(frame.columns) == self.COLUMNS
        assert len(frame) == 1
        assert frame.pred_y[0] == pytest.approx(predicted("C", "C", "O"), rel=1e-6)

    def test_every_input_has_its_row(self, model: Path) -> None:
        frame = molscore.load(model).predict(["CCO", "bad!", "", "C"])
        assert frame.status.tolist() == ["ok", "invalid_smiles", "empty", "ok"]
        assert frame.pred_y.isna().tolist() == [False, True, True, False]
        assert frame.error[0] == ""
        assert "bad!" in frame.smiles[1]
        assert frame.pred_y.dtype == np.float64

    def test_series_keeps_its_index_and_missing_values_are_empty(self, model: Path) -> None:
        series = pd.Series(["CCO", None, float("nan"), pd.NA], index=["a", "b", "c", "d"])
        frame = molscore.load(model).predict(series)
        assert frame.index.tolist() == ["a", "b", "c", "d"]
        assert frame.status.tolist() == ["ok", "empty", "empty", "empty"]

    def test_nothing(self, model: Path) -> None:
        frame = molscore.load(model).predict([])
        assert tuple(frame.columns) == self.COLUMNS
        assert len(frame) == 0

    def test_other_sequences(self, model: Path) -> None:
        predictor = molscore.load(model)
        expected = predictor.predict(["CCO", "C"]).pred_y.tolist()
        assert predictor.predict(("CCO", "C")).pred_y.tolist() == expected
        assert predictor.predict(np.array(["CCO", "C"])).pred_y.tolist() == expected

    def test_what_is_not_text_is_refused_with_its_place(self, model: Path) -> None:
        with pytest.raises(InputError, match=r"smiles\[1\]: expected text, got int 7"):
            molscore.load(model).predict(["CCO", 7])  # type: ignore[list-item]

    @pytest.mark.parametrize(
        "smiles",
        [
            *(None, 5, b"CCO", Path("x.csv"), {"smiles": "CCO"}),
            *(pd.DataFrame({"smiles": ["CCO"]}), np.array([["CCO"]]), np.array("CCO")),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_what_is_no_list_is_refused(self, model: Path, smiles) -> None:
        with pytest.raises(InputError, match="smiles: expected a SMILES or a list of them, got "):
            molscore.load(model).predict(smiles)

    def test_half_a_surrogate_pair_is_a_row_like_others(self, model: Path) -> None:
        frame = molscore.load(model).predict(["CC\ud800", "CCO"])
        assert frame.status.tolist() == ["invalid_smiles", "ok"]

    def test_same_as_the_command_line(self, model: Path, tmp_path: Path) -> None:
        smiles = ["CCO", "bad!", *("C" * n for n in range(1, 600))]
        table = tmp_path / "in.smi"
        table.write_text("\n".join(smiles) + "\n")
        summary = api.predict_table(table, model, tmp_path / "o.csv")
        assert (summary.n_read, summary.n_ok, summary.counts["invalid_smiles"]) == (601, 600, 1)
        read = pd.read_csv(tmp_path / "o.csv", keep_default_na=False, na_values={"pred_y": [""]})
        frame = molscore.load(model).predict(smiles)
        assert tuple(read.columns) == self.COLUMNS
        np.testing.assert_allclose(frame.pred_y, read.pred_y, rtol=1e-5)

    def test_classes_are_probabilities(self, tmp_path: Path) -> None:
        path = write_two_target_model(tmp_path / "two.molscore")
        frame = molscore.load(path).predict("CCO")
        assert list(frame.columns)[1:5] == ["pred_y", "pred_y_sd", "pred_toxic", "pred_toxic_sd"]
        assert 0.5 < frame.pred_toxic[0] < 1
        assert math.isfinite(frame.pred_toxic_sd[0])

    def test_the_model_is_made_ready_once(self, model: Path, monkeypatch) -> None:
        predictor = molscore.load(model)
        monkeypatch.setattr(OnnxEngine, "__init__", None)
        assert predictor.predict("CCO").status.tolist() == ["ok"]

    def test_what_it_says_of_itself(self, model: Path) -> None:
        predictor = molscore.load(model)
        assert predictor.manifest.targets[0].unit == "log10 mol/L"
        assert predictor.model_id in repr(predictor)

    def test_refusals(self, model: Path) -> None:
        with pytest.raises(BundleError, match=r"none\.molscore"):
            molscore.load(model.with_name("none.molscore"))
        with pytest.raises(ConfigError, match="caffe"):
            molscore.load(model, engine="caffe")
        with pytest.raises(ConfigError, match="torch"):
            molscore.load(model, device="cuda")


class TestEvaluate:
    def test_data_frame(self, model: Path) -> None:
        frame = pd.DataFrame({"smiles": ["CCO", "CCN", "CCC"], "y": [0.1, 0.2, None]})
        result = molscore.evaluate(model, frame)
        assert result.summary.n_ok == 3
        assert result.n_seen == 1
        assert result.metrics["y"]["all"]["n"] == 2
        assert result.metrics["y"]["seen"]["n"] == 1
        assert result.metrics["y"]["seen"]["r2"] is None

    def test_unknown_option(self, model: Path) -> None:
        frame = pd.DataFrame({"smiles": ["CCO"], "y": [0.1]})
        with pytest.raises(ConfigError, match=r"'smile_column'; did you mean 'smiles_column'"):
            molscore.evaluate(model, frame, smile_column="smiles")


class TestOptions:
    CONFIGS = (TableOptions, ChemPolicy, ModelConfig, TrainConfig)

    def test_each_goes_to_its_owner(self) -> None:
        table, policy, model, train = build_configs(
            {"header": "no", "salts": "parent", "width": 64, "epochs": 3}, *self.CONFIGS
        )
        assert (table.header, policy.salts, model.width, train.epochs) == ("no", "parent", 64, 3)
        assert train.folds == TrainConfig.default("folds")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"epoch": 3}, "did you mean 'epochs'"),
            ({"width": "wide"}, "expected int"),
            ({"salts": "none"}, "whole"),
            ({"split": "luck"}, "luck"),
        ],
    )
    def test_refusals(self, options: dict[str, object], words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            build_configs(options, *self.CONFIGS)

    def test_no_name_belongs_to_two(self) -> None:
        names = [n for c in self.CONFIGS for n in c.__dataclass_fields__]
        assert len(names) == len(set(names))


class TestTrain:
    def test_is_the_folder_and_the_function(self) -> None:
        assert molscore.train.__name__ == "molscore.train"
        with pytest.raises(ConfigError, match="unknown option 'widht'; did you mean 'width'"):
            molscore.train("x.csv", output="m.molscore", widht=8)

    def test_help_and_signature_are_those_of_the_function(self) -> None:
        assert inspect.signature(molscore.train) == inspect.signature(api.train)
        text = pydoc.render_doc(molscore.train, renderer=pydoc.plaintext)
        assert "molscore.train - Train experts on a table by cross-validation" in text
        assert "transform: Literal['none', 'log10', 'ln', 'log1p'] = 'none'," in text
        assert "folds_file: a table with the columns row, fold" in text
        assert "-> TrainResult" in text

    def test_the_signature_costs_nothing_until_it_is_asked_for(self) -> None:
        code = (
            "import sys, molscore; t = molscore.train; heavy = ('torch', 'pandas', 'numpy');"
            "print([m for m in (*heavy, 'inspect', 'molscore.api') if m in sys.modules]);"
            "t.__doc__; t.__signature__; print([m for m in heavy[:2] if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[1] == "[]"
        assert "torch" not in done.stdout
        assert "molscore.api" not in done.stdout

    @pytest.mark.parametrize("option", [{"task": "ranking"}, {"transform": "log3"}])
    def test_unknown_values(self, option: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match=f"unknown {next(iter(option))}"):
            api.train("x.csv", output="m.molscore", **option)  # type: ignore[arg-type]

    def test_strict_counts_rows_and_values(self) -> None:
        frame = pd.DataFrame({"smiles": ["CCO", "bad!", "CCN"], "y": ["1.0", "2.0", "<3"]})
        table = read_labelled(frame, targets=["y"])
        with pytest.raises(InputError, match=r"2 rows or values .* line 2: bad!"):
            refuse_unusable_rows(table, ChemPolicy())

    def test_strict_counts_a_broken_record_once(self, tmp_path: Path) -> None:
        (tmp_path / "in.csv").write_text("smiles,y\nCCO,1.5\nCCN,2.5,3\nCCC,3.5\n")
        table = read_labelled(tmp_path / "in.csv")
        with pytest.raises(InputError, match=r"1 rows or values .* line 3: .*ragged"):
            refuse_unusable_rows(table, ChemPolicy())

    @pytest.mark.parametrize("table", [["CCO"], None, {"smiles": ["CCO"]}, pd.Series(["CCO"])])
    def test_what_is_no_table_is_refused(self, tmp_path: Path, table) -> None:
        with pytest.raises(InputError, match="expected the path of a table or a DataFrame, got"):
            molscore.train(table, output=tmp_path / "m.molscore")

    def test_a_frame_without_columns(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="has no columns"):
            molscore.train(pd.DataFrame(), output=tmp_path / "m.molscore")

    def test_workers_below_none(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"smiles": ["C", "CC"], "y": [1.0, 2.0]})
        with pytest.raises(ConfigError, match="workers must be 0"):
            molscore.train(frame, output=tmp_path / "m.molscore", workers=-3)

    def test_a_missing_package_is_named_with_its_cure(self) -> None:
        cure = r"torch.*pip install 'molscore\[train\]'"
        with pytest.raises(ConfigError, match=cure), training_extra():
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        with pytest.raises(ModuleNotFoundError), training_extra():
            raise ModuleNotFoundError("No module named 'x'", name="x")

    @pytest.mark.slow
    def test_data_frame_to_prediction(self, tmp_path: Path) -> None:
        smiles = ["C" * n + tail for n in range(1, 9) for tail in ("O", "N", "Cl")]
        frame = pd.DataFrame({"smiles": smiles, "logS": np.linspace(-3, 1, len(smiles))})
        result = molscore.train(
            frame, output=tmp_path / "m.molscore", width=8, epochs=1, folds=2, workers=1
        )
        assert result.run_dir == tmp_path / "m-run"
        assert result.metrics["logS"]["pooled"]["n"] == len(smiles)
        predictions = molscore.load(result.bundle).predict(frame.smiles)
        assert np.isfinite(predictions.pred_logS).all()


def test_free_names_do_not_clash() -> None:
    assert free_names(["model", "model_2"], ["model", "sha"]) == ["model_3", "sha"]
    assert free_names([], ["a", "a"]) == ["a", "a_2"]


def test_public_names_exist() -> None:
    for module in (molscore, api):
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError):
        _ = molscore.nonsense
