"""Print the tables of a model's card: held-out errors by group, size and kind of molecule.

    python scripts/model_card.py aqsol-run/oof.csv sample_data/aqsoldb.csv

`oof.csv` is what a training run leaves; the table is what it was trained on, with a column
`smiles` and, for errors by group, a column `group`.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from rdkit import Chem

USUAL = {1, 6, 7, 8, 9, 15, 16, 17, 35, 53}
Row = Mapping[str, str]
SIZES = ((10, "below 10"), (20, "10 to 19"), (30, "20 to 29"), (np.inf, "30 and more"))
VALUES = (
    *((-6, "below -6"), (-4, "-6 to -4"), (-2, "-4 to -2"), (0, "-2 to 0")),
    (np.inf, "0 and more"),
)
ORDER = {name: i for steps in (SIZES, VALUES) for i, (_, name) in enumerate(steps)}


def size(_: Row, mol: Chem.Mol) -> str:
    """Heavy atoms, in steps."""
    return next(name for end, name in SIZES if mol.GetNumHeavyAtoms() < end)


def kind(_: Row, mol: Chem.Mol) -> str:
    """What sort of substance a record is."""
    if not {atom.GetAtomicNum() for atom in mol.GetAtoms()} <= USUAL:
        return "with a metal or another unusual element"
    if len(Chem.GetMolFrags(mol)) > 1:
        return "salt or mixture"
    if any(atom.GetFormalCharge() for atom in mol.GetAtoms()):
        return "one molecule, charges drawn"
    return "one molecule, neutral"


def value(row: Row, _: Chem.Mol) -> str:
    """The measured value, in steps."""
    return next(name for end, name in VALUES if float(row["target"]) < end)


CUTS: Mapping[str, Callable[[Row, Chem.Mol], str]] = {
    "group of the source": lambda row, _: row.get("group", ""),
    "heavy atoms": size,
    "kind": kind,
    "measured logS": value,
}


def lines(rows: list[Row], molecules: list[Chem.Mol]) -> Iterator[str]:
    """Yield the lines of all tables."""
    error = np.array([float(row["prediction"]) - float(row["target"]) for row in rows])
    for title, cut in CUTS.items():
        names = np.array([cut(row, mol) for row, mol in zip(rows, molecules, strict=True)])
        order = sorted(set(names), key=lambda name: (ORDER.get(name, 0), name))
        yield f"| {title} | rows | RMSE | MAE | mean error |"
        yield "| --- | --- | --- | --- | --- |"
        for name in order:
            e = error[names == name]
            figures = (np.sqrt((e**2).mean()), np.abs(e).mean(), e.mean())
            yield f"| {name} | {len(e):,} | " + " | ".join(f"{x:.2f}" for x in figures) + " |"
        yield ""


def main() -> None:
    """Read both tables and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("oof", type=Path)
    parser.add_argument("table", type=Path)
    arguments = parser.parse_args()
    with arguments.table.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    with arguments.oof.open(encoding="utf-8", newline="") as file:
        rows = [{**table[int(row["row"])], **row} for row in csv.DictReader(file)]
    print("\n".join(lines(rows, [Chem.MolFromSmiles(row["smiles"]) for row in rows])))


if __name__ == "__main__":
    main()
