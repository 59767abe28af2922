"""Text tables as people have them: what is read, what is found out, what is refused."""

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from molscore.data.delimited import MAX_LINE_CHARS, MAX_RECORD_LINES
from molscore.data.prefixed import HEAD_BYTES, HEAD_LINES, read_head
from molscore.data.tables import Record, TableOptions, TableReader, open_table
from molscore.errors import ConfigError, InputError


class Opener:
    """Writes a file and reads it back whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, content: bytes | str, name: str) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def __call__(
        self, content: bytes | str, name: str = "t.txt", **options: str
    ) -> tuple[TableReader, list[Record]]:
        with open_table(self.path(content, name), TableOptions(**options)) as reader:
            return reader, list(reader)

    def smiles(self, content: bytes | str, name: str = "t.txt", **options: str) -> list[str]:
        reader, records = self(content, name, **options)
        return [record.fields[reader.smiles_index] for record in records]


@pytest.fixture
def opened(tmp_path):
    return Opener(tmp_path)


def feed_stdin(monkeypatch, content: bytes) -> io.BytesIO:
    raw = io.BytesIO(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    return raw


# --- header or none -----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["C1CC oops\n", "CC( mol1\n", "C1CC a\nC1CC b c\n", "C1CC\n"])
def test_a_list_of_broken_smiles_alone_is_a_list(opened, text):
    assert opened.smiles(text) == [line.split(" ")[0] for line in text.splitlines()]


def test_words_are_smiles_only_where_the_format_says_so(opened):
    with pytest.raises(InputError, match=r"the first line is 'xyz mol1'.*--format smi"):
        opened("xyz mol1\n")
    assert opened.smiles("xyz mol1\n", format="smi") == ["xyz"]
    assert opened.smiles("xyz mol1\n", smiles_column="1") == ["xyz"]


@pytest.mark.parametrize("text", ["foo\nbar\nCCO\n", "foo\nCCO\n"])
def test_an_unknown_word_above_a_list_is_a_record(opened, text):
    assert opened.smiles(text) == text.split()


@pytest.mark.parametrize("word", ["name", "compound", "SMILES", "Molecule ID"])
def test_a_usual_word_above_a_list_is_its_header(opened, word):
    assert opened.smiles(f"{word}\nCCO\nCCC\n") == ["CCO", "CCC"]


@pytest.mark.parametrize(
    "above",
    ["Lab book 7\n", "Lab book 7\n\n", "# exported, today\n# by, me\n", "Solubility,,\n\n"],
)
def test_titles_and_comments_above_the_column_names_are_left_out(opened, above):
    reader, records = opened(f"{above}id,smiles,logS\n1,CCO,0.5\n2,CCC,-2\n", "t.csv")
    assert reader.columns == ["id", "smiles", "logS"]
    assert [record.fields for record in records] == [["1", "CCO", "0.5"], ["2", "CCC", "-2"]]
    (note,) = reader.info.notes
    assert note.startswith("left out: ")


@pytest.mark.parametrize(
    "text",
    [
        "Xx\nQq name1\nCCO 1\nCCC 2\n",
        "aspirin\nbenzene,alt\nCCO,1\nCCC,2\n",
        "bad molecule\nRx,Ry\nCCO,1.5\nCCC,2\n",
    ],
)
def test_unknown_words_below_a_title_are_no_column_names(opened, text):
    reader, records = opened(text)
    assert len(records) + reader.info.header == 4
    assert not any("left out" in note for note in reader.info.notes)


def test_a_first_molecule_without_a_value_is_no_title(opened):
    reader, records = opened("CCO,\nCCC,1\nCCN,2\n", "t.csv")
    assert len(records) == 3
    reader, records = opened("oops,\nCCC,1\nCCN,2\n", "t.csv")
    assert len(records) + reader.info.header == 3


def test_a_list_without_header_keeps_its_first_molecule(opened):
    reader, records = opened("CCO\nCCN\nCCC\n")
    assert reader.columns == ["smiles"]
    assert not reader.info.header
    assert records == [
        Record(0, 1, ["CCO"], None),
        Record(1, 2, ["CCN"], None),
        Record(2, 3, ["CCC"], None),
    ]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("SMILES\nCCO\n", ["SMILES"]),
        ("smiles\tname\nCCO\tx\n", ["smiles", "name"]),
        ("Canonical_Smiles\nCCO\n", ["Canonical_Smiles"]),
        ("#SMILES ID\nCCO x y\n", ["#SMILES", "ID"]),
        ("IsomericSMILES,y\nCCO,1\n", ["IsomericSMILES", "y"]),
        ("SMILES (as drawn);y\nCCO;1\n", ["SMILES (as drawn)", "y"]),
    ],
)
def test_a_smiles_name_in_the_first_line_is_a_header(opened, content, columns):
    reader, records = opened(content)
    assert reader.columns == columns
    assert [record.fields[0] for record in records] == ["CCO"]
    assert reader.info.header
    assert reader.info.notes == ()


def test_a_first_line_that_is_a_molecule_is_data_whatever_it_might_mean(opened):
    assert opened.smiles("C\nCCO\n") == ["C", "CCO"]
    assert opened.smiles("CNS\n") == ["CNS"]


def test_a_first_line_that_no_smiles_can_be_is_a_header_and_noted(opened):
    reader, records = opened("NAME\nCCO\n")
    assert reader.columns == ["NAME"]
    assert len(records) == 1
    assert "'NAME'" in reader.info.notes[0]
    assert "--header no" in reader.info.notes[0]


def test_a_word_over_numbers_is_a_header_beyond_doubt(opened):
    reader, _ = opened("compound,logS\nCCO,1\nCCN,\nCC,-2e-3\n", "t.csv")
    assert reader.columns == ["compound", "logS"]
    assert reader.info.notes == ()


def test_a_single_line_is_never_only_a_header_unless_it_names_smiles(opened):
    assert opened.smiles("NAME\n") == ["NAME"]
    assert opened.smiles("SMILES\n") == []


@pytest.mark.parametrize("first", ["N=N[Br]c2ccccc2)C", "[R1]CC", "C1CC(", "InChI=1S/CH4/h1H4"])
def test_a_broken_structure_in_the_first_line_is_data(opened, first):
    assert opened.smiles(f"{first}\nCCN\nCCO\n") == [first, "CCN", "CCO"]


def test_the_header_option_overrides_the_guess(opened):
    assert opened.smiles("SMILES\nCCO\n", header="no") == ["SMILES", "CCO"]
    reader, records = opened("CCO\nCCN\n", header="yes")
    assert reader.columns == ["CCO"]
    assert [record.fields for record in records] == [["CCN"]]


def test_columns_without_names_are_numbered(opened):
    reader, _ = opened("ethanol,CCO,-0.77\nx,CCN,1\n", "t.csv")
    assert reader.columns == ["column_1", "smiles", "column_3"]
    assert reader.smiles_index == 1


# --- separators ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "separator", "columns"),
    [
        ("smiles;logS\nCCO;1.1\nCCN;0.9\n", ";", ["smiles", "logS"]),
        ("smiles;logS\nCCO;1,1\nCCN;0,9\n", ";", ["smiles", "logS"]),
        ("smiles|logS\nCCO|1.1\n", "|", ["smiles", "logS"]),
        ("smiles\tlogS\nCCO\t1,1\n", "\t", ["smiles", "logS"]),
        ("name smiles y\nethanol CCO 1\nx  CCN  2\n", " ", ["name", "smiles", "y"]),
        ("a;b,smiles\n1;2,CCO\n", ",", ["a;b", "smiles"]),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.tsv"])
def test_the_separator_is_found_whatever_the_file_is_called(
    opened, content, separator, columns, name
):
    reader, records = opened(content, name)
    assert reader.info.separator == separator
    assert reader.columns == columns
    assert all(record.problem is None for record in records)


def test_a_separator_option_overrides_the_guess_and_is_checked(opened):
    reader, records = opened("smiles,y;z\nCCO,1;2\n", separator="semicolon", smiles_column="1")
    assert reader.columns == ["smiles,y", "z"]
    assert records[0].fields == ["CCO,1", "2"]
    with pytest.raises(ConfigError, match="separator 'ab'"):
        TableOptions(separator="ab")


def test_quoted_commas_and_an_unquoted_one(opened):
    reader, records = opened(
        'name,smiles,y\n"1,2-dichloroethane",ClCCCl,-1.1\n'
        "N,N-dimethylaniline,CN(C)c1ccccc1,-2\nethane,CC,1\n",
        "t.csv",
    )
    assert records[0] == Record(0, 2, ["1,2-dichloroethane", "ClCCCl", "-1.1"], None)
    assert records[1].line == 3
    assert "4 fields where the table has 3 columns" in records[1].problem
    assert records[1].fields == ["N", "N-dimethylaniline", "CN(C)c1ccccc1,-2"]
    assert records[2] == Record(2, 4, ["ethane", "CC", "1"], None)
    assert reader.smiles_index == 1


def test_too_few_fields_are_a_problem_too(opened):
    _, records = opened("id,smiles,y\n1,CCO,2\nCCN,3\n", "t.csv")
    assert "2 fields where the table has 3 columns" in records[1].problem


def test_a_separator_at_the_end_of_lines_is_none(opened):
    _, records = opened("smiles,y\nCCO,1,\nCCN,2\nCCC,3,,\n", "t.csv")
    assert [record.problem for record in records] == [None] * 3
    assert [record.fields for record in records] == [["CCO", "1"], ["CCN", "2"], ["CCC", "3"]]


def test_padded_and_repeated_column_names_stay_as_they_are(opened):
    reader, records = opened("smiles,y ,y ,log S0 (mol/L)\nCCO,1,2,3\n", "t.csv")
    assert reader.columns == ["smiles", "y ", "y ", "log S0 (mol/L)"]
    assert records[0].fields == ["CCO", "1", "2", "3"]


def test_cells_are_not_rewritten(opened):
    cells = ["CCO", "007", "NA", "1.10", "  x ", "1e5", "TRUE", ""]
    header = "smiles,a,b,c,d,e,f,g"
    _, records = opened(f"{header}\n{','.join(cells)}\n", "t.csv")
    assert records[0].fields == cells


# --- SMILES lists -------------------------------------------------------------------------


def test_names_of_any_words_behind_blanks_or_a_tab(opened):
    reader, records = opened(
        "ClCCCl 1,2-dichloroethane\nCN(C)c1ccccc1\tN,N-dimethyl aniline; pure\nCC\n", "t.smi"
    )
    assert reader.columns == ["smiles", "name"]
    assert [record.fields for record in records] == [
        ["ClCCCl", "1,2-dichloroethane"],
        ["CN(C)c1ccccc1", "N,N-dimethyl aniline; pure"],
        ["CC", ""],
    ]
    assert all(record.problem is None for record in records)


def test_names_that_every_comma_would_split_evenly_stay_whole(opened):
    _, records = opened("CCO a,b\nCCN c,d\nCCC e,f\n", "t.csv")
    assert [record.fields for record in records] == [
        ["CCO", "a,b"],
        ["CCN", "c,d"],
        ["CCC", "e,f"],
    ]


def test_a_list_headed_by_two_words(opened):
    reader, records = opened("SMILES name\nCCO ethyl alcohol\nCCN x\n", "t.smi")
    assert reader.columns == ["SMILES", "name"]
    assert records[0].fields == ["CCO", "ethyl alcohol"]


def test_a_name_that_speaks_of_smiles_is_no_header(opened):
    assert opened.smiles("CCO smiles\nCCN x\n") == ["CCO", "CCN"]
    assert opened.smiles("CCO\tmy smiles\nCCN\tx\n") == ["CCO", "CCN"]


def test_names_first_are_found_too(opened):
    reader, records = opened("ethanol CCO\naniline c1ccccc1N\n")
    assert reader.smiles_index == 1
    assert records[1].fields == ["aniline", "c1ccccc1N"]


def test_quotes_around_smiles_are_removed(opened):
    assert opened.smiles('"CCO"\n\'CCN\'\n"CCC propane"\n') == ["CCO", "CCN", "CCC"]


def test_a_cxsmiles_extension_is_left_to_chemistry(opened):
    _, records = opened("CCO |$R;;$| x,y\nCCN\n", "t.smi")
    assert records[0].fields == ["CCO", "|$R;;$| x,y"]


@pytest.mark.parametrize(
    "lines",
    [
        ["[K+].[I-]", "CC(=O)[O-].[Na+]", "O.O.O"],
        ["CCO>>CC=O", "CCO.CN>>CCN"],
        ["*", "*CC", "C[*:1]", "[1*]c1ccccc1", "[U]"],
        ["c1ccccn1->[Fe]", "O->[Mg+2]<-O", "[Cl-]->[Ga+3](<-[Cl-])<-[Cl-]"],
        ["C", "[Na+]"],
        ["[R1]CC", "[(R6)n]C", "[alkyl]O", "[Xx]", "CCO"],
        ["InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3", "InChI=1S/CH4/h1H4"],
    ],
)
def test_lists_of_odd_structures_are_one_column(opened, lines):
    assert opened.smiles("\n".join(lines)) == lines


def test_unquoted_inchi_in_a_list_with_header_shifts_nothing(opened):
    inchi = "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3"
    assert opened.smiles(f'smiles\n"{inchi}"\n{inchi}\nCCO\n') == [inchi, inchi, "CCO"]


def test_unquoted_inchi_in_a_table_is_a_ragged_row(opened):
    _, records = opened("smiles,id\nInChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3,7\nCCO,8\n", "t.csv")
    assert "ragged" in records[0].problem
    assert "looks like InChI" in records[0].problem
    assert records[1].problem is None


@pytest.mark.parametrize("head", ["", "structure code\n"])
def test_names_that_could_be_smiles_are_names_in_a_list(opened, head):
    reader, records = opened(f"{head}C1CCCCC1 N\nCCO C\nCCN O\n", "t.smi")
    assert reader.smiles_index == 0
    assert [record.fields[1] for record in records] == ["N", "C", "O"]


# --- line ends, blanks, quotes ------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_every_kind_of_line_end(opened, end):
    reader, records = opened(end.join(["smiles,id", "CCO,a", "CCN,b"]) + end, "t.csv")
    assert [record.fields for record in records] == [["CCO", "a"], ["CCN", "b"]]
    assert [record.line for record in records] == [2, 3]
    assert reader.columns == ["smiles", "id"]


def test_mixed_line_ends_and_a_blank_line_between(opened):
    _, records = opened("CCO\r\nCCN\n\r\nCCC \r\n")
    assert [record.fields for record in records] == [["CCO"], ["CCN"], [""], ["CCC"]]
    assert [record.line for record in records] == [1, 2, 3, 4]
    assert [record.row for record in records] == [0, 1, 2, 3]
    assert all(record.problem is None for record in records)


def test_blank_lines_around_a_table_are_no_records(opened):
    _, records = opened("\n\nsmiles,y\nCCO,1\n\n,\n\n  \n", "t.csv")
    assert [record.fields for record in records] == [["CCO", "1"], ["", ""], ["", ""]]
    assert [record.line for record in records] == [4, 5, 6]


def test_no_line_end_at_the_end(opened):
    assert opened.smiles("CCO\nCCN") == ["CCO", "CCN"]


def test_line_ends_within_quotes_stay(opened):
    _, records = opened('name,smiles\n"a\r\nb",CCO\nc,CCN\n', "t.csv")
    assert records[0] == Record(0, 2, ["a\r\nb", "CCO"], None)
    assert records[1] == Record(1, 4, ["c", "CCN"], None)


def test_a_quote_that_never_closes_costs_one_record(opened):
    lines = "".join(f"CCC,{i}\n" for i in range(3000))
    _, records = opened(f'smiles,n\n"CCO,x\n{lines}', "t.csv")
    assert len(records) == 3001
    assert records[0].problem == "a quote is opened and not closed"
    assert records[0].fields == ['"CCO', "x"]
    assert records[-1] == Record(3000, 3002, ["CCC", "2999"], None)


def test_a_quote_that_closes_far_below_does_not_swallow_the_lines_between(opened):
    lines = "".join(f"a,x,CCC,{i}\n" for i in range(50))
    _, records = opened(f'n,note,smiles,y\n"x,x,CCO,1\n{lines}b,5",CC,2\n', "t.csv")
    assert len(records) == 52
    assert records[0].problem == "a quote is opened and not closed"
    assert records[-1] == Record(51, 53, ["b", '5"', "CC", "2"], None)


def test_a_cell_may_span_many_lines_but_not_all(opened):
    cell = "\n".join("x" * 5 for _ in range(MAX_RECORD_LINES - 1))
    _, records = opened(f'smiles,n\nCCO,"{cell}"\nCCN,2\n', "t.csv")
    assert [len(records), records[0].fields[1] == cell] == [2, True]


def test_text_after_a_closing_quote(opened):
    _, records = opened('n,smiles\n"x" ,CCN\n"a ""b""",CC\n5" pipe,C\n', "t.csv")
    assert [record.fields for record in records] == [
        ["x ", "CCN"],
        ['a "b"', "CC"],
        ['5" pipe', "C"],
    ]


