"""What bad rows and bad files get, among good ones: a quarantine row; then the next run works, and every report balances.

Files of one format land together and are read by one run; each test looks at its own file.
"""

import bz2
import gzip
import os
from collections import Counter

import pytest

from tests.spark.factories import Project, assert_next_run_works, details

COLUMNS = {"id": "int", "big": "bigint", "name": "string", "price": "decimal(5,2)", "rate": "double", "at": "timestamp"}


# --- JSON lines ---------------------------------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def lines(spark, tmp_path_factory):
    """One run over JSON files of every kind."""
    project = Project(spark, tmp_path_factory.mktemp("lines"), {"format": "json", "pattern": "*.json*", "schema": COLUMNS})
    project.land("good.json", '{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n')
    project.land("empty.json", "")
    project.land("blank.json", "\n\n   \n\t\n\r\n")
    project.land("latin.json", '{"id":3,"name":"Müller"}\n{"id":4,"name":"ok"}\n'.encode("latin-1"))
    project.land("bom.json", b'\xef\xbb\xbf{"id":5,"name":"first"}\n')
    project.land("twice.json", '{"id":6,"id":7}\n{"id":8}\n')
    project.land("types.json", '{"id":"x"}\n{"id":1.5}\n{"id":true}\n{"id":{"z":1}}\n{"at":"yesterday"}\n{"at":"2026-13-45"}\n{"id":9,"name":{"kept":"as text"}}\n')
    project.land("range.json", '{"id":2147483648}\n{"big":9223372036854775808}\n{"price":12345.67}\n{"rate":1e999}\n{"rate":-1e400}\n{"id":2147483647,"price":999.99,"rate":1e308}\n')
    project.land("infinity.json", '{"rate":NaN}\n{"rate":Infinity}\n{"rate":"-Infinity"}\n')
    project.land("values.json", 'null\n123\n"text"\ntrue\n[]\n[{"id":1},{"id":2}]\n{}\n')
    project.land("trailing.json", '{"id":1}{"id":2}\n{"id":3} and so on\n{"id":4},{"id":5}\n{"id":6}}\n{"id":7\n')
    project.land("unknown.json", '{"id":10,"extra":{"deep":[1,2]},"gone":null}\n{"ID":11}\n')
    project.land("nul.json", b'{"id":12,"name":"a\x00b"}\n\x00\n')
    project.land("folder.json/inside.json", '{"id":13}\n')
    (project.landing / "empty-folder.json").mkdir()
    project.land("sp ace%20ü.json", '{"id":14}\n')
    project.land("packed.json.gz", gzip.compress(b'{"id":15}\n'))
    project.land("packed.json.bz2", bz2.compress(b'{"id":16}\n'))
    project.land("cut.json.gz", gzip.compress(os.urandom(1000).hex().encode() + b'\n{"id":17}\n' * 50_000)[:-20])
    project.land("misnamed.json.gz", '{"id":18}\n')
    project.land("co:lon.json", '{"id":19}\n')
    project.land("writing.json.tmp", '{"id":22}\n')
    project.land(".hidden.json", '{"id":23}\n')
    project.land("_hidden.json", '{"id":24}\n')
    report = project.run()
    assert (report.status, report.error) == ("done", None)
    return project


def test_good_files_among_bad_ones_are_read(lines):
    assert lines.rows("id", "name", source="good.json") == Counter([(1, "a"), (2, "b")])


@pytest.mark.parametrize("name", ["empty.json", "blank.json", "writing.json.tmp", ".hidden.json", "_hidden.json"])
def test_an_empty_file_blank_lines_and_hidden_names_are_no_rows(lines, name):
    assert not lines.rows("id", source=name)
    assert not lines.quarantine(name)


def test_bytes_of_another_encoding_are_quarantined_as_they_came(lines):
    (row,) = lines.quarantine("latin.json")
    assert (row.reasons, row.detail, bytes(row.raw)) == (["malformed"], "not valid UTF-8", '{"id":3,"name":"Müller"}'.encode("latin-1"))
    assert lines.rows("id", source="latin.json") == Counter([(4,)])


def test_a_byte_order_mark_is_no_part_of_the_first_row(lines):
    assert lines.rows("id", "name", source="bom.json") == Counter([(5, "first")])


def test_a_field_written_twice_is_quarantined(lines):
    assert details(lines, "twice.json") == {'{"id":6,"id":7}': "a field is written twice"}
    assert lines.rows("id", source="twice.json") == Counter([(8,)])


