"""Which column is the target, when the user does not say.

Columns that hold numbers (or two classes) are candidates. Names that say otherwise
(identifiers, predictions, errors, counts, conditions, computed descriptors) are set aside; of
several candidates left, one that says that it is the measured one wins. Anything less clear
is the user's to decide.
"""

import re
from collections.abc import Sequence
from typing import Final

from molscore.data.columns import find_column, list_names
from molscore.data.values import detect_classes, is_gap, is_integer_like, is_number_like
from molscore.errors import ConfigError, InputError

_MEASURED: Final = frozenset(
    "measured measurement experimental experiment observed exp expt target targets label y".split()
)
_IDENTIFIER: Final = frozenset(
    "id ids no num nr number index idx row rownum line name key cas cid sid chembl inchikey inchi "
    "unnamed molid cmpdid compoundid pubchem zinc smiles".split()
)
_CALCULATED: Final = frozenset(
    "predicted pred prediction calculated calc computed estimated esol_predicted model".split()
)
_SPREAD: Final = frozenset(
    "sd std stdev stddev sem se error err rmsd uncertainty variance var ci lower upper "
    "occurrences occurrence count counts n nobs replicates".split()
)
_CONDITION: Final = frozenset(
    "temperature temp tempc tempk ph pressure year date time month day fold folds split set "
    "group cluster weight weights batch plate".split()
)
_DESCRIPTOR: Final = frozenset(
    "mw mwt molwt amw exactmw exactmolwt molecularweight mass tpsa psa hba hbd hbdonors "
    "rings degree donors acceptors rotatable heavyatomcount ringcount fractioncsp3 mollogp molmr "
    "labuteasa balabanj bertzct qed numvalenceelectrons charge formalcharge refractivity atoms "
    "bonds".split()
)
_INDEX_ROWS: Final = 20


def choose_targets(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    smiles_index: int,
    requested: Sequence[str] | None = None,
    *,
    table: str = "the table",
) -> list[int]:
    """Choose the target columns.

    Args:
        columns: column names, length d.
        cells: the cells of each column, length d; a sample is enough.
        smiles_index: position of the SMILES column.
        requested: names the user gives, each matched by `columns.find_column`; None to choose.
        table: what to call the table in a message.

    Returns:
        Positions of the target columns, in the order requested; one when chosen.

    Raises:
        ConfigError: if several columns could be meant, or a requested one is missing,
            ambiguous, repeated, or the SMILES column.
        InputError: if no column can be a target.
    """
    if requested:
        return _requested(columns, smiles_index, requested, table)
    candidates = [i for i in range(len(columns)) if i != smiles_index and _holds_values(cells[i])]
    if not candidates:
        raise InputError(
            f"{table}: no column holds numbers or two classes, so there is no target. "
            f"The columns are {list_names(columns)}"
        )
    if len(candidates) == 1:
        return candidates
    likely = [i for i in candidates if not _set_aside(columns[i], cells[i])]
    measured = [i for i in likely if _MEASURED & set(_words(columns[i]))]
    for choice in (likely, measured):
        if len(choice) == 1:
            return choice
    options = measured or likely or candidates
    raise ConfigError(
        f"{table}: {len(options)} columns could be the target: "
        f"{list_names([columns[i].strip() for i in options])}; name one with --target "
        "(more than once for several targets)"
    )


def _requested(
    columns: Sequence[str], smiles_index: int, requested: Sequence[str], table: str
) -> list[int]:
    chosen = [find_column(columns, name, flag="--target", table=table) for name in requested]
    if smiles_index in chosen:
        raise ConfigError(f"{table}: --target {columns[smiles_index]!r} is the SMILES column")
    if len(set(chosen)) < len(chosen):
        raise ConfigError(f"{table}: --target names a column twice: {list_names(requested)}")
    return chosen


def _holds_values(cells: Sequence[str]) -> bool:
    present = [cell for cell in cells if not is_gap(cell)]
    n_numbers = sum(is_number_like(cell) for cell in present)
    return n_numbers > 0.5 * len(present) or detect_classes(cells) is not None


def _set_aside(name: str, cells: Sequence[str]) -> bool:
    words = _words(name)
    known = set(words)
    if not words or known & (_CALCULATED | _IDENTIFIER):
        return True
    if known & _MEASURED:
        return False
    if known & (_SPREAD | _CONDITION | _DESCRIPTOR):
        return True
    if len(words) > 1 and words[0] in {"num", "number", "n", "min", "max", "minimum", "maximum"}:
        return True
    if any(word.startswith("num") and len(word) > 4 for word in words):
        return True
    if known >= {"polar", "surface"} or known >= {"molecular", "weight"}:
        return True
    return _is_index(cells)


def _words(name: str) -> list[str]:
    """Split a name at blanks, marks and humps: `HeavyAtomCount` gives also its whole."""
    name = name.strip()
    parts = re.findall(r"[A-Za-z]+[0-9]*|[0-9]+", name)
    words = [part.casefold() for part in parts]
    for part in parts:
        humps = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*", part)
        if len(humps) > 1:
            words += [hump.casefold() for hump in humps]
    return words


def _is_index(cells: Sequence[str]) -> bool:
    """Whether a column counts the rows."""
    if len(cells) < _INDEX_ROWS or not all(is_integer_like(cell) for cell in cells):
        return False
    numbers = [float(cell) for cell in cells]
    return all(b - a == 1 for a, b in zip(numbers, numbers[1:], strict=False))
