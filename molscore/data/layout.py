"""How the columns of a text table are parted, found from its first lines."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from molscore.data.columns import is_smiles_name, smiles_shares
from molscore.data.delimited import (
    LineFeed,
    read_blank_separated,
    read_separated,
    read_smiles_lines,
    trim_blank_lines,
)
from molscore.data.records import RawRecord, TableOptions

_SEPARATORS: Final = (",", ";", "\t", "|")
_SAMPLE_RECORDS: Final = 200


def declared_separator(line: str) -> str | None:
    """Return the separator that Excel's own first line, such as `sep=;`, declares."""
    found = re.fullmatch(r"sep=(.)", line.rstrip("\r\n"), re.IGNORECASE)
    return found[1] if found else None


@dataclass(frozen=True)
class Layout:
    """A way to read lines as records.

    Attributes:
        kind: `separated` (quoted, one separator), `smi`, or `blanks`.
        separator: for `separated`.
        skip_blanks: for `separated`, see `read_separated`.
    """

    kind: Literal["separated", "smi", "blanks"]
    separator: str = ","
    skip_blanks: bool = False

    def read(self, stream: io.TextIOBase, name: str) -> Iterator[RawRecord]:
        """Read all records of a stream, blank lines around them dropped."""
        feed = LineFeed(stream, name)
        if declared_separator(first := feed.next() or "") is None and first:
            feed.put_back([first])
        if self.kind == "smi":
            records = read_smiles_lines(feed)
        elif self.kind == "blanks":
            records = read_blank_separated(feed)
        else:
            records = read_separated(feed, self.separator, skip_blanks=self.skip_blanks)
        return trim_blank_lines(records)


@dataclass(frozen=True)
class _Trial:
    """What a layout makes of the first lines."""

    layout: Layout
    n_columns: int  # the commonest number of fields
    consistency: float  # share of records with that number
    named: bool  # a column name in the first record says SMILES
    share: float  # of SMILES in the best column
    at: int  # the best column


def choose_layout(head: str, options: TableOptions, extension: str) -> Layout:
    """Find the layout of a text table.

    A separator that makes a SMILES column name appear in the first line wins; then the one
    that makes a column of SMILES appear with a steady number of fields; then any that gives
    a steady number of fields; then the file name's.

    Args:
        head: the first lines.
        options: what the user has set.
        extension: of the file name in lower case without `.gz`, such as ".csv"; "" for stdin.
    """
    declared = declared_separator(head.partition("\n")[0])
    mark = options.separator_char or declared or ("\t" if options.format == "tsv" else None)
    if mark == " ":
        return Layout("blanks")
    if mark is not None:
        return Layout("separated", mark, _skips_blanks(head, mark))
    if options.format == "smi":
        return Layout("smi")
    trials = [
        trial
        for separator in _SEPARATORS
        if separator in head
        and (trial := _try(head, Layout("separated", separator, _skips_blanks(head, separator))))
        and trial.n_columns > 1
    ]
    chosen = _choose(trials, head, extension) if options.format == "auto" else _best(trials)
    if chosen is not None:
        return chosen.layout
    by_name = {".csv": ",", ".tsv": "\t", ".tab": "\t"}.get(extension)
    mark = "," if options.format == "csv" else by_name
    return Layout("separated", mark) if mark else Layout("smi")


def _choose(trials: Sequence[_Trial], head: str, extension: str) -> _Trial | None:
    smi, blanks, best = _try(head, Layout("smi")), _try(head, Layout("blanks")), _best(trials)
    named = _choose_by_name(best, smi, blanks, extension)
    if named is not None:
        return named
    if blanks and _is_table_of_blanks(blanks):
        return blanks
    in_list = smi is not None and smi.at == 0 and smi.share >= 0.5
    if smi and in_list and best and extension not in {".csv", ".tsv", ".tab"} and _is_list(best):
        return smi
    if (
        best
        and best.share >= 0.5
        and (not in_list or best.consistency >= 0.8 or (smi and best.share > smi.share))
    ):
        return best
    if smi and in_list and (extension != ".csv" or " " in head):
        return smi
    return _best([trial for trial in trials if trial.consistency == 1.0])


def _choose_by_name(
    best: _Trial | None, smi: _Trial | None, blanks: _Trial | None, extension: str
) -> _Trial | None:
    """Choose among the layouts that make a SMILES column name appear in the first line."""
    if best and best.named:
        # A name left out here and there is no fault of a list, but of a table.
        partial = _is_list(best) and best.consistency < 0.8
        return smi if partial and smi and smi.named else best
    if blanks and blanks.named and _is_table_of_blanks(blanks):
        return blanks
    return smi if smi and smi.named and extension != ".csv" else None


def _is_list(trial: _Trial) -> bool:
    """Whether the table is SMILES, a tab, a name: a list whose names may hold anything."""
    return trial.layout.separator == "\t" and trial.n_columns == 2 and trial.at == 0


def _best(trials: Sequence[_Trial]) -> _Trial | None:
    return max(
        trials, key=lambda t: (t.named, t.share >= 0.5, t.consistency, t.share), default=None
    )


def _is_table_of_blanks(trial: _Trial) -> bool:
    """Whether runs of blanks part columns, rather than a SMILES from the words of its name."""
    if trial.n_columns < 2 or trial.consistency < 1.0:
        return False
    return (trial.named and trial.n_columns > 2) or (trial.at > 0 and trial.share >= 0.5)


def _try(head: str, layout: Layout) -> _Trial | None:
    records = list(islice(layout.read(io.StringIO(head, newline=""), "head"), _SAMPLE_RECORDS))
    rows = [record.fields for record in records if record.fields]
    if not rows:
        return None
    n_columns, n_usual = Counter(map(len, rows)).most_common(1)[0]
    shares = smiles_shares(rows[1:] or rows, n_columns)
    at = shares.index(max(shares))
    named = any(is_smiles_name(cell) for cell in rows[0][: 1 if layout.kind == "smi" else None])
    return _Trial(layout, n_columns, n_usual / len(rows), named, shares[at], at)


def _skips_blanks(head: str, separator: str) -> bool:
    """Whether quotes stand behind blanks that follow a separator, as in `a, "b"`."""
    return f'{separator} "' in head and f'{separator}"' not in head