def test_a_blank_before_a_quote(opened):
    reader, records = opened('smiles, name\nCCO, "a, b"\n', "t.csv")
    assert reader.columns == ["smiles", "name"]
    assert records[0].fields == ["CCO", "a, b"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_very_long_fields(opened, quote):
    smiles = "C" * 500_000
    _, records = opened(f"smiles,n\n{quote}{smiles}{quote},1\nCCO,2\n", "t.csv")
    assert records[0].fields == [smiles, "1"]
    assert records[1].fields == ["CCO", "2"]


def test_a_line_without_end_is_refused_in_bounded_memory(opened):
    with pytest.raises(InputError, match=r"line 2: longer than"):
        opened("smiles\n" + "C" * MAX_LINE_CHARS, "t.csv")


def test_a_nul_character_makes_a_record_untrustworthy(opened):
    _, records = opened("smiles,n\nCCO\0CC,1\nCCN,2\n", "t.csv")
    assert "NUL" in records[0].problem
    assert records[1].problem is None


# --- encodings and compression ------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"],
)
def test_encodings_are_found(opened, encoding):
    text = '"smiles";"löslich"\r\n"CCO";"Äthanol é"\r\n'
    reader, records = opened(text.encode(encoding), "t.csv")
    assert reader.columns == ["smiles", "löslich"]
    assert records[0].fields == ["CCO", "Äthanol é"]


