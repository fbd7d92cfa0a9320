"""What a pipeline file cannot mean is refused by the file alone, with what to write instead."""

from pathlib import Path

import pytest
import yaml
from sluice.cli.app import app
from sluice.errors import ExitCode, SpecError
from sluice.runner import run_pipeline
from sluice.spec import ROW_LEVEL, RunRequest, Step, Window, load_pipeline
from typer.testing import CliRunner

ON_TABLE = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}
ON_ROWS = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}
CONSOLE = {"kind": "console"}
DAY = Window(start="2026-01-01", end="2026-01-02")


def step(columns: dict | None = None, **fields: object) -> dict:
    """A step over JSON files; `...` leaves a field out."""
    schema = {"id": "string", "at": "timestamp", **(columns or {})}
    given = {
        "name": "s",
        "source": {"path": "in", "format": "json", "schema": schema},
        "event_time": {"column": "at"},
        "dedup": {"keys": ["id"], "within": "2 days"},
        **fields,
    }
    return {name: value for name, value in given.items() if value is not ...}


def write(folder: Path, *steps: dict, **pipeline: object) -> Path:
    """Write a pipeline file."""
    file = folder / "p.yaml"
    file.write_text(yaml.safe_dump({"name": "p", **pipeline, "steps": list(steps)}))
    return file


def refusal(folder: Path, *steps: dict, **pipeline: object) -> str:
    """What `sluice validate` says of a file that it refuses for good."""
    file = write(folder, *steps, **pipeline)
    done = CliRunner().invoke(app, ["validate", "--spec", str(file)])
    assert done.exit_code == ExitCode.TERMINAL, done.output
    with pytest.raises(SpecError) as caught:
        load_pipeline(file)
    return str(caught.value)


@pytest.mark.parametrize("on_fail", ["warn", "stop"])
def test_a_rule_on_the_whole_table_needs_a_table(tmp_path, on_fail):
    said = refusal(
        tmp_path, step(dedup=..., sink=CONSOLE, rules=[ON_ROWS, ON_TABLE | {"on_fail": on_fail}])
    )
    assert "expect_table_row_count_to_be_between looks at the whole table" in said
    assert "add `{kind: delta}` to its sinks, or write a rule that looks at single rows" in said
    for sinks in ([{"kind": "delta"}, CONSOLE], {"kind": "delta"}):
        Step.model_validate(step(sink=sinks, rules=[ON_TABLE]))
    Step.model_validate(step(dedup=..., sink=CONSOLE, rules=[ON_ROWS]))


def test_the_file_knows_which_rules_look_at_single_rows():
    from sluice.quality.row_rules import ROW_TYPES

    assert set(ROW_TYPES) == ROW_LEVEL


@pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
def test_a_name_that_delta_refuses_is_refused_before_the_run(tmp_path, character):
    name = f"unit{character}price"
    nested = {"nested": f"struct<`{name}`:int>"} if character != "\n" else {}
    for columns in ({name: "double"}, nested or {name: "int"}):
        said = refusal(tmp_path, step(columns))
        assert "cannot be a column of a Delta table" in said
        assert "rename it in a `transform`" in said
        assert "delta.columnMapping.mode: name" in said


def test_a_name_that_delta_refuses_may_be_mapped_or_never_get_there(tmp_path):
    columns = {"unit price": "double"}
    (tmp_path / "t.sql").write_text("SELECT id, at FROM source")
    mapped = {"kind": "delta", "properties": {"delta.columnMapping.mode": "name"}}
    for fields in ({"sink": mapped}, {"transform": "t.sql"}, {"sink": CONSOLE, "dedup": ...}):
        load_pipeline(write(tmp_path, step(columns, **fields)))
    Step.model_validate(step({"unit-price": "double", "a.b": "int", "größe": "int"}))


@pytest.mark.parametrize(
    ("type_", "keys", "says"),
    [
        ("map<string,int>", "*", "Spark compares no maps"),
        ("map<string,int>", ["id", "v"], "Spark compares no maps"),
        ("struct<m:map<string,int>>", "*", "Spark compares no maps"),
        ("map<string,map<string,int>>", ["id"], "Spark sorts no maps of such values"),
        ("map<string,array<variant>>", ["id"], "Spark sorts no maps of such values"),
        ("variant", "*", "Spark compares no variants"),
        ("variant", ["v"], "Spark compares no variants"),
        ("variant", ["id"], "Spark hashes no variants"),
        ("array<VARIANT>", "*", "Spark compares no variants"),
    ],
)
def test_a_column_that_cannot_be_compared_is_refused_beside_keys(tmp_path, type_, keys, says):
    said = refusal(tmp_path, step({"v": type_}, dedup={"keys": keys, "within": "2 days"}))
    assert says in said and "column 'v'" in said
    assert "write to_json in a `transform`" in said


