"""State of the user's own in a query: what its operators keep, seen before a row is read.

Of `applyInPandasWithState` the plan says all. What a `transformWithState` keeps its processor's
`init` declares, which Spark calls on the driver before the first batch; it is called here as well,
with a handle that only writes down.
"""

from dataclasses import dataclass, field

from py4j.java_gateway import JavaObject
from pyspark.core.broadcast import Broadcast, _broadcastRegistry
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import StructType

from ..errors import SpecError
from .fault import sql_message
from .jvm import jvm_of
from .plans import analyzed_plan, items, keeps_state, kind, walk

PROCESSOR = "TransformWithStateInPySpark"
"""The node of `transformWithState`, on rows and on pandas."""
FUNCTION = "FlatMapGroupsInPandasWithState"
"""The node of `applyInPandasWithState`."""


@dataclass(frozen=True)
class Variable:
    """A state variable. `kind`: value, list or map; `types`: what it holds, of a map the key and
    the value; `ttl_ms`: its time to live, None for none."""

    name: str
    kind: str
    types: tuple[StructType, ...]
    ttl_ms: int | None = None

    @property
    def content(self) -> str:
        """`value of n bigint`, `map of key string to n bigint`."""
        told = [
            ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in each.fields)
            for each in self.types
        ]
        return f"{self.kind} of {' to '.join(told)}"


@dataclass(frozen=True)
class Declared:
    """The state of the user's own in a query. `operators`: Spark's names of them; `encoding`: how
    Spark writes what the query keeps; `deleted`: variables that a processor deletes; `initial`:
    columns of an initial state, empty for none."""

    operators: list[str] = field(default_factory=list)
    encoding: str = "unsaferow"
    variables: list[Variable] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    initial: str = ""


class _Recorder(StatefulProcessorApiClient):
    """Spark's side of a handle while `init` runs: declarations are written down, and there is no
    state to be read. `prefix`: of the names, where several processors have their own."""

    def __init__(self, declared: Declared, prefix: str) -> None:
        self._declared, self._prefix = declared, prefix

    def get_value_state(self, state_name, schema, ttl_duration_ms):
        self._note(state_name, "value", ttl_duration_ms, schema)

    def get_list_state(self, state_name, schema, ttl_duration_ms):
        self._note(state_name, "list", ttl_duration_ms, schema)

    def get_map_state(self, state_name, user_key_schema, value_schema, ttl_duration_ms):
        self._note(state_name, "map", ttl_duration_ms, user_key_schema, value_schema)

    def delete_if_exists(self, state_name: str) -> None:
        self._declared.deleted.append(self._prefix + state_name)

    def _note(self, name: str, what: str, ttl: int | None, *types: StructType | str) -> None:
        parsed = tuple(self._parse_string_schema(t) if isinstance(t, str) else t for t in types)
        self._declared.variables.append(Variable(self._prefix + name, what, parsed, ttl))

    def _parse_string_schema(self, schema: str) -> StructType:
        parsed = StructType.fromDDL(schema)
        if not isinstance(parsed, StructType):
            raise ValueError(f"{schema}: a state variable has named fields, as `n {schema}`")
        return parsed


def describe_custom_state(node: JavaObject) -> str:
    """What may not change of an operator whose state is the user's own."""
    keys = ", ".join(
        f"{key.name()} {key.dataType().simpleString()}" for key in _grouping_keys(node)
    )
    mode = node.outputMode().toString().lower()
    if kind(node) == PROCESSOR:
        rows = "pandas" if "pandas" in node.userFacingDataType().toString() else "rows"
        return (
            f"transformWithState on {rows} by {keys}, timeMode {node.timeMode().toString()}, "
            f"outputMode {mode}"
        )
    return (
        f"applyInPandasWithState by {keys}, state {node.stateType().simpleString()}, "
        f"timeout {node.timeout().toString()}, outputMode {mode}"
    )


def _grouping_keys(node: JavaObject) -> list[JavaObject]:
    if kind(node) == PROCESSOR:
        return items(node.left().output())[: node.groupingAttributesLen()]
    return items(node.groupingAttributes())


def find_custom_state(frame: DataFrame) -> list[JavaObject]:
    """The operators of a streaming query whose state is the user's own, from the top."""
    nodes = walk(analyzed_plan(frame))
    return [node for node in nodes if node.isStreaming() and kind(node) in (PROCESSOR, FUNCTION)]


def choose_encoding(frame: DataFrame) -> str:
    """How a query's state is written: as Avro, whose fields have names, so that a variable may get
    others, where Spark takes it, which is of `transformWithState` alone."""
    nodes = [node for node in walk(analyzed_plan(frame)) if node.isStreaming()]
    keeping = {kind(node) for node in nodes if keeps_state(node)}
    return "avro" if keeping == {PROCESSOR} else "unsaferow"


def read_declared(frame: DataFrame, where: str) -> Declared:
    """What the processors of a query declare. Raises SpecError with what their `init` raised.

    Args: where: the step, for errors.
    """
    nodes = find_custom_state(frame)
    if not nodes:
        return Declared()
    processors = [node for node in nodes if kind(node) == PROCESSOR]
    initial = [
        node.initialState().schema().toDDL() for node in processors if node.hasInitialState()
    ]
    declared = Declared(
        [kind(node) for node in nodes], choose_encoding(frame), initial="; ".join(initial)
    )
    for number, node in enumerate(processors):
        prefix = f"{number}." if len(processors) > 1 else ""
        _ask(_processor_of(frame.sparkSession, node), _Recorder(declared, prefix), where)
    return declared


def _ask(processor: StatefulProcessor, recorder: _Recorder, where: str) -> None:
    name = type(processor).__name__
    try:
        processor.init(StatefulProcessorHandle(recorder))
        processor.close()
    except Exception as error:  # the user's code may raise anything
        raise SpecError(
            f"{name}.init raised {type(error).__name__}: {sql_message(error)}",
            where=where,
            do="Spark calls it with a handle before it has a row: declare the state variables in "
            "it, and read or write none",
        ) from error


def _processor_of(spark: SparkSession, node: JavaObject) -> StatefulProcessor:
    """A copy of the user's processor, made of the plan as a worker makes its own
    (`pyspark.worker.read_command`)."""
    function, tag = node.functionExpr().func(), jvm_of(spark).scala.reflect.ClassTag.Byte()
    for shared in function.broadcastVars():
        _broadcastRegistry[shared.id()] = Broadcast(path=shared.value().path())
    unpickle = CPickleSerializer().loads
    command = unpickle(bytes(function.command().toArray(tag)))
    if isinstance(command, Broadcast):  # of more than a megabyte
        command = unpickle(command.value)
    call, _returned = command
    return call.__self__._stateful_processor