def test_a_wrong_type_is_quarantined_and_a_text_column_keeps_any_value(lines):
    assert len(details(lines, "types.json")) == 6
    assert lines.rows("id", "name", source="types.json") == Counter([(9, '{"kept":"as text"}')])


def test_a_number_beyond_its_type_is_quarantined(lines):
    assert details(lines, "range.json") == {
        '{"id":2147483648}': "not a JSON record of this schema",
        '{"big":9223372036854775808}': "not a JSON record of this schema",
        '{"price":12345.67}': "not a JSON record of this schema",
        '{"rate":1e999}': "rate: a number beyond the range of double",
        '{"rate":-1e400}': "rate: a number beyond the range of double",
    }
    assert lines.rows("id", "rate", source="range.json") == Counter([(2147483647, 1e308)])


def test_nan_and_infinity_written_as_such_are_values(lines):
    assert sorted(str(rate) for (rate,) in lines.rows("rate", source="infinity.json")) == ["-inf", "inf", "nan"]


def test_a_line_that_is_no_object_is_quarantined(lines):
    assert set(details(lines, "values.json")) == {"null", "123", '"text"', "true", "[]", '[{"id":1},{"id":2}]'}
    assert lines.rows("id", source="values.json") == Counter([(None,)])


def test_text_after_a_record_is_not_lost_in_silence(lines):
    found = details(lines, "trailing.json")
    assert found.pop('{"id":7') == "not a JSON record of this schema"
    assert set(found.values()) == {"more than one JSON value"}
    assert len(found) == 4
    assert not lines.rows("id", source="trailing.json")


def test_fields_outside_the_schema_are_rescued_by_their_exact_names(lines):
    assert lines.rows("id", "_rescued", source="unknown.json") == Counter([(10, '{"extra":"{\\"deep\\":[1,2]}","gone":null}'), (None, '{"ID":"11"}')])


def test_zero_bytes_are_quarantined(lines):
    assert len(details(lines, "nul.json")) == 2


def test_a_directory_named_like_a_file_is_a_folder(lines):
    assert lines.rows("id", source="folder.json/inside.json") == Counter([(13,)])


def test_names_with_spaces_percent_signs_and_umlauts_are_read(lines):
    assert lines.rows("id", source="sp%20ace%2520ü.json") == Counter([(14,)])


@pytest.mark.parametrize(("name", "number"), [("packed.json.gz", 15), ("packed.json.bz2", 16)])
def test_compressed_files_are_read(lines, name, number):
    assert lines.rows("id", source=name) == Counter([(number,)])


@pytest.mark.parametrize("name", ["cut.json.gz", "misnamed.json.gz", "co:lon.json"])
def test_a_file_no_reader_can_read_is_refused_as_a_whole(lines, name):
    (row,) = lines.quarantine(name)
    assert (row.reasons, row.row) == (["unreadable_file"], None)
    assert row.detail.startswith("cannot be read: ")
    assert "\n" not in row.detail
    assert not lines.rows("id", source=name)


def test_after_all_these_files_the_next_run_works(lines):
    assert_next_run_works(lines, "next.json", '{"id":99}\n', (99,), "id")


# --- CSV ----------------------------------------------------------------------------------------------------------------------------------------

SHOP = {"id": "int", "name": "string", "price": "double"}


@pytest.fixture(scope="module")
def sheets(spark, tmp_path_factory):
    """One run over CSV files whose headers and rows differ."""
    project = Project(spark, tmp_path_factory.mktemp("sheets"), {"format": "csv", "pattern": "*.csv*", "schema": SHOP})
    project.land("good.csv", "id,name,price\n1,a,1.5\n2,b,2.5\n")
    project.land("crlf.csv", 'id,name,price\r\n3,"a,b",1.5\r\n4,"say ""hi""",\r\n')
    project.land("fields.csv", "id,name,price\n5,a,1,9\n6,a\n7\n8,a,\n")
    project.land("reordered.csv", "price,id,name\n1.5,9,r\n")
    project.land("added.csv", "id,more,name,price\n10,extra,a,1\n11,,b,2\n")
    project.land("removed.csv", "id,name\n12,a\n")
    project.land("case.csv", "ID,Name,PRICE\n13,a,1\n")
    project.land("renamed.csv", "id,title,price\n14,a,1\n")
    project.land("headless.csv", "15,a,1\n16,b,2\n")
    project.land("header-only.csv", "id,name,price\n")
    project.land("repeated.csv", "id,name,price\n17,a,1\nid,name,price\n18,b,1\n")
    project.land("bom.csv", b"\xef\xbb\xbfid,name,price\n19,a,1\n")
    project.land("blank-first.csv", "\n  \nprice,id,name\n1,20,a\n")
    project.land("range.csv", "id,name,price\n21,a,1e999\n99999999999,b,1\n22,c,Infinity\nx,d,1\n23,e,abc\n")
    project.land("open.csv", 'id,name,price\n24,"open,1\n25,b,"2\n26,5" pipe,3\n')
    project.land("packed.csv.gz", gzip.compress(b"name,id,price\na,27,1\n"))
    project.land("latin.csv", "price,id,name\n1,28,Mü\n".encode("latin-1"))
    project.land("sp ace%20ü.csv", "name,price,id\na,1,29\n")
    project.land("twice.csv", "id,id,name,price\n30,31,a,1\n")
    project.land("empty.csv", "")
    report = project.run()
    assert (report.status, report.error) == ("done", None)
    return project


