"""molscore predict: rows in, rows out."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commandline import predicted, run_process

from molscore.cli.predict import predict as predict_command
from molscore.predict.core import BATCH_SIZE


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def predict(invoke, model, tmp_path):
    """Predict a file of the given content; the file is called `name`."""

    def run(content: str | bytes, *options: str, name: str = "input.smi"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return invoke("predict", path, "--model", model, *options)

    return run


class TestRows:
    def test_values_are_the_mean_and_spread_of_the_experts(self, predict) -> None:
        result = predict("CCO\nC\n")
        assert result.code == 0
        ethanol, methane = table(result.out)
        assert float(ethanol["pred_y"]) == pytest.approx(predicted("C", "C", "O"), rel=1e-5)
        assert float(methane["pred_y"]) == pytest.approx(predicted("C"), rel=1e-5)
        assert ethanol["status"] == "ok"
        assert result.err == "2 read, 2 predicted, 0 skipped\n"

    def test_bad_rows_keep_their_place_and_are_told(self, predict) -> None:
        result = predict("CCN1(=C(C=CC=C1)C)I\nN=N[Br]c2ccccc2)C\nCCO\n")
        rows = table(result.out)
        assert [r["status"] for r in rows] == ["invalid_smiles", "invalid_smiles", "ok"]
        assert rows[0]["pred_y"] == ""
        assert "valence" in rows[0]["error"]
        first, second, last = result.err.splitlines()
        assert first.startswith("line 1: CCN1(=C(C=CC=C1)C)I: invalid_smiles: ")
        assert second.startswith("line 2: N=N[Br]c2ccccc2)C: invalid_smiles: ")
        assert last == "3 read, 1 predicted, 2 skipped"
        assert result.code == 0

    def test_no_header(self, predict) -> None:
        assert len(table(predict("CCO\nCCN\nCCC\n", name="smiles.txt").out)) == 3

    @pytest.mark.parametrize(
        "content", ["SMILES\nCCO\n", "smiles\tname\nCCO\tx\n", "Canonical_Smiles\nC\n"]
    )
    def test_a_header_is_not_a_molecule(self, predict, content: str) -> None:
        (row,) = table(predict(content).out)
        assert row["status"] == "ok"

    def test_quotes_in_a_list_are_not_part_of_the_smiles(self, predict) -> None:
        rows = table(predict("\"CCO\"\n'CCN'\n").out)
        assert [r["status"] for r in rows] == ["ok", "ok"]

    def test_other_columns_pass_through(self, predict) -> None:
        content = "smiles,acid,size,n\nCCC,acidic,big,1.1\nCCCO,basic,small,x\n"
        result = predict(content, name="in.csv")
        assert [line.split(",")[:4] for line in result.rows] == [
            ["CCC", "acidic", "big", "1.1"],
            ["CCCO", "basic", "small", "x"],
        ]

    def test_the_measured_column_stays(self, predict) -> None:
        (row,) = table(predict("smiles,y\nCCO,1.23\n", name="in.csv").out)
        assert row["y"] == "1.23"
        assert float(row["pred_y"]) == pytest.approx(predicted("C", "C", "O"), rel=1e-5)

    def test_equal_structures_make_no_more_rows(self, predict) -> None:
        rows = table(predict("id,smiles\n1,CCO\n1,OCC\n2,CCO\n", name="in.csv").out)
        assert [r["id"] for r in rows] == ["1", "1", "2"]
        assert len({r["pred_y"] for r in rows}) == 1

    def test_own_output_can_be_predicted_again(self, predict) -> None:
        first = predict("id,smiles\n1,CCO\n2,oops\n", name="in.csv")
        again = predict(first.out, name="again.csv")
        assert again.out == first.out
        assert "replaced" in again.err

    def test_a_ragged_row_is_told_with_its_line(self, predict) -> None:
        result = predict('name,smiles\n"1,2-x",ClCCCl\nN,N-x,CN(C)C\n', name="in.csv")
        assert [r["status"] for r in table(result.out)] == ["ok", "malformed"]
        assert result.err.startswith("line 3: ")

    def test_more_failures_than_are_listed_are_counted(self, predict) -> None:
        result = predict("CCO\n" + "bad!\n" * 50)
        lines = result.err.splitlines()
        assert len(lines) == 22
        assert lines[-2].startswith("and 30 more rows")
        assert lines[-1] == "51 read, 1 predicted, 50 skipped"


class TestMessagesShowSmilesByteForByte:
    @pytest.mark.parametrize(
        "smiles",
        [
            "C[/x]",
            "[/x]C",
            ":smile:",
            "[nH]!",
            "[bold red]C",
            "F/C=C\\F!",
            "C%(",
            "caf\u00e9",
            "{0}",
        ],
    )
    def test_invalid(self, predict, smiles: str) -> None:
        result = predict(f"smiles,id\n{smiles},1\n", name="in.csv")
        assert result.err.startswith(f"line 2: {smiles}: invalid_smiles: ")

    @pytest.mark.parametrize("smiles", ["c1cc[nH]c1", "C[n+]1ccccc1", "c1cc[se]c1"])
    def test_valid(self, predict, smiles: str) -> None:
        assert table(predict(f"{smiles}\n").out)[0]["smiles"] == smiles

    def test_control_characters_cannot_steer_the_terminal(self, predict) -> None:
        result = predict('smiles,id\n"C\x1b[2J\nC",1\n', name="in.csv")
        assert "\x1b" not in result.err
        assert len(result.err.splitlines()) == 2


class TestOutput:
    def test_file_by_suffix(self, predict, tmp_path: Path) -> None:
        out = tmp_path / "out.tsv"
        result = predict("CCO\n", "--output", str(out))
        assert result.out == ""
        assert out.read_text().startswith("smiles\tpred_y\t")

    def test_jsonl_carries_the_model(self, predict) -> None:
        row = json.loads(predict("CCO\n", "--output-format", "jsonl").out)
        assert row["model"] == "hand"
        assert len(row["model_sha256"]) == 64
        assert row["pred_y"] == pytest.approx(predicted("C", "C", "O"), rel=1e-5)

    def test_model_info_in_csv(self, predict) -> None:
        result = predict("smiles,model\nCCO,mine\n", "--model-info", name="in.csv")
        (row,) = table(result.out)
        assert (row["model"], row["model_2"]) == ("mine", "hand")

    def test_parquet_has_numbers_even_without_a_value(self, predict, tmp_path: Path) -> None:
        out = tmp_path / "out.parquet"
        predict("bad!\n", "--output", str(out))
        read = pq.read_table(out)
        assert str(read.schema.field("pred_y").type) == "double"
        assert read["pred_y"].to_pylist() == [None]

    def test_existing_file_needs_force(self, predict, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        out.write_text("precious")
        result = predict("CCO\n", "--output", str(out))
        assert result.code == 2
        assert "--force" in result.err
        assert out.read_text() == "precious"
        assert predict("CCO\n", "--output", str(out), "--force").code == 0
        assert out.read_text().startswith("smiles,")

    def test_an_output_is_never_an_input(self, invoke, model, tmp_path: Path) -> None:
        table = tmp_path / "in.csv"
        table.write_text("smiles,y\nCCO,1\n")
        again = tmp_path / "again.csv"
        again.symlink_to("in.csv")
        before = model.read_bytes()
        for command, output, what in (
            (("predict", table, "--model", model), table, "table"),
            (("predict", again, "--model", model), table, "table"),
            (("predict", table, "--model", model, "--output-format", "csv"), model, "model"),
            (("evaluate", table, "--model", model), again, "table"),
            (("featurize", table), table, "table"),
            (("train", table), table, "table"),
        ):
            result = invoke(*command, "--output", output, "--force")
            assert (result.code, result.out) == (2, ""), command
            assert f"is the {what} itself" in result.err
        assert model.read_bytes() == before
        assert table.read_text() == "smiles,y\nCCO,1\n"

    def test_strict_fails_but_leaves_a_whole_file(self, predict, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        result = predict("CCO\nbad!\n", "--output", str(out), "--strict")
        assert result.code == 3
        assert len(out.read_text().splitlines()) == 3
        assert predict("CCO\n", "--strict").code == 0

    def test_quiet_says_nothing_of_success(self, predict) -> None:
        assert predict("CCO\n", "--quiet").err == ""
        assert "1 skipped" in predict("bad!\n", "--quiet").err

    def test_verbose_says_how_the_table_was_read(self, predict) -> None:
        err = predict("smiles;id\nCCO;1\n", "--verbose", name="in.csv").err
        assert "separator ';'" in err
        assert "column smiles" in err


class TestSeveralModels:
    def test_columns_of_each(self, invoke, predict, model, two_targets, tmp_path: Path) -> None:
        result = predict("CCO\nC1CC\n", "--model", str(two_targets))
        assert result.code == 0
        assert result.out.splitlines()[0] == (
            "smiles,pred_y_hand,pred_y_hand_sd,pred_y_two,pred_y_two_sd,pred_toxic,pred_toxic_sd,"
            "status,error"
        )
        assert result.rows[1] == "C1CC,,,,,,,invalid_smiles,unclosed ring"
        for one, name in ((model, "pred_y_hand"), (two_targets, "pred_y_two")):
            alone = table(invoke("predict", tmp_path / "input.smi", "--model", one).out)
            assert table(result.out)[0][name] == alone[0]["pred_y"]

    def test_the_same_twice(self, predict, model) -> None:
        result = predict("CCO\n", "--model", str(model))
        assert (result.code, result.out) == (2, "")
        assert "are the same model" in result.err

    def test_own_output_can_be_predicted_again(self, predict, two_targets) -> None:
        first = predict("CCO\n", "--model", str(two_targets))
        again = predict(first.out, "--model", str(two_targets), name="again.csv")
        assert again.out == first.out


class TestPartOfATable:
    CONTENT = "smiles,id\n" + "".join(
        f"{'bad!' if i == 90 else 'C' * (i % 7 + 1)},{i}\n" for i in range(100)
    )

    def test_rows_not_lines_and_the_numbers_of_the_file(self, predict) -> None:
        whole = predict(self.CONTENT, name="in.csv")
        result = predict(self.CONTENT, "--skip", "65", "--limit", "30", name="in.csv")
        assert result.rows == whole.rows[65:95]
        assert result.err.startswith("line 92: bad!: ")
        assert result.err.splitlines() == [
            whole.err.splitlines()[0],
            "30 read, 29 predicted, 1 skipped",
        ]

    @pytest.mark.parametrize(
        ("options", "n"),
        [
            (("--skip", "0", "--limit", "100"), 100),
            (("--limit", "0"), 0),
            (("--skip", "99"), 1),
            (("--skip", "99", "--limit", "5"), 1),
        ],
    )
    def test_edges(self, predict, options: tuple[str, ...], n: int) -> None:
        result = predict(self.CONTENT, *options, name="in.csv")
        assert (result.code, len(result.rows)) == (0, n)
        assert result.out.startswith("smiles,id,pred_y")

    def test_behind_the_end(self, predict) -> None:
        result = predict(self.CONTENT, "--skip", "100", name="in.csv")
        assert (result.code, result.rows) == (0, [])
        assert result.err.splitlines() == [
            "warning: the table has no row behind the 100 that are skipped",
            "0 read, 0 predicted, 0 skipped",
        ]


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (("--smiles-column", "nope"), 2, "'nope'"),
            (("--engine", "onnx", "--device", "cuda"), 2, "--engine torch"),
            (("--separator", "ab"), 2, "'ab'"),
            (("--workers", "-1"), 2, "--workers"),
            (("--batch-size", "0"), 2, "--batch-size"),
            (("--skip", "-1"), 2, "--skip"),
            (("--limit", "-1"), 2, "--limit"),
            (("--engine", "caffe"), 2, "caffe"),
        ],
    )
    def test_one_line(self, predict, options: tuple[str, ...], code: int, words: str) -> None:
        result = predict("smiles,id\nCCO,1\n", *options, name="in.csv")
        assert (result.code, result.out) == (code, "")
        assert len(result.err.splitlines()) == 1
        assert result.err.startswith("error: ")
        assert words in result.err

    def test_missing_table(self, invoke, model) -> None:
        result = invoke("predict", "no-such-file.csv", "--model", model)
        assert (result.code, result.out) == (3, "")
        assert "no-such-file.csv" in result.err

    def test_missing_model(self, invoke, tmp_path: Path) -> None:
        result = invoke("predict", "-", "--model", tmp_path / "none.molscore")
        assert (result.code, result.out) == (4, "")
        assert "none.molscore" in result.err

    def test_no_output_file_is_left_behind(self, invoke, model, tmp_path: Path) -> None:
        bad = tmp_path / "in.csv"
        bad.write_bytes(b"smiles,id\nCCO,1\n\x00\xff\x00\xff" * 100)
        result = invoke("predict", bad, "--model", model, "--output", tmp_path / "o.csv")
        assert result.code == 3, result
        assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


class TestStdin:
    @pytest.mark.parametrize(
        "content", [b"CCO\nCCN\n", b"CCO\nCCN", gzip.compress(b"CCO\nCCN\n"), b"CCO\r\nCCN\r\n"]
    )
    def test_two_rows(self, model, content: bytes) -> None:
        result = run_process("predict", "-", "--model", model, stdin=content)
        assert [r["smiles"] for r in table(result.out)] == ["CCO", "CCN"]
        assert (result.code, result.err) == (0, "2 read, 2 predicted, 0 skipped\n")

    def test_empty(self, model) -> None:
        result = run_process("predict", "-", "--model", model)
        assert (result.code, result.out) == (3, "")
        assert result.err == "error: stdin is empty\n"


def test_default_batch_size_is_that_of_the_library() -> None:
    assert predict_command.__wrapped__.__kwdefaults__["batch_size"] == BATCH_SIZE
