"""molscore evaluate, inspect, export and featurize, on models whose values are known."""

import csv
import json
from pathlib import Path

import handmade_bundle
import numpy as np
import pyarrow.parquet as pq
import pytest
from commandline import predicted
from rdkit import Chem
from rdkit.Chem import Descriptors
from sklearn.metrics import mean_squared_error, roc_auc_score

from molscore.bundle.reader import load_bundle
from molscore.chem.descriptors import DESCRIPTOR_NAMES
from molscore.chem.features import ATOM_FEATURES
from molscore.data.targets import Target


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


class TestEvaluate:
    ROWS = (("CCO", 0.1), ("CCN", 0.3), ("CCC", 0.5), ("OCC", 0.2), ("CCCl", 0.4))

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        lines = [f"{s},{v}" for s, v in self.ROWS]
        return write(tmp_path / "t.csv", "smiles,y\n" + "\n".join(lines) + "\nbad!,1\nCC,\n")

    def test_metrics_apart_for_structures_of_the_training(self, invoke, model, table) -> None:
        """CCO is in the training data, however it is written."""
        result = invoke("evaluate", table, "--model", model, "--json")
        assert result.code == 0
        report = json.loads(result.out)
        assert (report["rows"], report["predicted"], report["seen_in_training"]) == (7, 6, 2)
        metrics = report["metrics"]["y"]
        assert [metrics[k]["n"] for k in ("all", "unseen", "seen")] == [5, 3, 2]
        atoms = [list(s.replace("Cl", "X")) for s, _ in self.ROWS]
        p = [predicted(*("Cl" if a == "X" else a for a in molecule)) for molecule in atoms]
        y = [v for _, v in self.ROWS]
        assert metrics["all"]["rmse"] == pytest.approx(mean_squared_error(y, p) ** 0.5, rel=1e-4)
        unseen = [1, 2, 4]
        expected = mean_squared_error([y[i] for i in unseen], [p[i] for i in unseen]) ** 0.5
        assert metrics["unseen"]["rmse"] == pytest.approx(expected, rel=1e-4)

    def test_text(self, invoke, model, table) -> None:
        result = invoke("evaluate", table, "--model", model)
        header, everything, unseen, seen, note = result.out.splitlines()
        assert header.split() == ["target", "structures", "rmse", "mae", "r2", "spearman", "n"]
        assert everything.split()[:2] == ["y", "all"]
        assert (unseen.split()[-1], seen.split()[-1]) == ("3", "2")
        assert note == "2 of 6 rows hold a structure the model was trained on"
        assert result.err.splitlines() == [
            result.err.splitlines()[0],
            "7 read, 6 predicted, 1 skipped",
        ]
        assert result.err.startswith("line 7: bad!: invalid_smiles: ")

    def test_rows_go_to_a_file(self, invoke, model, table, tmp_path: Path) -> None:
        out = tmp_path / "rows.csv"
        assert invoke("evaluate", table, "--model", model, "--output", out).code == 0
        with out.open() as file:
            rows = list(csv.DictReader(file))
        assert [r["in_training"] for r in rows] == ["yes", "no", "no", "yes", "no", "no", "no"]
        assert [r["y"] for r in rows] == ["0.1", "0.3", "0.5", "0.2", "0.4", "1", ""]
        assert rows[5]["status"] == "invalid_smiles"
        again = invoke("evaluate", table, "--model", model, "--output", out)
        assert again.code == 2
        assert "--force" in again.err

    def test_a_measured_column_of_another_name(self, invoke, model, tmp_path: Path) -> None:
        table = write(tmp_path / "t.csv", "smiles,exp\nCCO,0.1\nCCN,0.2\n")
        missing = invoke("evaluate", table, "--model", model)
        assert missing.code == 2
        assert "--target" in missing.err
        result = invoke("evaluate", table, "--model", model, "--target", "exp", "--json")
        assert json.loads(result.out)["metrics"]["y"]["all"]["n"] == 2

    def test_values_that_are_no_numbers_are_told(self, invoke, model, tmp_path: Path) -> None:
        table = write(tmp_path / "t.csv", "smiles,y\nCCO,<0.1\nCCN,0.2\nCCC,0.3\n")
        result = invoke("evaluate", table, "--model", model, "--json")
        assert json.loads(result.out)["metrics"]["y"]["all"]["n"] == 2
        assert "line 2, column y: <0.1: " in result.err

    def test_classes(self, invoke, two_targets, tmp_path: Path) -> None:
        rows = [("CCO", 1, "yes"), ("C", 2, "no"), ("CCCCC", 3, "yes"), ("CN", 4, "no")]
        lines = "".join(f"{s},{y},{c}\n" for s, y, c in rows)
        table = write(tmp_path / "t.csv", "smiles,y,toxic\n" + lines)
        out = tmp_path / "rows.csv"
        result = invoke("evaluate", table, "--model", two_targets, "--json", "--output", out)
        metrics = json.loads(result.out)["metrics"]
        with out.open() as file:
            p = [float(r["pred_toxic"]) for r in csv.DictReader(file)]
        auc = roc_auc_score([c == "yes" for _, _, c in rows], p)
        assert metrics["toxic"]["all"]["roc_auc"] == pytest.approx(auc)
        one = invoke("evaluate", table, "--model", two_targets, "--json", "--target", "toxic")
        assert set(json.loads(one.out)["metrics"]) == {"toxic"}
        none = invoke("evaluate", table, "--model", two_targets, "--target", "nope")
        assert (none.code, none.out) == (2, "")

    def test_strict(self, invoke, model, table) -> None:
        assert invoke("evaluate", table, "--model", model, "--strict").code == 3