def test_a_byte_order_mark_before_a_list(opened):
    assert opened.smiles(b"\xef\xbb\xbfCCO\nCCN\n") == ["CCO", "CCN"]


def test_a_byte_order_mark_goes_even_where_the_encoding_is_given(opened):
    assert opened.smiles(b"\xef\xbb\xbfCCO\nCCN\n", encoding="utf-8") == ["CCO", "CCN"]


def test_bytes_that_are_not_utf8_beyond_the_head_are_read_as_cp1252(opened):
    content = b"CCO ethanol\n" * 40_000 + "CCN Äthyl é\n".encode("cp1252") + b"CC \x81\n"
    reader, records = opened(content, "t.smi")
    assert reader.info.encoding == "utf-8"
    assert records[-2].fields == ["CCN", "Äthyl é"]
    assert records[-1].fields == ["CC", "\x81"]


def test_an_encoding_that_is_given_is_strict(opened):
    with pytest.raises(InputError, match="not valid text in the encoding utf-8"):
        opened("CCO Ä\n".encode("cp1252"), encoding="utf-8")
    with pytest.raises(ConfigError, match="encoding 'klingon'"):
        TableOptions(encoding="klingon")


@pytest.mark.parametrize("name", ["x.smi.gz", "x.smi", "x.gz", "x"])
def test_gzip_is_known_by_its_bytes(opened, name):
    reader, records = opened(gzip.compress(b"CCO\nCCN\n"), name)
    assert [record.fields for record in records] == [["CCO"], ["CCN"]]
    assert reader.info.compression == "gzip"