def test_a_column_that_cannot_be_compared_is_taken_where_nobody_compares_it():
    for type_ in ("map<string,int>", "struct<m:map<string,int>>", "array<variant>"):
        Step.model_validate(step({"v": type_}))
    Step.model_validate(step({"v": "variant", "bitmap": "string", "variants": "int"}, dedup=...))
    Step.model_validate(
        step({"bitmap": "string", "variants": "int"}, dedup={"keys": "*", "within": "1 day"})
    )
    Step.model_validate(step({"v": "variant"}, transform="t.sql"))


@pytest.mark.parametrize("sink", [{"kind": "delta"}, {"kind": "delta", "cluster_by": ["at"]}, ...])
def test_a_delta_sink_takes_the_mode_that_fits_its_step(sink):
    for fields in ({"dedup": ...}, {}):
        assert Step.model_validate(step(sink=sink, **fields)).target.mode is None
    with pytest.raises(ValueError, match="insert_new needs `dedup`"):
        Step.model_validate(step(dedup=..., sink={"kind": "delta", "mode": "insert_new"}))
    with pytest.raises(ValueError, match="append does not deduplicate"):
        Step.model_validate(step(sink={"kind": "delta", "mode": "append"}))


@pytest.mark.parametrize(
    "fields",
    [
        {"dedup": ...},
        {"dedup": ..., "sink": {"mode": "append"}},
        {"dedup": {"keys": ["id"], "within": "1 day", "memory": "state"}},
        {"dedup": ..., "sink": {"kind": "files", "path": "out"}},
        {"dedup": ..., "sink": {"kind": "kafka", "servers": "a:1", "topic": "t"}},
    ],
)
def test_a_backfill_that_would_double_rows_is_refused_at_its_start(tmp_path, fields):
    file = write(tmp_path, step(**fields))
    report = run_pipeline(RunRequest(pipeline=str(file), root=str(tmp_path / "r"), window=DAY))
    assert report.exit_code is ExitCode.TERMINAL
    assert "write rows that are there already once more" in report.error
    assert "p.s: " in report.error and "Declare " in report.error
    assert not (tmp_path / "r" / "tables").exists()


def test_a_backfill_that_doubles_nothing_is_not_refused(tmp_path):
    from sluice.backlog.ranges import refuse_doubling

    upsert = {"kind": "jdbc", "url": "jdbc:postgresql://h/d", "table": "t", "mode": "upsert"}
    for fields, write_ in (
        ({}, "merge"),
        ({"dedup": ..., "sink": upsert | {"keys": ["id"]}}, "merge"),
        ({"dedup": ..., "sink": CONSOLE}, "merge"),
        ({"dedup": ...}, "replace"),
    ):
        file = write(tmp_path, step(**fields))
        request = RunRequest(pipeline=str(file), window=DAY, write=write_)
        refuse_doubling(load_pipeline(file), request)
    scheduled = RunRequest(pipeline=str(file))
    refuse_doubling(load_pipeline(write(tmp_path, step(dedup=...))), scheduled)


JDBC = {"kind": "jdbc", "url": "jdbc:postgresql://h/d", "table": "t"}
UPSERT = JDBC | {"mode": "upsert", "keys": ["id"]}
ORDERED = {"keys": ["id"], "within": "2 days", "order_by": ["at desc"]}


@pytest.mark.parametrize(
    "sink",
    [JDBC, {"kind": "files", "path": "out"}, {"kind": "kafka", "servers": "h:1", "topic": "t"}],
    ids=lambda sink: sink["kind"],
)
def test_a_sink_that_keeps_every_row_is_refused_beside_a_target_that_replaces_rows(tmp_path, sink):
    said = refusal(tmp_path, step(dedup=ORDERED, sink=[{"kind": "delta"}, sink]))
    assert "may give way to a later one" in said and sink["kind"] in said
    followed = {"jdbc": UPSERT, "kafka": sink | {"key": "id"}}.get(sink["kind"])
    promised = ORDERED | {"first_arrives_first": True}
    Step.model_validate(step(dedup=promised, sink=[{"kind": "delta"}, sink]))
    if followed is not None:
        Step.model_validate(step(dedup=ORDERED, sink=[{"kind": "delta"}, followed]))


