"""SDF files as tables: one row a mol block, one column a property."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from molscore.data.delimited import LineFeed
from molscore.data.records import RawRecord, TableInfo, TableOptions, no_records
from molscore.data.rowsets import SAMPLE_RECORDS, RowSet, number_records
from molscore.data.streams import ByteSource, as_text, open_source
from molscore.errors import ConfigError, InputError

MAX_BLOCK_CHARS: Final = 1 << 24


class _Block(NamedTuple):
    line: int
    text: str


def open_sdf(source: ByteSource, options: TableOptions) -> RowSet:
    """Open an SDF: the SMILES and the name of each mol block, then its properties.

    The columns are the properties in the order in which they first appear, of the whole file
    where it can be read twice; on stdin, of the first records, and a record with another
    property has a problem. A block that cannot be read is a record with a problem.

    Raises:
        InputError: if there is no record.
        ConfigError: if a header is ruled out.
    """
    from molscore.chem.sdf import (  # noqa: PLC0415 (RDKit, only for this format)
        property_names,
        read_sdf_block,
    )

    if options.header == "no":
        raise ConfigError("--header no does not go with sdf, whose properties have names")
    text = as_text(source, options.encoding)
    blocks = _blocks(LineFeed(text.stream, source.name))
    ahead = list(islice(blocks, SAMPLE_RECORDS))
    if not ahead:
        raise no_records(source.name)
    again = (
        ahead if source.path is None or not source.path.is_file() else _read_again(source, options)
    )
    names: dict[str, None] = {}
    for block in again:
        names.update(dict.fromkeys(property_names(block.text)))
    smiles_column = _free_name(("smiles", "block_smiles", "sdf_block_smiles"), names)
    name_column = _free_name(("name", "block_name", "sdf_block_name"), names)

    def rows() -> Iterator[RawRecord]:
        for line, block in chain(ahead, blocks):
            smiles, name, properties, problem = read_sdf_block(block)
            unknown = next((key for key in properties if key not in names), None)
            if unknown is not None:
                problem = problem or f"property {unknown!r} is in none of the first records"
            yield RawRecord(
                line, [smiles, name, *(properties.get(key, "") for key in names)], problem
            )

    raw = rows()
    sample = list(islice(raw, SAMPLE_RECORDS))
    return RowSet(
        name=source.name,
        columns=[smiles_column, name_column, *names],
        named=True,
        sample=[record.fields for record in sample],
        records=number_records(chain(sample, raw), len(names) + 2, None),
        info=TableInfo(format="sdf", encoding=text.encoding, compression=source.compression),
        close=source.close,
        smiles_index=0,
    )


def _free_name(names: tuple[str, ...], taken: dict[str, None]) -> str:
    lowered = {name.casefold() for name in taken}
    return next((name for name in names if name not in lowered), names[-1])


def _read_again(source: ByteSource, options: TableOptions) -> Iterator[_Block]:
    second = open_source(source.name)
    try:
        text = as_text(second, options.encoding)
        yield from _blocks(LineFeed(text.stream, source.name))
    finally:
        second.close()


def _blocks(feed: LineFeed) -> Iterator[_Block]:
    """Cut the lines at `$$$$`; the last block may go without, unless it is blank."""
    lines: list[str] = []
    n_chars, start = 0, 1
    while (line := feed.next()) is not None:
        if line.startswith("$$$$"):
            yield _Block(start, "\n".join(lines))
            lines, n_chars, start = [], 0, feed.line + 1
            continue
        lines.append(line.rstrip("\r\n"))
        n_chars += len(line)
        if n_chars > MAX_BLOCK_CHARS:
            raise InputError(
                f"{feed.name}, line {start}: a record of more than {MAX_BLOCK_CHARS:,} "
                "characters; is a line with $$$$ missing?"
            )
    if any(line.strip() for line in lines):
        yield _Block(start, "\n".join(lines))
