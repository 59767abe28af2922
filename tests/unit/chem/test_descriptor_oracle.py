"""Every descriptor against RDKit's own function, to the last bit."""

import csv
import gzip
import inspect
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import QED, Descriptors, rdMolDescriptors

from molscore.chem.descriptors import DESCRIPTOR_NAMES, compute_descriptors
from molscore.chem.facts import MAX_WALKS, Facts
from molscore.chem.parse import Molecule, ParseFailure, parse_smiles
from molscore.chem.patterns import Matcher, read_pattern
from molscore.chem.policy import ChemPolicy

AQSOLDB = Path(__file__).parents[3] / "sample_data" / "aqsoldb.csv"
DRUGLIKE = Path(os.environ.get("MOLSCORE_DRUGLIKE", "druglike_100k.smi.gz"))
FUNCTIONS = dict(Descriptors.descList)
# Ours differ from RDKit's on purpose: one is exact where RDKit's is not, the other all or none.
OWN = {"Ipc", "AvgIpc"} | {name for name in DESCRIPTOR_NAMES if name.endswith("PartialCharge")}
NAMES = [name for name in DESCRIPTOR_NAMES if name not in OWN]
LARGEST = float(np.finfo(np.float32).max)


def dendrimer(generations):
    if not generations:
        return "C"
    branch = dendrimer(generations - 1)
    return f"N(CC{branch})CC{branch}"


FULLERENE = (
    "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6"
    "c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41"
)
ODD = [
    *("C", "[C]", "[CH2]", "[H][H]", "[H+]", "[H-].[Na+]", "[Na+].[Cl-]", "[U]", "N#N", "OO"),
    *("C~C", "C$C", "c1ccccn1->[Fe]", "[H]B1([H])[H]B([H])([H])[H]1", "[O][O]", "C[CH2]"),
    *("OS(=O)(=O)O", "FS(F)(F)(F)(F)F", "F[U](F)(F)(F)(F)F", "O=[Os](=O)(=O)=O", "[Li]CCCC"),
    *("[Fe+2].[cH-]1cccc1.[cH-]1cccc1", "Cl[Pt](Cl)(N)N", "[N-]=[N+]=NCC", "[O-][n+]1ccccc1"),
    *("C1CC1", "CC1CC1C", "C1CCC1C", "C1CC2CC1CC2", "C12C3C4C1C5C2C3C45", "C1C2CC3CC1CC(C2)C3"),
    *("CC(=C)C([O-])=O.[Zn+2]", "C/C=C/C(=O)/C=C\\C", "[Al+3].[O-]S(=O)(=O)[O-]", FULLERENE),
    *("[13CH4]", "[2H]C([2H])([2H])O", "c1ccc2c(c1)ccc1c2ccc2ccccc21", "C1=CC2=CC=CC2=C1"),
    *("C1" + "C" * 58 + "C1", "C" * 250, dendrimer(5), "N[C@@H](C)C(=O)" * 48 + "O"),
    *("[U]" + "(Cl)" * 60, "C12C3C4C1C5C2C3C45" * 10, "c1ccc(cc1)" * 40 + "C"),
]


def molecules(texts):
    parsed = [parse_smiles(text, ChemPolicy()) for text in texts]
    return [molecule for molecule in parsed if not isinstance(molecule, ParseFailure)]


def ask_rdkit(mol, name):
    try:
        value = float(FUNCTIONS[name](mol))
    except Exception:  # noqa: BLE001 (whatever RDKit raises: it has no value)
        return math.nan
    return value if abs(value) <= LARGEST else math.nan