@pytest.mark.parametrize(("name", "rows"), [
    ("good.csv", [(1, "a", 1.5, None), (2, "b", 2.5, None)]),
    ("crlf.csv", [(3, "a,b", 1.5, None), (4, 'say "hi"', None, None)]),
    ("reordered.csv", [(9, "r", 1.5, None)]),
    ("added.csv", [(10, "a", 1.0, '{"more":"extra"}'), (11, "b", 2.0, None)]),
    ("removed.csv", [(12, "a", None, None)]),
    ("case.csv", [(13, "a", 1.0, None)]),
    ("renamed.csv", [(14, None, 1.0, '{"title":"a"}')]),
    ("repeated.csv", [(17, "a", 1.0, None), (18, "b", 1.0, None)]),
    ("bom.csv", [(19, "a", 1.0, None)]),
    ("blank-first.csv", [(20, "a", 1.0, None)]),
    ("packed.csv.gz", [(27, "a", 1.0, None)]),
    ("sp%20ace%2520ü.csv", [(29, "a", 1.0, None)]),
    ("twice.csv", [(30, "a", 1.0, '{"id":"31"}')]),
    ("header-only.csv", []),
    ("empty.csv", []),
])
def test_a_csv_file_is_read_by_its_own_header(sheets, name, rows):
    assert sheets.rows("id", "name", "price", "_rescued", source=name) == Counter(rows)
    assert not sheets.quarantine(name)


def test_a_row_with_too_many_or_too_few_fields_is_quarantined(sheets):
    assert set(details(sheets, "fields.csv")) == {"5,a,1,9", "6,a", "7"}
    assert sheets.rows("id", source="fields.csv") == Counter([(8,)])


def test_a_file_without_header_is_quarantined_row_by_row_its_first_line_too(sheets):
    assert details(sheets, "headless.csv") == dict.fromkeys(["15,a,1", "16,b,2"], "the file's first line names none of the schema's columns")


def test_a_csv_number_beyond_its_type_is_quarantined(sheets):
    found = details(sheets, "range.csv")
    assert found["21,a,1e999"] == "price: a number beyond the range of double"
    assert set(found) == {"21,a,1e999", "99999999999,b,1", "x,d,1", "23,e,abc"}
    assert sheets.rows("id", "price", source="range.csv") == Counter([(22, float("inf"))])


def test_a_quote_that_is_not_closed_is_quarantined_and_one_inside_a_value_is_not(sheets):
    assert set(details(sheets, "open.csv")) == {'24,"open,1', '25,b,"2'}
    assert sheets.rows("name", source="open.csv") == Counter([('5" pipe',)])


def test_a_csv_row_of_another_encoding_keeps_its_bytes(sheets):
    (row,) = sheets.quarantine("latin.csv")
    assert bytes(row.raw) == "1,28,Mü".encode("latin-1")


def test_what_changed_in_the_headers_is_a_warning_in_the_report(sheets):
    warnings = "\n".join(sheets.reports[0].steps[0].warnings)
    assert "columns that 1 file(s) lack and read as NULL: price (first: removed.csv)" in warnings
    assert "columns that 1 file(s) have beside the schema: title (first: renamed.csv)" in warnings


def test_after_all_these_headers_the_next_run_works(sheets):
    assert_next_run_works(sheets, "next.csv", "name,price,id\na,1.5,99\n", (99, "a", 1.5), "id", "name", "price")
