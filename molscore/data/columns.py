"""Which column is which: names as the user means them, the header, the SMILES column.

SMILES are recognised by their letters alone here; whether one can be read is for
`molscore.chem` to say, one record at a time.
"""

import difflib
import re
from collections.abc import Sequence
from typing import Final

from molscore.data.values import is_gap, is_number_like
from molscore.errors import ConfigError, InputError

# Names that say "SMILES" without the word, accepted when the values bear them out.
_WEAK_NAMES: Final = frozenset(
    {"smi", "structure", "structures", "mol", "molecule", "compound", "drug", "ligand", "cxsmiles"}
)
# Other names that head a list of molecules.
_LIST_NAMES: Final = frozenset(
    {"name", "names", "id", "ids", "title", "label", "key", "cas", "inchi", "inchikey", "query"}
    | {"mols", "molecules", "compounds", "drugs", "ligands", "compoundname", "compoundid"}
    | {"molid", "molname", "moleculeid", "moleculename", "input"}
)
_TOKEN: Final = re.compile(
    r"""(?P<bracket>\[[^\[\]\s]+\])
      | (?P<atom>Br|Cl|[BCNOPSFI]|\*)
      | (?P<aromatic>[bcnops])
      | (?P<ring>%\([0-9]+\)|%[0-9]{2}|[0-9])
      | (?P<mark>[-=#$:~/\\.>()]|<-)""",
    re.VERBOSE,
)


def looks_like_smiles(text: str) -> bool:
    """Whether a cell is spelled like a SMILES (or a reaction SMILES).

    Atoms, bonds, brackets, closed parentheses and ring bonds; no aromatic atom outside a ring.
    Words such as `NAME`, identifiers (`C12`), formulas (`C2H6O`) and numbers are not.
    """
    text = text.strip()
    position, depth, rings, closed, n_atoms, aromatic = 0, 0, set[str](), False, 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return False
        mark, kind = match.group(), match.lastgroup
        position = match.end()
        if kind == "ring":
            if n_atoms == 0:
                return False
            closed = closed or mark in rings
            rings ^= {mark}
        elif mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
            if depth < 0:
                return False
        elif kind != "mark":
            n_atoms += 1
            aromatic = aromatic or kind == "aromatic"
    return n_atoms > 0 and depth == 0 and not rings and (closed or not aromatic)


def is_word(text: str) -> bool:
    """Whether a cell has letters that no SMILES has, so that it can be a column name.

    A broken SMILES (`C1CC(`, `[R1]CC`) is not a word; neither are numbers and InChI.
    """
    text = text.strip().lstrip("#")
    if not text or text.startswith("InChI="):
        return False
    rest = _TOKEN.sub("", text)
    return any(letter.isalpha() for letter in rest) and not re.search(r"[=@\[\]\\]", text)


def plain_name(name: str) -> str:
    """A column name in lower case without blanks, marks or a leading `#`."""
    return re.sub(r"[^a-z0-9]+", "", name.casefold())


def is_smiles_name(name: str) -> bool:
    """Whether a column name says that the column holds SMILES: one of its words is SMILES.

    `smiles`, `Canonical_Smiles`, `SMILES (isomeric)`, `IsomericSMILES`, `smile`; not a whole
    line such as `smiles;logS`.
    """
    if re.search(r"[,;\t|]", name):
        return False
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip()).casefold())
    known = {"smiles", "smile", "cansmiles", "isosmiles", "canonicalsmiles", "isomericsmiles"}
    return bool(known & set(words)) and len(name) <= 60


def is_header_word(name: str) -> bool:
    """Whether a cell above a list of molecules is a usual name of a column."""
    plain = plain_name(name)
    return plain in _WEAK_NAMES or plain in _LIST_NAMES or is_smiles_name(name)


def is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> tuple[bool, str | None]:
    """Decide whether the first record of a table holds column names.

    The policy, in this order:

    1. A cell that names SMILES (`smiles`, `Canonical_Smiles`, ...) makes it a header, unless
       SMILES stand below other cells only (`CCO` with the name `smiles example`).
    2. A cell spelled like a SMILES makes it data: a first line `C` is methane. The exception
       is a cell over a column without any SMILES in a table that has them elsewhere (a
       header `name,structure,CN`).
    3. A first line with a word that no SMILES can be (`NAME`, `compound`) is a header when
       there are records below it. Unless such a word stands over numbers, this is a guess
       and noted.
    4. All else (numbers, broken SMILES) is data.

    Args:
        first: cells of the first record.
        rest: some records after it.

    Returns:
        The decision, and a note for the user where it was a guess.
    """
    shares = smiles_shares(rest, len(first))
    best = max(shares, default=0.0)
    for cell, share in zip(first, shares, strict=True):
        if is_smiles_name(cell) and (share > 0 or best == 0):
            return True, None
    for cell, share in zip(first, shares, strict=True):
        if looks_like_smiles(cell) and (share >= best * 0.5 or not rest):
            return False, None
    if not rest or not any(is_word(cell) for cell in first):
        return False, None
    at_smiles = first[shares.index(best)] if best > 0 else first[0]
    if best > 0 and not is_word(at_smiles) and at_smiles.strip():
        return False, None
    if any(is_word(cell) and _all_numbers(rest, i) for i, cell in enumerate(first)):
        return True, None
    line = " ".join(cell.strip() for cell in first).strip()[:60]
    return True, f"the first line, {line!r}, is taken as column names; --header no if it is not"