def test_a_name_that_promises_gzip_proves_nothing(opened):
    assert opened.smiles("CCO\nCCN\n", "x.smi.gz") == ["CCO", "CCN"]


def test_gzip_members_one_after_another(opened):
    content = gzip.compress(b"smiles\nCCO\n") + gzip.compress(b"CCN\n")
    assert opened.smiles(content, "x.csv.gz") == ["CCO", "CCN"]


@pytest.mark.parametrize("n", [10, 60_000])
def test_cut_gzip_is_an_error_not_a_short_table(opened, n):
    content = gzip.compress(b"".join(b"CCO %d\n" % i for i in range(n)))[:-9]
    with pytest.raises(InputError, match="damaged or cut gzip"):
        opened(content, "x.smi.gz")


# --- what is no table ---------------------------------------------------------------------


def test_a_slow_pipe_is_read_as_it_comes(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb") as sink:
        stdin = io.TextIOWrapper(source)
        monkeypatch.setattr(sys, "stdin", stdin)
        head = b"CCO\n" * (HEAD_BYTES // 4)
        writer = threading.Thread(target=lambda: (sink.write(head + b"CCN\n"), sink.flush()))
        writer.start()
        with open_table("-") as table:
            records = iter(table)
            last = [next(records) for _ in range(HEAD_BYTES // 4 + 1)][-1]
        writer.join()
        assert last.fields == ["CCN"]
        stdin.detach()


def test_a_table_is_opened_before_more_than_its_head_is_there(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb") as sink:
        stdin = io.TextIOWrapper(source)
        monkeypatch.setattr(sys, "stdin", stdin)
        sink.write(b"CCO\n" * HEAD_LINES)
        sink.flush()
        with open_table("-") as table:  # would wait for ever
            assert table.is_live
            assert next(iter(table)).fields == ["CCO"]
        stdin.detach()


@pytest.mark.parametrize("n_lines", [1, HEAD_LINES - 1, HEAD_LINES, HEAD_LINES + 1, 3 * HEAD_LINES])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_head_ends_at_a_line_whatever_comes_at_once(n_lines, end):
    content = b"\n".join([b"CCO"] * n_lines) + end
    heads = set()
    for size in (1, 7, 1000, len(content)):
        raw = io.BufferedReader(Dribble(content, size))
        head, whole, complete = read_head(raw)
        heads.add(head)
        assert io.BufferedReader(whole).read() == content
        assert not complete or head == content
    (head,) = heads
    assert content.startswith(head)
    assert head.count(b"\n") <= HEAD_LINES


class Dribble(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, content: bytes, size: int) -> None:
        self._rest, self._size = content, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self._rest[: min(self._size, len(buffer))]
        self._rest = self._rest[len(data) :]
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n \r\n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (gzip.compress(b""), "is empty once unpacked"),
        (gzip.compress(gzip.compress(b"CCO\n")), "gzip twice"),
        (bytes(range(256)) * 4, "binary data"),
        (b"\x00" * 64, "binary data"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"BZh91AY", "bzip2"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel"),
        (b'{"smiles": "CCO"}\n{"smiles": "C"}\n', "JSON"),
        (b'\xef\xbb\xbf[\n {"smiles": "CCO"}]', "JSON"),
        (b'["CCO"]', "JSON"),
        (b"<!DOCTYPE html>\n<html></html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    ],
)
def test_what_is_no_table_is_refused_by_name(opened, content, words):
    with pytest.raises(InputError, match=words):
        opened(content, "t.csv")


def test_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be opened"):
        open_table("a\0b")


def test_no_column_of_smiles(opened):
    with pytest.raises(InputError, match=r"no column is called SMILES.*'a', 'b'.*--smiles-column"):
        opened("a,b\n1,2\n", "t.csv")


# --- the SMILES column --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "index"),
    [
        ("Drug_ID,Drug,Y\na1,CCO,1\na2,CCN,2\n", 1),
        ("mol,CID,Class\nCCO,BACE_1,1\nCCN,BACE_2,0\n", 0),
        ("name,structure,CN\na,CCO,1\nb,CCN,2\n", 1),
        ("Isomeric_SMILES,Canonical_SMILES\nC[C@H](N)O,CC(N)O\n", 0),
        ("canonical_smiles,smiles\nCCO,OCC\n", 1),
        ("a,b,c\n1,x,CCO\n2,y,CCN\n", 2),
        ("smiles,structure\nnot one,CCO\nneither,CCN\n", 0),
    ],
)
def test_the_smiles_column_is_found_wherever_it_stands(opened, content, index):
    reader, _ = opened(content, "t.csv")
    assert reader.smiles_index == index


def test_two_smiles_columns_are_for_the_user_to_choose_from(opened):
    content = "educt_smiles,product_smiles\nCCO,CC=O\n"
    with pytest.raises(ConfigError, match=r"'educt_smiles', 'product_smiles'.*--smiles-column"):
        opened(content, "t.csv")
    assert opened.smiles(content, "t.csv", smiles_column="product_smiles") == ["CC=O"]
    assert opened.smiles(content, "t.csv", smiles_column="PRODUCT_smiles ") == ["CC=O"]
    assert opened.smiles(content, "t.csv", smiles_column="2") == ["CC=O"]


def test_a_smiles_column_that_is_not_there(opened):
    with pytest.raises(ConfigError, match=r"'smile' is not a column; did you mean 'smiles'\?"):
        opened("smiles,y\nCCO,1\n", "t.csv", smiles_column="smile")


def test_blank_smiles_are_records(opened):
    smiles = opened.smiles("smiles,id\nCCO,1\n,2\n   ,3\nnan,4\nCCN,5\n", "t.csv")
    assert smiles == ["CCO", "", "   ", "nan", "CCN"]


def test_repeats_stay_repeats(opened):
    _, records = opened("id,smiles\n1,CCO\n1,OCC\n2,CCO\n", "t.csv")
    assert [record.fields for record in records] == [["1", "CCO"], ["1", "OCC"], ["2", "CCO"]]


# --- stdin --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"CCO\nCCN\n", b"CCO\nCCN", gzip.compress(b"CCO\nCCN\n"), "CCO\nCCN\n".encode("utf-16")],
)
def test_stdin_is_read_like_a_file_and_left_open(monkeypatch, content):
    raw = feed_stdin(monkeypatch, content)
    with open_table("-") as reader:
        assert reader.name == "stdin"
        assert [record.fields for record in reader] == [["CCO"], ["CCN"]]
    assert not raw.closed


def test_empty_and_closed_stdin(monkeypatch):
    feed_stdin(monkeypatch, b"")
    with pytest.raises(InputError, match="stdin is empty"):
        open_table("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="stdin is closed"):
        open_table("-")


class _Endless(io.RawIOBase):
    """A list that never ends, and counts what was taken of it."""

    taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        block = (b"CCO\nCCN\n" * (len(buffer) // 8 + 1))[: len(buffer)]
        buffer[: len(block)] = block
        self.taken += len(block)
        return len(block)


def test_an_endless_stream_is_read_as_it_is_needed(monkeypatch):
    raw = _Endless()
    stdin = io.TextIOWrapper(io.BufferedReader(raw))
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_table("-") as reader:
        records = [record for record, _ in zip(reader, range(1000), strict=False)]
    assert len(records) == 1000
    assert raw.taken < 1_000_000


# --- options of format --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "columns", "fields"),
    [
        ({"format": "smi"}, ["smiles", "name"], ["CCO,a", "b c;d"]),
        ({"format": "csv"}, ["smiles", "column_2"], ["CCO", "a b c;d"]),
        ({"format": "tsv"}, ["smiles"], ["CCO,a b c;d"]),
        ({"separator": "space"}, ["column_1", "column_2", "column_3"], ["CCO,a", "b", "c;d"]),
    ],
)
def test_a_format_or_separator_that_is_given_holds(opened, options, columns, fields):
    reader, records = opened(
        "CCO,a b c;d\nCCN,a b c;d\n", header="no", smiles_column="1", **options
    )
    assert reader.columns == columns
    assert records[0].fields == fields


def test_a_list_read_as_smi_always_has_names(opened):
    reader, records = opened("CCO\nCCN\n", format="smi")
    assert reader.columns == ["smiles", "name"]
    assert [record.fields for record in records] == [["CCO", ""], ["CCN", ""]]
