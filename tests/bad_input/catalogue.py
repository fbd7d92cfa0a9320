"""Every landing of bad input, and so every kind."""

from tests.bad_input import (
    csv_kinds,
    event_kinds,
    json_kinds,
    key_kinds,
    text_kinds,
    typed_kinds,
    xml_kinds,
)

LANDINGS = (
    json_kinds.LINES,
    json_kinds.LOCAL,
    json_kinds.TIMES_INSIDE,
    csv_kinds.SHEETS,
    text_kinds.TEXTS,
    xml_kinds.ELEMENTS,
    typed_kinds.PARQUET,
    typed_kinds.ORC,
    key_kinds.KEYED,
)
"""What one run reads, each kind among all the others."""

ALL_KINDS = [kind for landing in (*LANDINGS, typed_kinds.REFUSED) for kind in landing.kinds] + list(
    event_kinds.EVENTS
)
