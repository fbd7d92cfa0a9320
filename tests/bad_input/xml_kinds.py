"""XML: elements that are no rows, files that break off, and names that come twice."""

import gzip

from tests.bad_input.kind import UNREADABLE, Kind, Landing

_FIT = "malformed: not a well-formed element of this schema"
_AROUND = "malformed: around its <o> the file is no well-formed XML: cut off, or broken"
_ONE = "<o><id>1</id></o>"
_PACKED = gzip.compress(f"<r>{_ONE * 50}</r>".encode())


def _file(inside: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<r>\n{inside}\n</r>\n'


KINDS = (
    Kind(
        "xml_good",
        "XML: attributes, CDATA, comments, entities, rows at any depth, an empty element",
        "read; what a comment holds is no row",
        files={
            "a.xml": _file(
                '<o id="1" name="a&amp;b"/><!-- <o id="9"/> --><x><o><id>2</id><name>'
                "<![CDATA[</o><b>]]></name></o></x><o/><other/>"
            ),
            "b.xml.gz": gzip.compress(_file("<o\n id='3'><name> ü </name></o >").encode()),
            "none.xml": "<r>\n</r>",
            "rows_alone.xml": "<o><id>4</id></o>\n<o><id>5</id></o>",
        },
        rows=(
            '{"id":1,"name":"a&b"}',
            '{"id":2,"name":"</o><b>"}',
            "{}",
            '{"id":3,"name":"ü"}',
            '{"id":4}',
            '{"id":5}',
        ),
    ),
    Kind(
        "xml_misfit",
        "XML: a value that does not fit its column",
        "`malformed`, with its text",
        files={"a.xml": _file("<o><id>one</id></o><o><id>99999999999999999999</id></o>" + _ONE)},
        rows=('{"id":1}',),
        refused=(
            ("<o><id>one</id></o>", _FIT),
            ("<o><id>99999999999999999999</id></o>", _FIT),
        ),
    ),
    Kind(
        "xml_cut_in_row",
        "XML: a file that breaks off within a row",
        "the row and the open end of the file are `malformed`, the rows before are read",
        files={"a.xml": f"<r>{_ONE}<o><id>2</id><na"},
        rows=('{"id":1}',),
        refused=(("<o><id>2</id><na", _FIT), ("<r>", _AROUND)),
    ),
    Kind(
        "xml_cut_in_tag",
        "XML: a file that breaks off within a tag",
        "the same",
        files={"a.xml": f"<r>{_ONE}<o id='2", "b.xml": f"<r>{_ONE}<"},
        rows=('{"id":1}', '{"id":1}'),
        refused=(("<o id='2", _FIT), ("<r>", _AROUND), ("<r><", _AROUND)),
    ),
    Kind(
        "xml_cut_between",
        "XML: a file that breaks off between two rows",
        "its open end is `malformed`",
        files={"a.xml": f"<r>{_ONE}"},
        rows=('{"id":1}',),
        refused=(("<r>", _AROUND),),
    ),
    Kind(
        "xml_twice",
        "XML: an element that comes twice, or an attribute and an element of one name",
        "`malformed`: Spark would keep the last",
        files={
            "a.xml": _file('<o><id>1</id><id>2</id></o><o id="1"><ID>1</ID></o>'),
        },
        refused=(
            ("<o><id>1</id><id>2</id></o>", "malformed: id is written twice"),
            ('<o id="1"><ID>1</ID></o>', "malformed: id is written twice"),
        ),
    ),
    Kind(
        "xml_unbalanced",
        "XML: tags that do not match, unknown entities, `<` and `&` as text, a row within a row",
        "`malformed`",
        files={
            "a.xml": _file("<o><id>1</name></o><o><name>&nix;</name></o><o><name>a & b</name></o>"),
            "b.xml": "<r><o><o><id>1</id></o></o></r>",
        },
        refused=(
            ("<o><id>1</name></o>", _FIT),
            ("<o><name>&nix;</name></o>", _FIT),
            ("<o><name>a & b</name></o>", _FIT),
            ("<o><o><id>1</id></o>", _FIT),
            ("<r></o></r>", _AROUND),
        ),
    ),
    Kind(
        "xml_no_rows",
        "XML: a file without a row's element, one that is no XML, text after the end",
        "one `malformed` record with what it holds; a root that is empty is no record",
        files={
            "a.xml": "<r><Order><id>1</id></Order></r>",
            "b.xml": "<html>no such page",
            "c.xml": "id,name\n1,a\n",
            "d.xml": f"<r>{_ONE}</r>\nappended",
        },
        rows=('{"id":1}',),
        refused=(
            ("<r><Order><id>1</id></Order></r>", "malformed: no element <o> in the file"),
            ("<html>no such page", _AROUND),
            ("id,name\n1,a", _AROUND),
            ("<r></r>\nappended", _AROUND),
        ),
    ),
    Kind(
        "xml_encoding",
        "XML: bytes that are not in the declared encoding",
        "the file is one `malformed` record, its bytes in `raw`",
        files={"a.xml": "<r><o><name>Mü</name></o></r>".encode("latin-1")},
        refused=(("<r><o><name>M\ufffd</name></o></r>", "malformed: not valid UTF-8"),),
    ),
    Kind(
        "xml_byte_order_mark",
        "XML: a byte order mark, blank files",
        "read; blank files hold no rows",
        files={"a.xml": b"\xef\xbb\xbf" + _file(_ONE).encode(), "b.xml": "", "c.xml": " \n"},
        rows=('{"id":1}',),
    ),
    Kind(
        "xml_unknown",
        "XML: elements, attributes and text outside the schema",
        "kept as JSON in `_rescued`",
        files={"a.xml": _file("<o z='1'><id>7</id><a><b>2</b></a></o><o>text</o>")},
        rows=('{"id":7,"_rescued":"{\\"a\\":{\\"b\\":2},\\"z\\":1}"}', '{"_rescued":"\\"text\\""}'),
    ),
    Kind(
        "xml_range",
        "XML: a number beyond double, a year beyond 9999",
        "`malformed`",
        files={
            "a.xml": _file(
                "<o><x>1e999</x></o><o><at>12026-01-01T00:00:00Z</at></o><o><x>2.5</x></o>"
            )
        },
        rows=('{"x":2.5}',),
        refused=(
            ("<o><x>1e999</x></o>", "malformed: x: a number beyond the range of double"),
            (
                "<o><at>12026-01-01T00:00:00Z</at></o>",
                "malformed: at: not within the years 1 to 9999",
            ),
        ),
    ),
    Kind(
        "xml_external_entity",
        "XML: an entity that names a file of this machine",
        "`malformed`: entities of a DOCTYPE are not resolved",
        files={
            "a.xml": '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]>\n'
            "<r><o><name>&e;</name></o></r>"
        },
        refused=(("<o><name>&e;</name></o>", _FIT),),
    ),
    Kind(
        "xml_truncated_gzip",
        "XML: a truncated gzip",
        "`unreadable_file`",
        files={"a.xml.gz": _PACKED[:-20]},
        refused=((None, UNREADABLE),),
    ),
)

ELEMENTS = Landing(
    "xml",
    {
        "format": "xml",
        "row_tag": "o",
        "schema": {"id": "bigint", "name": "string", "x": "double", "at": "timestamp"},
    },
    KINDS,
    ("next.xml", _file(_ONE)),
    ending="xml",
)
