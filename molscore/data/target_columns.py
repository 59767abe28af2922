"""Which column is the target, when the user does not say.

Columns that hold numbers (or two classes) are candidates. Names that say otherwise
(identifiers, predictions, errors, counts, conditions, computed descriptors) are set aside; of
several candidates left, one that says that it is the measured one wins. Anything less clear
is the user's to decide.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from molscore.data.classes import MOSTLY, detect_classes, parse_class
from molscore.data.columns import find_column, list_names
from molscore.data.values import is_gap, is_integer_like, is_number_like
from molscore.errors import ConfigError, InputError

# Words of column names. A name is split at blanks, marks and humps, and matched word by word.
_MEASURED: Final = re.compile(
    r"measured|measurements?|experiment|experimental|observed|exp|expt|targets?|label|y"
)
_IDENTIFIER: Final = re.compile(
    r"ids?|no|num|nr|number|index|idx|row|rownum|line|names?|key|cas|[cs]id|chembl|inchi|inchikey"
    r"|unnamed|(mol|cmpd|compound|drug)id|pubchem|zinc|smiles"
)
_CALCULATED: Final = re.compile(r"pred|predicted|predictions?|calc|calculated|computed|estimated")
_SPREAD: Final = re.compile(
    r"sd|std|stdev|stddev|sem|se|err|errors?|rmsd|uncertainty|var|variance|ci|lower|upper"
    r"|occurrences?|counts?|n|nobs|replicates"
)
_CONDITION: Final = re.compile(
    r"temp|temp[ck]|temperature|ph|pressure|year|date|time|month|day|folds?|split|set|group"
    r"|cluster|weights?|batch|plate"
)
_DESCRIPTOR: Final = re.compile(
    r"mw|mwt|molwt|amw|exactmw|exactmolwt|mass|t?psa|hb[ad]|hbdonors|rings|ringcount|degree"
    r"|donors|acceptors|rotatable|heavyatomcount|fractioncsp3|mollogp|molmr|labuteasa|balabanj"
    r"|bertzct|qed|charge|formalcharge|refractivity|atoms|bonds|num[a-z]{2,}|minimum|maximum"
    r"|polar|molecularweight"
)
_INDEX_ROWS: Final = 20


def choose_targets(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    smiles_index: int,
    requested: Sequence[str] | None = None,
    *,
    classes: bool = False,
    table: str = "the table",
    flag: str = "--target",
) -> list[int]:
    """Choose the target columns.

    Args:
        columns: column names, length d.
        cells: the cells of each column, length d; a sample is enough.
        smiles_index: position of the SMILES column.
        requested: names the user gives, each matched by `columns.find_column`; None to choose.
        classes: whether classes are looked for; odd cells among them do not matter then.
        table: what to call the table in a message.
        flag: what to call the request in a message.

    Returns:
        Positions of the target columns, in the order requested; one when chosen.

    Raises:
        ConfigError: if several columns could be meant, or a requested one is missing,
            ambiguous, repeated, or the SMILES column.
        InputError: if no column can be a target.
    """
    if requested:
        return _requested(columns, smiles_index, requested, table, flag)
    candidates = [
        i for i in range(len(columns)) if i != smiles_index and _holds_values(cells[i], classes)
    ]
    if not candidates:
        raise InputError(
            f"{table}: no column holds numbers or two classes, so there is no target; --target "
            "names one, and --task classification says what its classes may be called. "
            f"The columns are {list_names(columns)}"
        )
    if len(candidates) == 1:
        return candidates
    likely = [i for i in candidates if not _set_aside(columns[i], cells[i])]
    measured = [i for i in likely if _has_word(_MEASURED, columns[i])]
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
    columns: Sequence[str], smiles_index: int, requested: Sequence[str], table: str, flag: str
) -> list[int]:
    chosen = [find_column(columns, name, flag=flag, table=table) for name in requested]
    if smiles_index in chosen:
        raise ConfigError(f"{table}: {flag} {columns[smiles_index]!r} is the SMILES column")
    if len(set(chosen)) < len(chosen):
        raise ConfigError(f"{table}: --target names a column twice: {list_names(requested)}")
    return chosen


def _holds_values(cells: Sequence[str], classes: bool) -> bool:
    present = [cell for cell in cells if not is_gap(cell)]
    n_numbers = sum(is_number_like(cell) for cell in present)
    if n_numbers > 0.5 * len(present):
        return True
    found = detect_classes(cells)
    if found is None or classes:
        return found is not None
    n_classes = sum(not isinstance(parse_class(cell, found), str) for cell in present)
    return n_classes >= MOSTLY * len(present)


def _set_aside(name: str, cells: Sequence[str]) -> bool:
    if not name.strip() or _has_word(_CALCULATED, name) or _has_word(_IDENTIFIER, name):
        return True
    if _has_word(_MEASURED, name):
        return False
    other = any(_has_word(kind, name) for kind in (_SPREAD, _CONDITION, _DESCRIPTOR))
    return other or _is_index(cells)


def _has_word(kind: re.Pattern[str], name: str) -> bool:
    return any(kind.fullmatch(word) for word in _words(name))


def _words(name: str) -> list[str]:
    """Split a name in lower case: `MolLogP (calc)` gives mollogp, calc, mol, log."""
    parts = re.findall(r"[A-Za-z]+[0-9]*|[0-9]+", name)
    words = [part.casefold() for part in parts]
    for part in parts:
        humps = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*", part)
        if len(humps) > 1:
            words += [hump.casefold() for hump in humps if len(hump) > 1]  # not the n of nM
    return words


def _is_index(cells: Sequence[str]) -> bool:
    """Whether a column counts the rows."""
    if len(cells) < _INDEX_ROWS or not all(is_integer_like(cell) for cell in cells):
        return False
    numbers = [float(cell) for cell in cells]
    return all(b - a == 1 for a, b in pairwise(numbers))
