"""What runs have filled once, put back for each test as they left it."""

import shutil
from copy import deepcopy
from pathlib import Path
from typing import Generic, Protocol, TypeVar


class Place(Protocol):
    """A pipeline with all that it reads and writes below a folder."""

    folder: Path


Kind = TypeVar("Kind", bound=Place)


class Kept(Generic[Kind]):
    """A pipeline of which several tests want the same first runs.

    It goes back to the same folder, as checkpoints hold whole paths; with a state store, which
    Spark keeps open by its path, it cannot.
    """

    def __init__(self, spark: object, made: Kind) -> None:
        self._spark, self._made = spark, made
        self._copy = made.folder.with_name(f"{made.folder.name}-kept")
        shutil.copytree(made.folder, self._copy)

    def put_back(self) -> Kind:
        """The pipeline as it was, whatever a test did to the one before."""
        shutil.rmtree(self._made.folder)
        shutil.copytree(self._copy, self._made.folder)
        # Delta takes a table whose log it knows for as long as the newest commit's number is there.
        self._spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        return deepcopy(self._made, {id(self._spark): self._spark})