def test_an_upsert_must_know_which_row_of_a_key_is_the_newest(tmp_path):
    said = refusal(tmp_path, step(dedup=..., event_time=..., sink=[{"kind": "delta"}, UPSERT]))
    assert "nothing tells which row of a key jdbc t is to keep" in said
    said = refusal(tmp_path, step(sink=[{"kind": "delta"}, UPSERT | {"columns": ["id"]}]))
    assert "compares rows by column 'at' and does not write it" in said
    said = refusal(tmp_path, step(sink=[{"kind": "delta"}, JDBC | {"order_by": ["at desc"]}]))
    assert "`order_by` goes with `mode: upsert`" in said
    ranked = Step.model_validate(step(sink=[{"kind": "delta"}, UPSERT]))
    assert ranked.further_sinks["jdbc t"].order == [("at", True)]


def test_a_stream_of_new_rows_is_refused_behind_a_table_that_replaces_rows(tmp_path):
    behind = {"name": "b", "source": {"kind": "table", "step": "s"}, "sink": {"mode": "append"}}
    said = refusal(tmp_path, step(dedup=ORDERED), behind)
    assert "step b reads the table of step s as a stream of new rows" in said
    fed = {**behind, "source": behind["source"] | {"change_feed": True}}
    refusal(tmp_path, step(dedup=ORDERED), fed)
    kept = {"kind": "delta", "properties": {"delta.enableChangeDataFeed": "true"}}
    load_pipeline(write(tmp_path, step(dedup=ORDERED, sink=kept), fed))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "abc"),
        ("spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net", "abc"),
        ("spark.hadoop.google.cloud.auth.service.account.private.key", "abc"),
        ("spark.hadoop.fs.azure.sas.box.lake.dfs.core.windows.net", "abc"),
        ("spark.ssl.keyPassword", "abc"),
        ("spark.driver.extraJavaOptions", "-Dx=1 -Djavax.net.ssl.trustStorePassword=abc"),
        ("spark.hadoop.fs.s3a.access.key", "${KEY:-abc}"),
    ],
)
def test_a_secret_among_sparks_settings_is_refused_without_being_shown(tmp_path, name, value):
    said = refusal(tmp_path, step(), spark={name: value})
    assert "a secret does not belong into the file" in said and name in said
    assert "abc" not in said


def test_a_setting_that_is_no_secret_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "abc")
    settings = {
        "spark.hadoop.fs.s3a.secret.key": "${KEY}",
        "spark.driver.extraJavaOptions": "-Dlogin=${KEY} -Dtoken=${KEY}",
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.caseSensitive": True,
    }
    file = write(tmp_path, step({"api_key": "string"}), spark=settings)
    assert load_pipeline(file).spark["spark.hadoop.fs.s3a.secret.key"] == "abc"


@pytest.mark.parametrize(
    "option",
    [
        "fileNameOnly",
        "latestFirst",
        "maxFileAge",
        "FILENAMEONLY",
        "cleanSource",
        "ignoreCorruptFiles",
        "ignoreMissingFiles",
        "modifiedAfter",
        "modifiedBefore",
        "asyncProgressTrackingEnabled",
    ],
)
def test_options_under_which_files_would_be_passed_over_are_refused(tmp_path, option):
    schema = {"id": "string", "at": "timestamp"}
    source = {"path": "in", "format": "json", "schema": schema, "options": {option: "true"}}
    said = refusal(tmp_path, step(source=source))
    assert f"option {option} does not go with runs that end" in said and "leave it out" in said


KAFKA = {"kind": "kafka", "servers": "b:9092", "subscribe": "t", "format": "json"}


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("minOffsetsPerTrigger", "looks like an empty backlog"),
        ("maxTriggerDelay", "goes with minOffsetsPerTrigger"),
        ("failOnDataLoss", "write `fail_on_data_loss: false`"),
        ("startingOffsetsByTimestampStrategy", "write `start: {timestamp: ...}`"),
        ("kafka.group.id", "write `group_id_prefix`"),
        ("asyncProgressTrackingEnabled", "refuses it under availableNow"),
        ("asyncProgressTrackingCheckpointIntervalMs", "refuses it under availableNow"),
        ("startingOffsets", "write `start` in its place"),
        ("startingTimestamp", "write `start: {timestamp: ...}` in its place"),
        ("startingOffsetsByTimestamp", "write `start: {timestamp: ...}` in its place"),
        ("endingOffsets", "write `ending_offsets` in its place"),
        ("endingTimestamp", "write `ending_offsets` in its place"),
        ("endingOffsetsByTimestamp", "write `ending_offsets` in its place"),
        ("minPartitions", "write `min_partitions` in its place"),
        ("groupIdPrefix", "write `group_id_prefix` in its place"),
        ("subscribePattern", "write `subscribe_pattern` in its place"),
        ("includeHeaders", "write `headers` in its place"),
    ],
)
def test_options_of_kafka_that_break_a_promise_or_have_a_field_are_refused(tmp_path, option, says):
    schema = {"id": "string", "at": "timestamp"}
    source = {**KAFKA, "schema": schema, "options": {option: "1"}}
    said = refusal(tmp_path, step(source=source))
    assert f"option {option} " in said and says in said


