"""Identity, ownership and memory of checkpoints."""

from .epochs import complete_epochs
from .holder import Holder, check_parents, start_of
from .journal import Entry, find_unreported, forget, note_batch
from .lease import Lease, hold_lease, take_turn
from .log import Checkpoint, SeenFile, normalize_uri
from .manifest import Manifest, open_manifest

__all__ = [
    "Checkpoint",
    "SeenFile",
    "normalize_uri",
    "Entry",
    "Holder",
    "Lease",
    "Manifest",
    "check_parents",
    "complete_epochs",
    "find_unreported",
    "forget",
    "hold_lease",
    "note_batch",
    "open_manifest",
    "take_turn",
    "start_of",
]
