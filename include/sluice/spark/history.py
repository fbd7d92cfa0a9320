"""Whether a failure of Spark means that an old version of a table cannot be read any more."""

import re

_GONE = re.compile(
    r"FILE_NOT_EXIST|FileNotFoundException|DELTA_FILE_NOT_FOUND|DELTA_VERSION_NOT_FOUND"
    r"|DELTA_UNSUPPORTED_TIME_TRAVEL|DELTA_CHANGE_DATA_FILE_NOT_FOUND|VersionNotFoundException"
    r"|DELTA_CANNOT_RECONSTRUCT|DELTA_LOG_FILE_NOT_FOUND|DELTA_TIME_TRAVEL_INVALID"
)


def is_feed_missing(error: Exception) -> bool:
    """True where a table was changed while it kept no feed of its changes. Delta says so of the
    first and the last version of a range at once, of those between only when they are read."""
    return "DELTA_MISSING_CHANGE_DATA" in str(error)


def is_history_gone(error: Exception) -> bool:
    """True where VACUUM or a cleaned log took what was to be read."""
    return _GONE.search(str(error)) is not None
