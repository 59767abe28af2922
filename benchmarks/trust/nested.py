"""Do intervals and domain hold on rows that nothing was trained or calibrated on?

    python benchmarks/trust/nested.py esol.csv --folds folds.csv --name esol
    python benchmarks/trust/nested.py lipophilicity.csv --name lipophilicity

For every outer fold, a model is trained by molscore's defaults on the other rows (five experts,
its own cross-validation, its own intervals), and predicts the fold. One line a row goes to
`rows/NAME.csv`, a fold at a time; folds that are there are not trained again. `--table` prints the
figures of all that is there.
"""

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

import molscore
from molscore.chem.parse import parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.splits import make_folds, read_folds_file
from molscore.data.targets import LabelledTable, read_labelled
from molscore.stats.conformal import conformal_quantile, describe_intervals

HERE: Final = Path(__file__).parent
COLUMNS: Final = (
    *("fold", "row", "measured", "predicted", "lower", "upper", "even", "similarity", "in_domain"),
)
LEVEL: Final = 0.9
N_FOLDS: Final = 5


def outer_folds(table: LabelledTable, folds: Path | None) -> np.ndarray:
    """Return the outer fold of each row: a file's, or random ones that keep structures together."""
    if folds is not None:
        return read_folds_file(folds, len(table))
    molecules = [parse_smiles(s, ChemPolicy(), i) for i, s in enumerate(table.smiles)]
    return make_folds("random", N_FOLDS, 0, [structure_key(m) for m in molecules])


def run_fold(table: LabelledTable, held_out: np.ndarray, workers: int) -> pd.DataFrame:
    """Train without some rows and predict those."""
    frame = pd.DataFrame({"smiles": table.smiles, "y": table.values[:, 0]})
    with tempfile.TemporaryDirectory() as folder:
        result = molscore.train(
            frame[~held_out],
            output=Path(folder) / "m.molscore",
            smiles_column="smiles",
            target="y",
            workers=workers,
        )
        oof = pd.read_csv(result.run_dir / "oof.csv")
        residuals = np.sort(np.abs(oof["target"] - oof["prediction"]).to_numpy())
        said = molscore.load(result.bundle, interval=LEVEL).predict(frame["smiles"][held_out])
    return pd.DataFrame(
        {
            "row": np.flatnonzero(held_out),
            "measured": frame["y"][held_out],
            "predicted": said["pred_y"],
            "lower": said["pred_y_lo"],
            "upper": said["pred_y_hi"],
            "even": conformal_quantile(residuals, LEVEL),
            "similarity": said["similarity"],
            "in_domain": said["in_domain"],
        }
    )


def figures(rows: pd.DataFrame) -> dict[str, float]:
    """Return what the page shows of one data set."""
    residuals = (rows["measured"] - rows["predicted"]).to_numpy()
    half = ((rows["upper"] - rows["lower"]) / 2).to_numpy()
    said = describe_intervals(residuals, half, half)
    even = describe_intervals(residuals, rows["even"].to_numpy(), half)
    outside = (rows["in_domain"] == "no").to_numpy()
    return {
        "rows": len(rows),
        "coverage": said["coverage"],
        **{f"third {i + 1}": c for i, c in enumerate(said["coverage_by_difficulty"])},
        "width": said["width"],
        "one width for all": even["width"],
        "ratio": said["width"] / even["width"],
        "its coverage": even["coverage"],
        "outside": outside.mean(),
        "RMSE outside / inside": np.sqrt((residuals[outside] ** 2).mean())
        / np.sqrt((residuals[~outside] ** 2).mean()),
    }


def main() -> None:
    """Train what is missing, or print the figures of what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("--name")
    parser.add_argument("--folds", type=Path)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        tables = {path.stem: figures(pd.read_csv(path)) for path in (HERE / "rows").glob("*.csv")}
        names = list(next(iter(tables.values())))
        print("| data | " + " | ".join(names) + " |")
        print("| --- " * (len(names) + 1) + "|")
        for name, said in sorted(tables.items()):
            cells = [f"{x:,}" if isinstance(x, int) else f"{x:.3f}" for x in said.values()]
            print(f"| {name} | " + " | ".join(cells) + " |")
        return
    table = read_labelled(given.source)
    folds = outer_folds(table, given.folds)
    path = HERE / "rows" / f"{given.name}.csv"
    path.parent.mkdir(exist_ok=True)
    done = set(pd.read_csv(path)["fold"]) if path.exists() else set()
    for fold in sorted(set(folds.tolist()) - done):
        rows = run_fold(table, folds == fold, given.workers)
        rows.insert(0, "fold", fold)
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if file.tell() == 0:
                writer.writerow(COLUMNS)
            writer.writerows(
                [f"{x:.6g}" if isinstance(x, float) else x for x in row]
                for row in rows[list(COLUMNS)].itertuples(index=False)
            )
        print(f"{given.name}: fold {fold} done", flush=True)


if __name__ == "__main__":
    main()
