"""A pipeline: one YAML file, an ordered list of steps."""

from datetime import datetime, timedelta
from itertools import combinations
from os import PathLike
from pathlib import Path

from pydantic import Field, field_validator, model_validator

from ..errors import suggest
from ..storage.paths import Paths
from .file_source import FileSource
from .lines import At
from .model import FieldError, Options, Spec
from .quantities import Duration
from .schedule import WITHOUT_INTERVAL, After, Clock, Schedule
from .source_kind import SourceKind
from .spark_settings import check_settings
from .step import NAME, Step
from .trigger import never_ends, trigger_kind
from .verifiable import why_unverifiable


class Pipeline(Spec):
    """What runs, when, for whom."""

    name: str = Field(pattern=NAME)
    uid: str | None = Field(default=None, pattern=NAME)
    """What its tables, checkpoints and reports are kept under, and the keys of its batches begin
    with: the name, until `sluice rename` gives it another."""
    description: str = ""
    """Markdown; the DAG's documentation page in Airflow."""
    owner: str = "data-engineering"
    schedule: Schedule = None
    """Cron text, a preset, a duration, `{after: [orders.orders]}` for when other pipelines have
    written, or null for runs by hand."""
    verify: Clock | None = None
    """When the DAG `<name>_verify` reads everything once more and compares the tables with what
    comes of it: cron text, a preset (`@weekly`) or a duration. By default there is no such DAG;
    `sluice verify NAME` does the same."""
    start_date: datetime = datetime(2026, 1, 1)
    """First moment of the schedule and the earliest a backfill may reach; UTC when no zone is
    given."""
    master: str = "local[*]"
    """Where Spark runs: local[*], spark://host:7077, yarn, k8s://https://host."""
    spark_conn_id: str = "spark_default"
    """The Airflow connection that submits the job."""
    spark: Options = {}
    """Spark settings that win over ours."""
    budget: Duration = timedelta(hours=1)
    """A run ends within this time; what is left waits for the next run."""
    parallel_steps: int = Field(default=2, ge=1)
    """How many steps run at the same time, at most; those that read what another one writes wait
    for it."""
    idle_run_every: Duration = timedelta(days=7)
    """Spark runs after this time even when nothing is new."""
    max_batch_failures: int = Field(default=3, ge=0)
    """Retries of a task that failed for a reason that may pass."""
    pii: list[str] = []
    """Columns whose values are never shown in a report."""
    steps: list[Step] = Field(min_length=1)
    folder: Path = Field(default=Path("."), exclude=True, json_schema_extra={"readOnly": True})
    """Where the YAML lies; filled in by the loader."""

    def paths(self, root: str | PathLike | None = None) -> Paths:
        """Where it keeps what it makes; see `Paths.under`."""
        uids = {step.name: step.uid for step in self.steps if step.uid is not None}
        return Paths.under(root, self.uid or self.name, uids)

    def source_path(self, source: SourceKind, paths: Paths) -> str:
        """Folder, URI or catalog name of the table that a step reads; empty for what is no
        table."""
        for step in self.steps:
            if step.name == source.reads_step:
                return step.target_path(paths)
        return source.place(paths)

    def reads_files_of(self, source: FileSource) -> bool:
        """Whether a step of it may read files that another source reads."""
        mine = (one for step in self.steps for one in step.sources)
        return any(isinstance(one, FileSource) and one.may_read_files_of(source) for one in mine)

    @model_validator(mode="after")
    def _check_unattended(self) -> "Pipeline":
        for number, step in enumerate(self.steps):
            for source in step.sources if self.schedule is not None else ():
                if not source.why_trial:
                    continue
                raise FieldError(
                    f"step {step.name}: source {source.kind} is for trials "
                    f"({source.why_trial}); write `schedule: null` and start it with "
                    "`sluice run --dev`",
                    *("steps", number, "source"),
                )
        for number, step in enumerate(self.steps[:-1]):
            if never_ends(step.trigger):
                raise FieldError(
                    f"step {step.name}: trigger {trigger_kind(step.trigger)} takes all the time of "
                    "a run, so no step after it would get any; make it the last step",
                    *("steps", number, "trigger"),
                )
        return self

    @model_validator(mode="after")
    def _check_after(self) -> "Pipeline":
        awaited = self.schedule.places if isinstance(self.schedule, After) else {}
        for step, at in awaited.items():
            if step.partition(".")[0] == self.name:
                raise FieldError(
                    f"the schedule waits for {step}, a step of this pipeline: it would wake itself",
                    *at,
                    do="Leave it out: the steps of a pipeline run together, and one that reads "
                    "another waits for it",
                )
        return self

    @model_validator(mode="after")
    def _check_verify(self) -> "Pipeline":
        if self.verify in WITHOUT_INTERVAL:
            raise FieldError(f"{self.verify} says no time; write '@weekly'", "verify")
        left_out = {step.name: why_unverifiable(step) for step in self.steps}
        if self.verify is not None and all(left_out.values()):
            told = "; ".join(f"{name}: {why}" for name, why in left_out.items())
            raise FieldError(f"no step can be verified ({told}); leave it out", "verify")
        return self

    @model_validator(mode="after")
    def _check_cleaning(self) -> "Pipeline":
        """A folder that one source cleans must be no other's: each would miss what the first to
        come has taken away."""
        files = [
            (number, source)
            for number, step in enumerate(self.steps)
            for source in step.sources
            if isinstance(source, FileSource)
        ]
        for (_, one), (number, other) in combinations(files, 2):
            cleans = one.clean_source or other.clean_source
            if cleans and one.may_read_files_of(other):
                raise FieldError(
                    f"two sources read files below {other.fixed_folder!r}, and with "
                    f"`clean_source: {cleans}` the first to read one takes it from the other; "
                    "clean neither, give each its own `pattern`, or let the second step read the "
                    "table of the first",
                    *("steps", number),
                )
        return self

    @model_validator(mode="after")
    def _check_order(self) -> "Pipeline":
        earlier: set[str | None] = {None}
        for number, step in enumerate(self.steps):
            for name, one in {**step.streams, **step.statics}.items():
                at = ("inputs", name, "source") if step.inputs else ("source",)
                if one.source.reads_step not in earlier:
                    raise FieldError(
                        f"step {step.name} reads step {one.source.reads_step!r}, which is no "
                        "earlier step of this pipeline with a Delta sink",
                        *("steps", number, *at, "step"),
                        do=self._advise_order(step, one.source.reads_step or ""),
                    )
                if not one.static:
                    self._check_changes(("steps", number, *at), step, one.source)
            earlier |= {step.name} if step.target is not None else set()
        return self

    def _advise_order(self, reader: Step, name: str) -> str:
        """What to write where a step reads one that it cannot read."""
        read = next((step for step in self.steps if step.name == name), None)
        if read is None:
            return suggest(name, [step.name for step in self.steps if step is not reader])
        if read is reader:
            return "A step cannot read the table that it writes"
        if read.target is None:
            return f"Add `{{kind: delta}}` to the sinks of step {name}"
        return f"Steps run in the order of the file: write {name} before {reader.name}"

    @model_validator(mode="after")
    def _check_pii(self) -> "Pipeline":
        """A column that is to be hidden, against the schemas: where nothing else makes columns."""
        known = [name for step in self.steps for name in step.columns]
        if any(
            step.transform or not (step.columns or any(s.reads_step for s in step.sources))
            for step in self.steps
        ):
            return self
        for number, name in enumerate(self.pii):
            if name not in known and not name.startswith("_"):
                raise FieldError(
                    f"pii names column {name!r}, which no schema has, so nothing would be hidden; "
                    f"there are {', '.join(dict.fromkeys(known))}",
                    *("pii", number),
                    do=suggest(name, known),
                )
        return self

    def _check_changes(self, at: At, reader: Step, source: SourceKind) -> None:
        """Raise ValueError for a step that reads new rows of a table whose rows are replaced: its
        stream would stop at the first, for good."""
        read = next((step for step in self.steps if step.name == source.reads_step), None)
        if read is None or read.target is None or not read.replaces_rows or reader.groups:
            return
        if source.reads_changes and read.keeps_changes:
            return
        ranked = read.output_mode == "append" and not read.groups
        mode = "`groups`" if read.groups else f"`mode: {read.output_mode}`"
        said = "`order_by`" if ranked else mode
        other = "promise `first_arrives_first: true`" if ranked else "read it with `static: true`"
        raise FieldError(
            f"step {reader.name} reads the table of step {read.name} as a stream of new rows, and "
            f"with {said} rows of it give way to later ones, which such a stream cannot follow; "
            "write `change_feed: true` at the source, and at the sink that it reads `properties: "
            f"{{delta.enableChangeDataFeed: true}}` before the table is made; or {other}",
            *at,
        )

    @field_validator("spark")
    @classmethod
    def _check_settings(cls, settings: dict[str, str]) -> dict[str, str]:
        check_settings(settings)
        return settings

    @field_validator("steps")
    @classmethod
    def _check_unique(cls, steps: list[Step]) -> list[Step]:
        names = [step.name for step in steps]
        twice = sorted({n for n in names if names.count(n) > 1})
        uids = [step.uid or step.name for step in steps]
        if twice:
            raise FieldError(
                f"two steps are named {', '.join(twice)}; each has its own checkpoint and table, "
                "so give each its own name",
                *(len(names) - 1 - names[::-1].index(twice[0]), "name"),
            )
        for number, step in enumerate(steps):
            if uids.count(uids[number]) > 1 and step.uid is not None:
                raise FieldError(
                    f"step {step.name} keeps what it makes under {step.uid}, and so does another "
                    "step; each needs a place of its own, so give that one another name",
                    *(number, "uid"),
                )
        queues = [one.queue for step in steps for one in step.sources if one.queue is not None]
        if len(set(queues)) < len(queues):
            raise ValueError(
                "two steps read one queue, or two inputs do, and each would delete what it tells "
                "the other; give each a queue of its own"
            )
        return steps
