"""The committed sample data, and how the damaged structures of AqSolDB are repaired."""

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rdkit import Chem, rdBase
from rdkit.Chem.rdMolDescriptors import CalcMolFormula

ROOT = Path(__file__).resolve().parents[3]
SAMPLE_DATA = ROOT / "sample_data"

ELEMENTS = {"A-1392", "A-5604", "A-5851", "A-5988"}
REDRAWN = {"A-5950", "B-1579", "B-1866"}


def load_build_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_sample_data", SAMPLE_DATA / "build.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


build = load_build_script()


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def aqsoldb() -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in read_rows(SAMPLE_DATA / "aqsoldb.csv")}


@pytest.fixture(scope="module")
def huuskonen() -> list[dict[str, str]]:
    return read_rows(SAMPLE_DATA / "huuskonen.csv")


# Salts of AqSolDB with an amide, and what the package left of them.
AMIDE_SALTS = [
    (
        "CC(C[N+](C)(C)C)OC(N)=O",
        "InChI=1S/C7H16N2O2.ClH/c1-6(11-7(8)10)5-9(2,3)4;/h6H,5H2,1-4H3,(H-,8,10);1H",
        "CC(C[N+](C)(C)C)OC(N)=O.[Cl-]",
    ),
    (
        "NC(=O)c1ccc[n+](Cc2ccccc2)c1",
        "InChI=1S/C13H12N2O.ClH/c14-13(16)12-7-4-8-15(10-12)9-11-5-2-1-3-6-11;"
        "/h1-8,10H,9H2,(H-,14,16);1H",
        "NC(=O)c1ccc[n+](Cc2ccccc2)c1.[Cl-]",
    ),
    (
        "COc1cc(c(C)cc1NC(=O)CC(C)=O)[S]([O-])(=O)=O",
        "InChI=1S/C12H15NO6S.H3N/c1-7-4-9(13-12(15)5-8(2)14)10(19-3)6-11(7)20(16,17)18;"
        "/h4,6H,5H2,1-3H3,(H,13,15)(H,16,17,18);1H3",
        "COc1cc(c(C)cc1NC(=O)CC(C)=O)[S]([O-])(=O)=O.[NH4+]",
    ),
]


@pytest.mark.parametrize(("drawing", "inchi", "expected"), AMIDE_SALTS)
def test_amides_stay_amides_when_a_salt_is_completed(drawing, inchi, expected):
    repaired = build.repair("X", drawing, inchi, Chem.InchiToInchiKey(inchi))
    assert repaired == expected
    mol = Chem.MolFromSmiles(repaired)
    amide = Chem.MolFromSmarts("[NX3][CX3]=[OX1]")
    assert mol.HasSubstructMatch(amide)
    assert not build.has_iminol(mol)


def test_the_inchi_read_back_would_have_been_an_iminol():
    mols = [Chem.MolFromInchi(inchi) for _, inchi, _ in AMIDE_SALTS]
    assert any(build.has_iminol(mol) for mol in mols)


@pytest.mark.parametrize(
    ("drawing", "inchi", "expected"),
    [
        ("CC[NH2+]CC", "InChI=1S/C4H11N.BrH/c1-3-5-4-2;/h5H,3-4H2,1-2H3;1H", ".[Br-]"),
        ("[S-]C#N", "InChI=1S/CHNS.H3N/c2-1-3;/h3H;1H3", ".[NH4+]"),
        ("[O-]C(=O)C(F)(F)F", "InChI=1S/C2HF3O2.K/c3-2(4,5)1(6)7;/h(H,6,7);/q;+1/p-1", ".[K+]"),
        ("[O-][Mo]([O-])(=O)=O", "InChI=1S/Ca.Mo.4O/q+2;;;;2*-1", ".[Ca+2]"),
    ],
)
def test_lost_components_come_back_in_the_right_protonation_state(drawing, inchi, expected):
    key = Chem.InchiToInchiKey(inchi)
    assert build.repair("X", drawing, inchi, key) == drawing + expected


def test_a_drawing_that_cannot_be_parsed_takes_the_structure_of_the_inchi():
    inchi = "InChI=1S/C6H7NO/c1-6-3-2-4-7(8)5-6/h2-5H,1H3"
    got = build.repair("X", "CC1=CC=C[NH++]([O-])[CH-]1", inchi, Chem.InchiToInchiKey(inchi))
    assert Chem.CanonSmiles(got) == Chem.CanonSmiles("Cc1ccc[n+]([O-])c1")


def test_a_repair_that_would_make_an_iminol_or_miss_the_key_is_refused():
    acetamide = Chem.MolToInchi(Chem.MolFromSmiles("CC(N)=O"))
    with pytest.raises(build.BuildError, match="no repair"):
        build.repair("X", "CCO.C", "InChI=1S/C2H6O.CH4/c1-2-3;/h3H,2H2,1H3;1H4", "WRONG-KEY")
    with pytest.raises(build.BuildError, match="not part of"):
        build.repair("X", "CCO", acetamide, Chem.InchiToInchiKey(acetamide))
    anion = "InChI=1S/C2H5NO/c1-2(3)4/h1H3,(H2,3,4)/p-1"
    assert build.has_iminol(Chem.MolFromInchi(anion))
    with pytest.raises(build.BuildError, match="cannot stand in"):
        build.repair("X", "not a drawing", anion, Chem.InchiToInchiKey(anion))


