"""Typical mistakes in a pipeline file: each an edit of a right one, and what must be said of it."""

from dataclasses import dataclass
from pathlib import Path

from sluice.cli.app import app
from typer.testing import CliRunner

NAME = "visits.yaml"
RIGHT = """\
name: visits
schedule: "0 6 * * *"
budget: 1 hour
pii: [email]
steps:
  - name: pages
    source:
      kind: files
      path: landing
      format: csv
      options:
        sep: ";"
      schema:
        id: bigint
        at: timestamp
        email: string
        amount: double
    event_time:
      column: at
      max_future: 1 day
    dedup:
      keys: [id]
      within: 2 days
      order_by: [at desc]
    rules:
      - type: expect_column_values_to_be_between
        kwargs: {column: amount, min_value: 0}
        on_fail: quarantine
      - type: expect_column_mean_to_be_between
        kwargs: {column: amount, max_value: 500}
        on_fail: warn
    sink:
      kind: delta
      cluster_by: [at]
"""
SQL = "    transform: pages.sql\n    event_time:"
READER = """\
  - name: totals
    source: {kind: table, step: pages}
    sink: {kind: delta, mode: append}
"""
FILES = {
    "landing/2026-01-01.csv": "id;at\n",
    "pages.sql": "SELECT * FROM source\n",
    "clean.py": "def clean_rows(rows):\n    return rows\n",
}
"""What lies beside the file."""


@dataclass(frozen=True)
class Mistake:
    """Something a person writes instead of what is in RIGHT.

    `old` -> `new`: the edit; without `old`, `new` is the whole file. `line`: of the mistake; 0
    where no line is to blame. `says`: what the message holds beside it. `warns`: it is no error.
    """

    what: str
    old: str
    new: str
    line: int
    says: tuple[str, ...]
    warns: bool = False

    @property
    def text(self) -> str:
        """The file with the mistake."""
        return self.new if not self.old else RIGHT.replace(self.old, self.new, 1)


def _wrong(what: str, edit: tuple[str, str], line: int, *says: str, warns: bool = False) -> Mistake:
    return Mistake(what, *edit, line, says, warns)


