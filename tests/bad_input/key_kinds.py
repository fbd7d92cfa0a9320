"""Keys and event times of a step with dedup: NULL, empty, repeated, impossible."""

from tests.bad_input.kind import Kind, Landing

_DAY = '"at":"2026-01-01T00:00:00Z"'
_ROW = '"at":"2026-01-01T00:00:00.000Z"'


def _row(key: str) -> tuple[str, str]:
    return f'{{"k":{key},{_DAY}}}', f'{{"k":{key},{_ROW}}}'


KEYED = Landing(
    "keys",
    {"format": "json", "schema": {"k": "string", "at": "timestamp"}},
    (
        Kind(
            "null_key",
            "a key that is NULL or missing",
            "`null_key` in quarantine; copies count as duplicates",
            files={"a.json": f'{{"k":null,{_DAY}}}\n' * 2 + f"{{{_DAY}}}\n"},
            refused=((f'{{"k":null,{_DAY}}}', "null_key"), (f"{{{_DAY}}}", "null_key")),
            duplicates=1,
        ),
        Kind(
            "empty_key",
            "an empty or blank text as key",
            "a key like all others",
            files={"a.json": "".join(_row(key)[0] + "\n" for key in ('""', '""', '" "'))},
            rows=(_row('""')[1], _row('" "')[1]),
            duplicates=1,
        ),
        Kind(
            "duplicate_key",
            "a key that comes again, in a file or across files",
            "one row, the copies count as duplicates",
            files={"a.json": (_row('"d"')[0] + "\n") * 3, "b.json": _row('"d"')[0]},
            rows=(_row('"d"')[1],),
            duplicates=3,
        ),
        Kind(
            "keys_that_look_alike",
            "keys that differ in case, in a trailing blank, or in how a letter is composed",
            "different keys",
            files={
                "a.json": "".join(
                    _row(key)[0] + "\n" for key in ('"x"', '"X"', '"x "', '"ü"', '"u\u0308"')
                )
            },
            rows=tuple(_row(key)[1] for key in ('"x"', '"X"', '"x "', '"ü"', '"u\u0308"')),
        ),
        Kind(
            "null_time",
            "an event time that is NULL or missing",
            "`null_time` in quarantine",
            files={"a.json": '{"k":"n1","at":null}\n{"k":"n2"}\n'},
            refused=(('{"k":"n1","at":null}', "null_time"), ('{"k":"n2"}', "null_time")),
        ),
        Kind(
            "future_time",
            "an event time beyond `max_future`",
            "`future_time` in quarantine; the watermark does not move",
            files={
                "a.json": '{"k":"f1","at":"9999-12-31T23:59:59Z"}\n'
                '{"k":"f2","at":"2199-01-01T00:00:00Z"}\n'
            },
            refused=(
                ('{"k":"f1","at":"9999-12-31T23:59:59Z"}', "future_time"),
                ('{"k":"f2","at":"2199-01-01T00:00:00Z"}', "future_time"),
            ),
        ),
        Kind(
            "oldest_time",
            "an event time of the year 1",
            "written, however late",
            files={
                "a.json": '{"k":"o1","at":"0001-01-01T00:00:00Z"}\n'
                '{"k":"o2","at":"0001-01-02T00:00:00Z"}\n'
            },
            rows=(
                '{"k":"o1","at":"0001-01-01T00:00:00.000Z"}',
                '{"k":"o2","at":"0001-01-02T00:00:00.000Z"}',
            ),
        ),
    ),
    ("next.json", '{"k":"next","at":"2026-01-01T00:00:00Z"}\n'),
    step={
        "sink": {"mode": "insert_new"},
        "event_time": {"column": "at"},
        "dedup": {"keys": ["k"], "within": "2 days", "late": "merge"},
    },
)