def _all_numbers(rows: Sequence[Sequence[str]], index: int) -> bool:
    cells = [row[index] for row in rows if index < len(row) and not is_gap(row[index])]
    return bool(cells) and all(is_number_like(cell) for cell in cells)


def smiles_shares(rows: Sequence[Sequence[str]], n_columns: int) -> list[float]:
    """For each column, the share of its cells with text that are spelled like SMILES."""
    shares = []
    for index in range(n_columns):
        cells = [row[index].strip() for row in rows if index < len(row)]
        cells = [cell for cell in cells if cell]
        hits = sum(looks_like_smiles(cell) or cell.startswith("InChI=") for cell in cells)
        shares.append(hits / len(cells) if cells else 0.0)
    return shares


def find_column(columns: Sequence[str], wanted: str, *, flag: str, table: str) -> int:
    """Find a column by the name a user gives.

    An exact match wins; then a match without the blanks around names; then one without regard
    to case; then a number counted from 1.

    Raises:
        ConfigError: when no column matches, or more than one does.
    """
    exact = [i for i, name in enumerate(columns) if name == wanted]
    blanks = [i for i, name in enumerate(columns) if name.strip() == wanted.strip()]
    folded = [i for i, name in enumerate(columns) if plain_case(name) == plain_case(wanted)]
    for matches in (exact, blanks, folded):
        if len(matches) == 1:
            return matches[0]
        if matches:
            places = ", ".join(str(i + 1) for i in matches)
            raise ConfigError(
                f"{table}: {flag} {wanted!r} is ambiguous: columns {places} have that name"
            )
    if wanted.strip().isdigit() and 1 <= int(wanted) <= len(columns):
        return int(wanted) - 1
    close = difflib.get_close_matches(wanted.strip(), [name.strip() for name in columns], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ConfigError(
        f"{table}: {flag} {wanted!r} is not a column{hint} The columns are {list_names(columns)}"
    )


def plain_case(name: str) -> str:
    """A name without the blanks around it and without regard to case."""
    return name.strip().casefold()


def list_names(columns: Sequence[str], limit: int = 20) -> str:
    """Quote column names for a message, at most `limit` of them."""
    shown = ", ".join(repr(name) for name in columns[:limit])
    return shown if len(columns) <= limit else f"{shown} and {len(columns) - limit} more"


def find_smiles_column(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, named: bool, table: str
) -> tuple[int, str, str | None]:
    """Find the SMILES column: by its name first, then by its values.

    Args:
        columns: column names.
        rows: some records.
        named: whether the names come from the file.
        table: what to call the table in a message.

    Returns:
        The position, how it was found (`name`, `content`, `only column`), a note or None.

    Raises:
        ConfigError: when several columns could be meant.
        InputError: when there is none.
    """
    if not columns:
        raise InputError(f"{table} has no columns")
    if named:
        by_name = _by_name(columns)
        if len(by_name) == 1:
            return by_name[0], "name", None
        if by_name:
            raise _ambiguous(table, [columns[i] for i in by_name])
    shares = smiles_shares(rows, len(columns))
    if named:
        weak = [i for i, name in enumerate(columns) if plain_name(name) in _WEAK_NAMES]
        weak = [i for i in weak if shares[i] >= 0.5]
        if len(weak) == 1:
            return weak[0], "name", None
    if len(columns) == 1:
        return 0, "only column", None
    good = [i for i, share in enumerate(shares) if share >= 0.5]
    if len(good) > 1:
        # A column of short words can be spelled like SMILES by chance; one where every cell
        # is, against one where half are, is no close call.
        top = max(shares)
        good = [i for i in good if shares[i] >= top - 0.2]
    if len(good) == 1:
        note = (
            f"SMILES are taken from column {columns[good[0]]!r}, by its values" if named else None
        )
        return good[0], "content", note
    if good:
        raise _ambiguous(table, [columns[i] for i in good])
    if not named:
        first = " ".join(cell for cell in rows[0] if cell) if rows else ""
        raise InputError(
            f"{table}: no column holds values that look like SMILES; the first line is "
            f"{first[:60]!r}. Where the first column does, say so: --format smi, or "
            "--smiles-column 1"
        )
    raise InputError(
        f"{table}: no column is called SMILES and none holds values that look like SMILES. "
        f"The columns are {list_names(columns)}; name one with --smiles-column"
    )


def _by_name(columns: Sequence[str]) -> list[int]:
    plain = [plain_name(name) for name in columns]
    for name in ("smiles", "isomericsmiles", "canonicalsmiles"):
        matches = [i for i, other in enumerate(plain) if other == name]
        if matches:
            return matches
    return [i for i, name in enumerate(columns) if is_smiles_name(name)]


def _ambiguous(table: str, names: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"{table}: more than one column could hold the SMILES: {list_names(names)}; "
        "name one with --smiles-column"
    )