_OF_FIELDS = (
    _wrong(
        "a field of the pipeline misspelt",
        ("schedule:", "shedule:"),
        2,
        "shedule: unknown field",
        "Did you mean 'schedule'?",
    ),
    _wrong(
        "a field of a source misspelt",
        ("path: landing", "pathh: landing"),
        9,
        "source.pathh: unknown field",
        '"landing"',
        "Did you mean 'path'?",
    ),
    _wrong(
        "a field of `dedup` misspelt",
        ("keys: [id]", "key: [id]"),
        22,
        "dedup.key: unknown field",
        '["id"]',
        "Did you mean 'keys'?",
    ),
    _wrong(
        "a field of a sink misspelt",
        ("cluster_by: [at]", "clusterby: [at]"),
        34,
        "sink.clusterby: unknown field",
        "Did you mean 'cluster_by'?",
    ),
    _wrong(
        "a field of a rule misspelt",
        ("on_fail: quarantine", "onfail: quarantine"),
        28,
        "rules.0.onfail: unknown field",
        '"quarantine"',
        "Did you mean 'on_fail'?",
    ),
    _wrong(
        "a field in the wrong place: of the step, not of its source",
        ("      path: landing", "      transform: pages.sql\n      path: landing"),
        9,
        "source.transform: unknown field",
        "'transform' belongs to the step",
    ),
    _wrong(
        "a rule's column beside `kwargs` instead of within",
        ("        kwargs: {column: amount, min_value: 0}", "        column: amount"),
        27,
        "rules.0.column: unknown field",
        '"amount"',
        "under `kwargs`",
    ),
    _wrong(
        "a field left out",
        ("      format: csv\n", ""),
        7,
        "source.format: Field required",
        "'json', 'csv', 'text', 'xml', 'parquet', 'orc' or 'avro'",
    ),
    _wrong(
        "a kind of source that does not exist",
        ("kind: files", "kind: file"),
        8,
        "source.kind: no such kind",
        '"file"',
        "Did you mean 'files'?",
    ),
)
_OF_VALUES = (
    _wrong(
        "a text where a list belongs",
        ("keys: [id]", "keys: id"),
        22,
        "dedup.keys: not a list",
        '"id"',
        "Write [id]",
        "'*'",
    ),
    _wrong(
        "a mapping left out",
        ("    event_time:\n      column: at\n      max_future: 1 day", "    event_time: at"),
        18,
        "event_time: not a mapping",
        '"at"',
        "Write {column: ...}",
    ),
    _wrong(
        "a duration in a unit that does not exist",
        ("within: 2 days", "within: 2 fortnights"),
        23,
        "dedup.within: not a duration",
        '"2 fortnights"',
        "'2 days'",
        "'forever'",
    ),
    _wrong(
        "a duration without a unit",
        ("budget: 1 hour", "budget: 60"),
        3,
        "budget: not a duration",
        "(got 60)",
        "'15 minutes'",
    ),
    _wrong(
        "a choice misspelt",
        ("on_fail: quarantine", "on_fail: quaratine"),
        28,
        "rules.0.on_fail: Input should be 'warn', 'quarantine' or 'stop'",
        '"quaratine"',
        "Did you mean 'quarantine'?",
    ),
    _wrong(
        "a format that does not exist",
        ("format: csv", "format: jsonl"),
        10,
        "source.format: Input should be 'json', 'csv'",
        '"jsonl"',
        "Did you mean 'json'?",
    ),
    _wrong(
        "a name with a capital letter and a hyphen",
        ("name: pages", "name: Web-Pages"),
        6,
        "name: String should match pattern",
        '"Web-Pages"',
        "Did you mean 'web_pages'?",
    ),
    _wrong(
        "a number where a text belongs",
        ("name: visits", "name: 2026"),
        1,
        "name: not a text",
        "(got 2026)",
        "quotes",
    ),
    _wrong(
        "a preset of the schedule misspelt",
        ('schedule: "0 6 * * *"', 'schedule: "@dayly"'),
        2,
        "schedule: no preset of Airflow's",
        "'@dayly'",
        "Did you mean '@daily'?",
    ),
    _wrong(
        "a cron expression with an hour that does not exist",
        ('"0 6 * * *"', '"0 26 * * *"'),
        2,
        "schedule: not a cron expression",
        "'0 26 * * *'",
        "Write '0 6 * * *'",
    ),
    _wrong(
        "an environment variable that is not set",
        ("path: landing", "path: ${VISITS_LANDING}/pages"),
        9,
        "source: path: environment variable VISITS_LANDING is not set",
        "${VISITS_LANDING:-...}",
    ),
)
_OF_COLUMNS = (
    _wrong(
        "a type misspelt",
        ("email: string", "email: strng"),
        16,
        "column 'email' has unknown type 'strng'",
        "Did you mean 'string'?",
    ),
    _wrong(
        "a type of another system: datetime",
        ("at: timestamp", "at: datetime"),
        15,
        "column 'at' has unknown type 'datetime'",
        "Did you mean 'timestamp'?",
    ),
    _wrong(
        "a type of another system: int64",
        ("id: bigint", "id: int64"),
        14,
        "column 'id' has unknown type 'int64'",
        "Did you mean 'bigint'?",
    ),
    _wrong(
        "a type of another system: varchar",
        ("email: string", "email: varchar(80)"),
        16,
        "column 'email' has unknown type 'varchar(80)'",
        "Did you mean 'string'?",
    ),
    _wrong(
        "a type within a type misspelt",
        ("email: string", 'email: "array<struct<box: strng>>"'),
        16,
        "column 'email' has unknown type 'strng'",
        "Did you mean 'string'?",
    ),
    _wrong(
        "an event time that is no time",
        ("column: at", "column: amount"),
        19,
        "event_time.column",
        "'amount', which is double",
        "Did you mean 'at'?",
    ),
    _wrong(
        "an event time that is no column",
        ("column: at", "column: att"),
        19,
        "event_time.column names column 'att'",
        "Did you mean 'at'?",
    ),
    _wrong(
        "a key that is no column",
        ("keys: [id]", "keys: [idd]"),
        22,
        "dedup.keys names column 'idd'",
        "Did you mean 'id'?",
    ),
    _wrong(
        "an order by what is no column",
        ("order_by: [at desc]", "order_by: [amuont desc]"),
        24,
        "dedup.order_by names column 'amuont'",
        "Did you mean 'amount'?",
    ),
    _wrong(
        "a rule on what is no column",
        ("{column: amount, min", "{column: amuont, min"),
        27,
        "rule expect_column_values_to_be_between names column 'amuont'",
        "Did you mean 'amount'?",
    ),
    _wrong(
        "personal data that is no column, and would be shown",
        ("pii: [email]", "pii: [e_mail]"),
        4,
        "pii names column 'e_mail'",
        "Did you mean 'email'?",
    ),
)
_OF_RULES = (
    _wrong(
        "a rule type misspelt",
        ("expect_column_values_to_be_between", "expect_column_values_to_be_betwen"),
        26,
        "Great Expectations has no such expectation",
        "expect_column_values_to_be_betwen",
        "Did you mean 'expect_column_values_to_be_between'?",
    ),
    _wrong(
        "a rule type by a short name",
        ("expect_column_values_to_be_between", "not_null"),
        26,
        "rules.0.type",
        '"not_null"',
        "Did you mean 'expect_column_values_to_not_be_null'?",
    ),
    _wrong(
        "a kwarg of a row-level rule misspelt",
        ("min_value: 0", "min_vlaue: 0"),
        27,
        "expect_column_values_to_be_between has no kwarg 'min_vlaue'",
        "Did you mean 'min_value'?",
    ),
    _wrong(
        "a kwarg of a table-level rule misspelt",
        ("max_value: 500", "maximum: 500"),
        30,
        "expect_column_mean_to_be_between has no kwarg 'maximum'",
        "It takes",
        "max_value",
    ),
    _wrong(
        "a kwarg left out",
        ("{column: amount, min_value: 0}", "{min_value: 0}"),
        27,
        "expect_column_values_to_be_between needs 'column'",
    ),
    _wrong(
        "a table-level rule that is to quarantine rows",
        ("on_fail: warn", "on_fail: quarantine"),
        31,
        "expect_column_mean_to_be_between looks at the whole table",
        "write `on_fail: warn` or `stop`",
    ),
)
_OF_OPTIONS = (
    _wrong(
        "a reader option misspelt",
        ('sep: ";"', 'seperator: ";"'),
        12,
        "source.options.seperator: csv has no such option",
        "Did you mean 'sep'?",
    ),
    _wrong(
        "a reader option of another format",
        ('sep: ";"', "allowComments: true"),
        12,
        "source.options.allowComments: csv has no such option",
        "It is an option of json",
    ),
    _wrong(
        "a reader option nobody knows",
        ('sep: ";"', "colour: red"),
        12,
        "source.options.colour: csv has no such option that we know",
        warns=True,
    ),
    _wrong(
        "a folder that does not exist",
        ("path: landing", "path: landign"),
        9,
        "source.path",
        "landign: the landing folder does not exist",
        "Did you mean 'landing'?",
        warns=True,
    ),
    _wrong(
        "a date that no file name carries",
        ("      format: csv", '      file_date: "%Y%m%d"\n      format: csv'),
        10,
        "source.file_date: none of 1 file names carry a date by '%Y%m%d'",
        "2026-01-01.csv",
        warns=True,
    ),
)
_OF_STEPS = (
    _wrong(
        "two steps of one name",
        ("", RIGHT + READER.replace("totals", "pages")),
        35,
        "two steps are named pages",
        "give each its own name",
    ),
    _wrong(
        "a step that reads one that does not exist",
        ("", RIGHT + READER.replace("step: pages", "step: page")),
        36,
        "step totals reads step 'page'",
        "Did you mean 'pages'?",
    ),
    _wrong(
        "a step that reads itself",
        ("", RIGHT + READER.replace("step: pages", "step: totals")),
        36,
        "step totals reads step 'totals'",
        "A step cannot read the table that it writes",
    ),
    _wrong(
        "a SQL file that does not exist",
        ("    event_time:", SQL.replace("pages.sql", "page.sql")),
        18,
        "transform page.sql: no such file",
        "Did you mean 'pages.sql'?",
    ),
    _wrong(
        "a Python function that does not exist",
        ("    event_time:", SQL.replace("pages.sql", "clean.py:clean_row")),
        18,
        "transform clean.py:clean_row: no such function",
        "Did you mean 'clean_rows'?",
    ),
    _wrong(
        "a name that is not the file's",
        ("name: visits", "name: visit"),
        1,
        "name: the file is named visits",
        "'visit'",
        warns=True,
    ),
)
_OF_YAML = (
    _wrong(
        "a key written twice",
        ("      within: 2 days\n", "      within: 2 days\n      within: 3 days\n"),
        24,
        "key 'within' is written twice",
        "line 23",
    ),
    _wrong(
        "a tab in the indentation",
        ("      within: 2 days", "\twithin: 2 days"),
        23,
        "a tab",
        "spaces",
    ),
    _wrong(
        "a quote that is not closed",
        ('sep: ";"', 'sep: ";'),
        12,
        "a quote that is opened here is never closed",
    ),
    _wrong(
        "a bracket that is not closed",
        ("keys: [id]", "keys: [id"),
        22,
        "`[`",
        "never closed",
    ),
    _wrong(
        "a value that begins with a sign of YAML's",
        ('schedule: "0 6 * * *"', "schedule: @daily"),
        2,
        "no value begins with '@'",
        "quotes",
    ),
    _wrong(
        "cron text without quotes",
        ('schedule: "0 6 * * *"', "schedule: */30 * * * *"),
        2,
        "a value that begins with `*`",
        "quotes",
    ),
    _wrong(
        "a field that stands too far to the right",
        ("    dedup:", "      dedup:"),
        21,
        "event_time.dedup: unknown field",
        "'dedup' belongs to the step",
    ),
    _wrong("an empty file", ("", "# later\n"), 0, "the file is empty", "name:", "sluice new"),
    _wrong(
        "a list at the top level",
        ("", "- name: visits\n"),
        1,
        "a pipeline is a mapping that starts with `name:`",
        "a list",
    ),
)
MISTAKES = (
    *_OF_FIELDS,
    *_OF_VALUES,
    *_OF_COLUMNS,
    *_OF_RULES,
    *_OF_OPTIONS,
    *_OF_STEPS,
    *_OF_YAML,
)


def lay_out(folder: Path, text: str) -> Path:
    """Write a pipeline file and what it needs beside it; the file."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    file = folder / NAME
    file.write_text(text.replace("path: land", f"path: {folder}/land"), encoding="utf-8")
    return file


def validate(file: Path) -> tuple[int, str]:
    """The exit code of `sluice validate`, and what it says of a file, without the folder."""
    done = CliRunner().invoke(app, ["validate", "--spec", str(file)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return 99, f"{type(done.exception).__name__}: {done.exception}"
    return done.exit_code, done.stderr.replace(f"{file.parent}/", "").strip()
