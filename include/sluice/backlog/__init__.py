"""What is waiting: checkpoint reader and listing, no JVM."""

from .checkpoint import Checkpoint, SeenFile, normalize_uri
from .files import LandedFile, files_in_window, is_hidden, list_files, source_root
from .measure import StepBacklog, measure_pipeline, measure_step, waiting_files

__all__ = [
    "Checkpoint", "LandedFile", "SeenFile", "StepBacklog", "files_in_window", "is_hidden", "list_files", "measure_pipeline", "measure_step", "normalize_uri",
    "source_root", "waiting_files",
]