class TestInspect:
    def test_text_names_what_matters(self, invoke, model) -> None:
        result = invoke("inspect", "--model", model)
        assert (result.code, result.err) == (0, "")
        for words in ("hand", load_bundle(model).sha256, "y: kind regression", "log10 mol/L"):
            assert words in result.out

    def test_json_is_the_manifest(self, invoke, model) -> None:
        about = json.loads(invoke("inspect", "--model", model, "--json").out)
        manifest = load_bundle(model).manifest.to_dict()
        assert {k: about[k] for k in manifest} == json.loads(json.dumps(manifest))
        assert about["file"]["size"] == model.stat().st_size

    def test_words_of_a_bundle_cannot_steer_the_terminal(self, invoke, tmp_path: Path) -> None:
        bundle = tmp_path / "odd.molscore"
        table = write(tmp_path / "t.csv", "smiles,y\nC,1\nCC,2\n")
        target = Target(name="a\x1b[31m\nb", unit="u\x9b2J", note="n\x1b]0;t\x07")
        bundle.write_bytes(handmade_bundle.bundle_bytes((target,), name="nm\x1b[2J"))
        for command in (("inspect",), ("evaluate", table, "--target", "y")):
            out = invoke(*command, "--model", bundle).out
            assert r"a\x1b[31m\nb" in out
            assert out.replace("\n", "").isprintable()

    def test_damaged(self, invoke, model, tmp_path: Path) -> None:
        broken = tmp_path / "broken.molscore"
        broken.write_bytes(model.read_bytes()[:-100])
        result = invoke("inspect", "--model", broken)
        assert (result.code, result.out) == (4, "")
        assert len(result.err.splitlines()) == 1


class TestExport:
    def test_both_files_or_none(self, invoke, model, tmp_path: Path) -> None:
        write(tmp_path / "m.json", "precious")
        result = invoke("export", "--model", model, "--output", tmp_path / "m.onnx")
        assert result.code == 2
        assert "m.json" in result.err
        assert [p.name for p in tmp_path.iterdir()] == ["m.json"]
        forced = invoke("export", "--model", model, "--output", tmp_path / "m.onnx", "--force")
        assert forced.code == 0
        assert json.loads((tmp_path / "m.json").read_text())["format"].startswith("molscore-")

    def test_quiet(self, invoke, model, tmp_path: Path) -> None:
        result = invoke("export", "--model", model, "--output", tmp_path / "m.onnx", "-q")
        assert (result.code, result.out, result.err) == (0, "", "")


class TestFeaturize:
    TABLE = "id,smiles\n1,CCO\n2,\n3,c1ccccc1O\n4,bad!\n"

    def test_descriptors_are_those_of_rdkit(self, invoke, tmp_path: Path) -> None:
        table = write(tmp_path / "in.csv", self.TABLE)
        result = invoke("featurize", table)
        assert result.code == 0
        rows = list(csv.DictReader(result.out.splitlines()))
        assert [r["id"] for r in rows] == ["1", "2", "3", "4"]
        assert [r["status"] for r in rows] == ["ok", "empty", "ok", "invalid_smiles"]
        oracle = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles("c1ccccc1O"))
        for name in ("MolWt", "TPSA", "MolLogP", "BertzCT", "qed"):
            assert float(rows[2][name]) == pytest.approx(oracle[name], rel=1e-5)
        assert rows[1]["MolWt"] == ""
        assert result.err.splitlines()[-1] == "4 read, 2 featurized, 2 skipped"

    def test_parquet_and_clashing_names(self, invoke, tmp_path: Path) -> None:
        table = write(tmp_path / "in.csv", "smiles,MolWt\nCCO,mine\n")
        out = tmp_path / "o.parquet"
        assert invoke("featurize", table, "--output", out).code == 0
        read = pq.read_table(out)
        assert read["MolWt"].to_pylist() == ["mine"]
        assert read["MolWt_2"].to_pylist() == [pytest.approx(46.069)]
        assert len(read.column_names) == 2 + len(DESCRIPTOR_NAMES) + 2

    def test_graphs_keep_a_place_for_every_row(self, invoke, tmp_path: Path) -> None:
        table = write(tmp_path / "in.csv", self.TABLE)
        out = tmp_path / "g.npz"
        assert invoke("featurize", table, "--kind", "graphs", "--output", out).code == 0
        with np.load(out, allow_pickle=False) as arrays:
            assert np.diff(arrays["atom_ptr"]).tolist() == [3, 0, 7, 0]
            assert np.diff(arrays["bond_ptr"]).tolist() == [2, 0, 7, 0]
            assert arrays["failed_row"].tolist() == [1, 3]
            assert arrays["failed_status"].tolist() == ["empty", "invalid_smiles"]
            about = json.loads(str(arrays["about"]))
            elements = about["atom_features"]["element"]
            symbols = [elements[code] for code in arrays["atom_codes"][:3, 0]]
        assert symbols == ["C", "C", "O"]
        assert list(about["atom_features"]) == [f.name for f in ATOM_FEATURES]
        again = invoke("featurize", table, "--kind", "graphs", "--output", out)
        assert again.code == 2

    def test_policy(self, invoke, tmp_path: Path) -> None:
        table = write(tmp_path / "in.smi", "CC(=O)[O-].[Na+]\n")
        whole = next(csv.DictReader(invoke("featurize", table).out.splitlines()))
        parent = invoke("featurize", table, "--salts", "parent", "--neutralize")
        acid = next(csv.DictReader(parent.out.splitlines()))
        assert float(whole["HeavyAtomCount"]) == 5
        assert float(acid["MolWt"]) == pytest.approx(60.052, abs=1e-3)

    def test_strict(self, invoke, tmp_path: Path) -> None:
        assert invoke("featurize", write(tmp_path / "in.csv", self.TABLE), "--strict").code == 3
