"""Identity and ownership of checkpoints."""

from .lease import hold_lease
from .manifest import Manifest, open_manifest

__all__ = ["Manifest", "hold_lease", "open_manifest"]