@pytest.mark.parametrize("option", ["pathGlobFilter", "recursiveFileLookup", "sourceArchiveDir"])
def test_options_of_files_that_have_a_field_are_refused(tmp_path, option):
    schema = {"id": "string", "at": "timestamp"}
    source = {"path": "in", "format": "json", "schema": schema, "options": {option: "1"}}
    assert f"option {option} has a field of its own" in refusal(tmp_path, step(source=source))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("spark.sql.files.ignoreCorruptFiles", "passed over without a word"),
        ("spark.sql.files.ignoreMissingFiles", "passed over without a word"),
        ("spark.sql.streaming.unsupportedOperationCheck", "results are wrong"),
        ("spark.sql.streaming.statefulOperator.checkCorrectness.enabled", "results are wrong"),
        ("spark.sql.streaming.multipleWatermarkPolicy", "write `watermark_policy`"),
        ("spark.asyncProgressTrackingEnabled", "refuses it under availableNow"),
    ],
)
def test_settings_of_spark_that_break_a_promise_are_refused(tmp_path, name, says):
    said = refusal(tmp_path, step(), spark={name: "true"})
    assert f"Spark's {name} breaks a promise" in said and says in said


@pytest.mark.parametrize("name", ["conf", "sql.shuffle.partitions", "Spark.executor.memory"])
def test_settings_that_spark_would_pass_over_are_refused(tmp_path, name):
    said = refusal(tmp_path, step(), spark={name: {"spark.executor.memory": "4g"}})
    assert f"{name} is no setting of Spark's" in said


@pytest.mark.parametrize(
    ("entries", "static", "says"),
    [
        ({"newest_per_key": True}, False, "write `static: true` at the input"),
        ({"max_offsets_per_batch": 5}, True, "leave `max_offsets_per_batch` out"),
        ({"start": "latest"}, True, "`start: latest` begins there"),
        ({"subscribe": [], "subscribe_pattern": "a.*"}, True, "name it: `subscribe`"),
    ],
)
def test_a_topic_that_is_no_stream_or_cannot_be_read_whole_is_refused(
    tmp_path, entries, static, says
):
    files = {"path": "in", "format": "json", "schema": {"id": "string"}}
    topic = {**KAFKA, "schema": {"id": "string"}, **entries}
    inputs = {"a": {"source": files}, "b": {"source": topic, "static": static}}
    joined = {"name": "s", "inputs": inputs, "transform": "t.sql", "sink": {"mode": "append"}}
    assert says in refusal(tmp_path, joined)


LOG = {"path": "in", "format": "text", "schema": {"value": "string"}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"line_start_pattern": "[0-9"}, "`line_start_pattern` is no regular expression"),
        ({"line_start_pattern": "[0-9]*"}, "fits every line, an empty one too: [0-9]*"),
        ({"line_start_pattern": "[0-9]", "multi_line": True}, "leave `multi_line` out"),
        (
            {"line_start_pattern": "[0-9]", "format": "csv"},
            "cuts a text into records of several lines; write `format: text`",
        ),
    ],
)
def test_what_a_record_begins_with_must_tell_lines_apart(tmp_path, changes, said):
    told = refusal(tmp_path, step(source=LOG | changes, event_time=..., dedup=...))
    assert said in told
    Step.model_validate(
        step(source=LOG | {"line_start_pattern": "[0-9]"}, event_time=..., dedup=...)
    )


@pytest.mark.parametrize(
    ("entries", "dedup", "says"),
    [
        ({}, {}, "without a bound one batch takes the whole backlog"),
        ({"max_files_per_batch": 1, "ordered_by": "name"}, {}, "older ones wait before them"),
        ({"max_files_per_batch": 1}, {"late": "drop"}, "late: drop makes that decide"),
        ({"max_files_per_batch": 1}, {"late": "keep"}, "late: keep makes that decide"),
        ({"max_files_per_batch": 1}, {"memory": "state"}, "memory: state makes that decide"),
        (
            {"max_files_per_batch": 1},
            {"order_by": ["at"], "first_arrives_first": True},
            "first_arrives_first makes that decide",
        ),
    ],
)
def test_the_newest_first_is_refused_where_the_order_decides(tmp_path, entries, dedup, says):
    schema = {"id": "string", "at": "timestamp"}
    source = {"path": "in", "format": "json", "schema": schema, "latest_first": True, **entries}
    remembered = {"keys": ["id"], "within": "2 days", **dedup}
    assert says in refusal(tmp_path, step(source=source, dedup=remembered))
