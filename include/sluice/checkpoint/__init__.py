"""Identity, ownership and memory of checkpoints."""

from .journal import Entry, find_unreported, forget, note_batch
from .lease import hold_lease
from .manifest import Manifest, open_manifest

__all__ = ["Entry", "Manifest", "find_unreported", "forget", "hold_lease", "note_batch", "open_manifest"]