def check(molecules, *, names=NAMES):
    found = compute_descriptors(molecules, names)
    with rdBase.BlockLogs(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for row, molecule in zip(found, molecules, strict=True):
            mol = Chem.MolFromSmiles(Chem.MolToSmiles(molecule.mol))
            expected = np.array([ask_rdkit(mol, name) for name in names])
            same = (row == expected) | (np.isnan(row) & np.isnan(expected))
            wrong = [name for name, fine in zip(names, same, strict=True) if not fine]
            assert not wrong, (molecule.smiles, wrong)


def aqsoldb():
    with AQSOLDB.open(encoding="utf-8") as file:
        return [row["smiles"] for row in csv.DictReader(file)]


def small(molecules):
    """Without the few that RDKit's own functions take minutes for."""
    return [m for m in molecules if m.mol.GetNumAtoms() <= 120]


def test_odd_molecules_equal_rdkit():
    check(molecules(ODD))


def test_a_sample_of_aqsoldb_equals_rdkit():
    check(small(molecules(aqsoldb()[::40])))


@pytest.mark.slow
def test_all_of_aqsoldb_equals_rdkit():
    check(small(molecules(aqsoldb())))


@pytest.mark.slow
def test_druglike_molecules_equal_rdkit():
    if not DRUGLIKE.is_file():
        pytest.skip("set MOLSCORE_DRUGLIKE to a gzipped list of SMILES to compare 2,000 of them")
    with gzip.open(DRUGLIKE, "rt") as file:
        check(
            small(molecules([line.split()[0] for line, _ in zip(file, range(2000), strict=False)]))
        )


def test_large_molecules_equal_rdkit_where_there_is_a_value():
    large = molecules(["C" * 300, dendrimer(6), "N[C@@H](C)C(=O)" * 70 + "O"])
    names = [
        n for n, v in zip(NAMES, compute_descriptors(large[:1], NAMES)[0], strict=True) if v == v
    ]
    assert len(names) > 160
    check(large, names=names)


def test_blocks_do_not_mix():
    some = molecules(["CCO", "C" * 300, "c1ccncc1", "[H][H]", *ODD[:20]] * 4)
    together = compute_descriptors(some)
    alone = np.concatenate([compute_descriptors([molecule]) for molecule in some])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", ["Chi2n", "Kappa2", "Kappa3", "Chi3v", "Phi", "fr_ether", "qed"])
def test_one_name_alone_is_the_same(name):
    some = molecules(ODD[:30])
    column = compute_descriptors(some)[:, DESCRIPTOR_NAMES.index(name)]
    np.testing.assert_array_equal(compute_descriptors(some, [name])[:, 0], column)


def test_a_subset_computes_nothing_else(monkeypatch):
    def refuse(*_):
        raise AssertionError("not asked for")

    for name in ("_CalcCrippenContribs", "BCUT2D", "CalcNumRotatableBonds"):
        monkeypatch.setattr(rdMolDescriptors, name, refuse)
    values = compute_descriptors(molecules(["CCO"]), ["MaxPartialCharge", "fr_ether", "Chi2v"])
    assert np.isfinite(values).all()


def test_a_hub_of_many_bonds_is_left_to_rdkit():
    facts = Facts(Chem.MolFromSmiles("[U]" + "(Cl)" * 60))
    assert facts.is_plain
    assert facts.walk_bound > MAX_WALKS
    assert not facts.few_paths


def test_patterns_find_what_rdkit_finds():
    fragments = [
        inspect.signature(FUNCTIONS[name]).parameters["pattern"].default
        for name in DESCRIPTOR_NAMES
        if name.startswith("fr_")
    ]
    queries = [*fragments, *QED.StructuralAlerts, *QED.Acceptors]
    drugs = ["CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O", "OC(=O)CS", "CN=[N+]=[N-]"]
    for molecule in molecules([*ODD[:35], *drugs]):
        facts = Facts(molecule.mol)
        matcher = facts.matcher
        patterns = [read_pattern(query) for query in queries]
        possible = matcher.possible(patterns)
        for i, query in enumerate(queries):
            count = len(facts.mol.GetSubstructMatches(query))
            assert (matcher.count(patterns[i]) if i in possible else 0) == count
            assert (i in possible and matcher.has(patterns[i])) == bool(count)


def test_patterns_read_after_a_molecule_are_found_in_it():
    mol = Chem.MolFromSmiles("CCS")
    bonds = list(mol.GetBonds())
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    matcher = Matcher(mol, list(mol.GetAtoms()), bonds, ends)
    assert matcher.possible([read_pattern(Chem.MolFromSmarts("[#8]"))]) == []
    late = read_pattern(Chem.MolFromSmarts("[SX2;H1;v2]-[CX4;H2;+0]"))
    assert matcher.possible([late]) == [0]
    assert matcher.count(late) == 1


@pytest.mark.parametrize(
    "smarts", ["[$([CX4]O),$(N=C);!$(C=O)]", "[Cr3,r5]", "[C^2]", "[h1]", "CC/C=C/C"]
)
def test_a_question_beyond_the_kind_of_atom_is_searched(smarts):
    query = Chem.MolFromSmarts(smarts)
    for text in ("CO", "C1CC1", "CC/C=C/C", "CC/C=C\\C", "C=NC", "CC=O", "c1ccccc1"):
        facts = Facts(Chem.MolFromSmiles(text))
        pattern = read_pattern(query)
        found = facts.matcher.count(pattern) if facts.matcher.possible([pattern]) else 0
        assert found == len(facts.mol.GetSubstructMatches(query))


def test_molecules_are_not_changed():
    molecule = Molecule(0, "C/C=C/O", Chem.MolFromSmiles("C/C=C/O"))
    before = molecule.mol.ToBinary()
    compute_descriptors([molecule])
    assert molecule.mol.ToBinary() == before