def test_aqsoldb_is_whole_and_every_row_parses(aqsoldb):
    assert len(aqsoldb) == 9290
    assert set(next(iter(aqsoldb.values()))) == {"id", "smiles", "logS", "sd", "n", "group"}
    keys = {build.inchikey(row["smiles"]) for row in aqsoldb.values()}
    assert None not in keys
    assert len(keys) == 9290
    for row in aqsoldb.values():
        assert row["smiles"] == row["smiles"].strip()
        assert -14 < float(row["logS"]) < 3
        assert (float(row["sd"]) == 0) == (int(row["n"]) == 1)
        assert row["group"] in {"G1", "G2", "G3", "G4", "G5"}


def test_aqsoldb_has_no_iminol_but_the_one_its_source_draws(aqsoldb):
    iminols = {
        i for i, row in aqsoldb.items() if build.has_iminol(Chem.MolFromSmiles(row["smiles"]))
    }
    assert iminols == {"F-771"}


def test_the_repair_gives_back_the_structures_of_aqsoldb_itself(aqsoldb, shared_data):
    full = {row["ID"]: row for row in read_rows(shared_data / "aqsoldb.csv")}
    differing, other_key = set(), set()
    for row_id, row in aqsoldb.items():
        with rdBase.BlockLogs():
            theirs = Chem.MolFromSmiles(full[row_id]["SMILES"])
        if theirs is None or Chem.MolToSmiles(theirs) != Chem.CanonSmiles(row["smiles"]):
            differing.add(row_id)
        if build.inchikey(row["smiles"]) != full[row_id]["InChIKey"]:
            other_key.add(row_id)
        assert float(row["logS"]) == pytest.approx(float(full[row_id]["Solubility"]), abs=1e-8)
    assert differing == REDRAWN
    assert other_key == ELEMENTS


def test_huuskonen_is_whole_and_every_row_parses(huuskonen):
    assert list(huuskonen[0]) == ["id", "name", "smiles", "logS", "split"]
    splits = [row["split"] for row in huuskonen]
    assert (splits.count("train"), splits.count("test"), len(splits)) == (1025, 257, 1282)
    keys = [build.inchikey(row["smiles"]) for row in huuskonen]
    assert None not in keys
    assert len(set(keys)) == 1274
    assert len({row["name"] for row in huuskonen}) == 1282
    for row in huuskonen:
        assert -12 < float(row["logS"]) < 2
        assert row["name"].isascii()
        assert "_" not in row["name"]


def test_huuskonen_keeps_the_hydrogens_its_smiles_had_lost(huuskonen):
    by_name = {row["name"]: row["smiles"] for row in huuskonen}
    for name, formula in [
        ("pyrrole", "C4H5N"),
        ("indazole", "C7H6N2"),
        ("cimetidine", "C10H16N6S"),
        ("Adenine", "C5H5N5"),
        ("Amygdalin", "C20H27NO11"),
    ]:
        assert CalcMolFormula(Chem.MolFromSmiles(by_name[name])) == formula


# Standard InChIKeys of compounds whose stereochemistry or tautomer is easily drawn wrong.
KNOWN_KEYS = {
    "L-ascorbic acid (vitamin C)": "CIWBSHSKHKDKBQ-JLAZNSOCSA-N",
    "D-glucose": "WQZGKKKJIJFFOK-GASJEMHNSA-N",
    "L-menthol": "NOOLISFMXDJSKH-KXUCPTDWSA-N",
    "nicotine": "SNICXCGAKADSCV-JTQLQIEISA-N",
    "caffeine": "RYYVLZVUVIJVGH-UHFFFAOYSA-N",
    "metformin hydrochloride": "OETHQSJEHLVLGH-UHFFFAOYSA-N",
    "aspirin": "BSYNRYMUTXBXSQ-UHFFFAOYSA-N",
    "warfarin": "PJVWKTKQMONHTI-UHFFFAOYSA-N",
    "testosterone": "MUMGGOZAMZWBJJ-DYKIIFRCSA-N",
    "cholesterol": "HVYWMOMLDIMFJA-DPAQBDIFSA-N",
    "morphine": "BQJCRHHNABKAKU-KBQPJGBKSA-N",
    "imatinib": "KTUFNOKKBVMGRW-UHFFFAOYSA-N",
}


def test_smiles_txt_names_what_it_draws(huuskonen):
    lines = (SAMPLE_DATA / "smiles.txt").read_text(encoding="utf-8").splitlines()
    compounds = {name: smiles for smiles, name in (line.split(" ", 1) for line in lines)}
    keys = {name: build.inchikey(smiles) for name, smiles in compounds.items()}
    assert len(lines) == len(compounds) == len(set(keys.values())) == 44
    assert None not in keys.values()
    assert {name: keys[name] for name in KNOWN_KEYS} == KNOWN_KEYS
    measured = {row["name"].lower(): build.inchikey(row["smiles"]) for row in huuskonen}
    shared = compounds.keys() & measured.keys()
    assert len(shared) >= 15
    for name in shared:
        assert keys[name].split("-")[0] == measured[name].split("-")[0], name
