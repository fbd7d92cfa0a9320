"""Which row a database refused is told by its keys, and no other value is."""

import pytest
from sluice.sinks.jdbc.refused import describe_row

COLUMNS = ["id", "day", "amount"]
ROW = "Failing row contains (o1, 3, -5)."


@pytest.mark.parametrize(
    ("detail", "keys", "told"),
    [
        (ROW, ["id"], "id = o1"),
        (ROW, ["day", "id"], "day = 3, id = o1"),
        (ROW, [], ""),
        (ROW, ["gone"], ""),
        ("Failing row contains (o1, with a comma, 3, -5).", ["id"], ""),
        ("Failing row contains (o1, null, -5).", ["id", "day"], "id = o1, day = null"),
        ("Key (id)=(o1) already exists.", ["id"], "id = o1"),
        ('Key (id, "day")=(o1, 3) already exists.', ["id", "day"], "id = o1, day = 3"),
        ("Key (id)=(o1, o2) already exists.", ["id"], ""),
        ('Key (id)=(o1) is not present in table "known".', ["id"], "id = o1"),
        ("", ["id"], ""),
    ],
)
def test_a_row_is_told_by_its_keys_where_they_can_be_read(detail, keys, told):
    assert describe_row(detail, COLUMNS, keys, frozenset()) == told


def test_a_hidden_key_is_masked():
    assert describe_row(ROW, COLUMNS, ["id", "day"], {"id"}) == "id = …, day = 3"
