"""The few operations that publishing files takes, on any store Spark writes to: through Hadoop's
file systems, with Spark's own credentials."""

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from ...errors import TransientError
from ...spark.jvm import jvm_of


def connect(session: SparkSession, path: str) -> JavaObject:
    """Hadoop's file system of a path; of a local disk the one without checksum files, whose rename
    is a single one."""
    system = (
        jvm_of(session)
        .org.apache.hadoop.fs.Path(path)
        .getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    )
    return system.getRaw() if system.getScheme() == "file" else system


class FileStore:
    """Files by their paths. What a kill cuts off can be done again: each operation then ends as if
    it had not been cut."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._system = connect(session, path)
        self._path = jvm_of(session).org.apache.hadoop.fs.Path

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return self._system.exists(self._path(path))

    def list_names(self, folder: str) -> list[str]:
        """Names in a folder, none when there is no such folder."""
        path = self._path(folder)
        return (
            sorted(status.getPath().getName() for status in self._system.listStatus(path))
            if self._system.exists(path)
            else []
        )

    def list_files(self, folder: str) -> list[str]:
        """Paths, relative to a folder, of the files below it that a reader would read."""
        top, found = f"{self._system.makeQualified(self._path(folder)).toString()}/", []
        entries = self._system.listFiles(self._path(folder), True)
        while entries.hasNext():
            found.append(entries.next().getPath().toString().removeprefix(top))
        return sorted(name for name in found if not name.rpartition("/")[2].startswith(("_", ".")))

    def read(self, path: str) -> str:
        """The text of a file."""
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a new file, which appears whole or not at all."""
        unfinished = f"{path}.unfinished"
        stream = self._system.create(self._path(unfinished), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self.move(unfinished, path)

    def move(self, source: str, target: str) -> None:
        """Rename a file.

        A source that is gone was moved before. A target of the same size beside its source is
        whole: a store that copies was cut off before it removed the source; one of another size is
        a copy that was cut off itself. Raises TransientError when the store refuses.
        """
        old, new = self._path(source), self._path(target)
        if not self._system.exists(old):
            return
        if self._system.exists(new):
            whole = (
                self._system.getFileStatus(new).getLen() == self._system.getFileStatus(old).getLen()
            )
            self._system.delete(old if whole else new, False)
            if whole:
                return
        self._system.mkdirs(new.getParent())
        if not self._system.rename(old, new):
            raise TransientError(
                "the file could not be renamed", where=source, value=target, do="Run again"
            )

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing when there is none."""
        self._system.delete(self._path(path), True)
