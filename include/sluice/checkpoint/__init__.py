"""Identity, ownership and memory of checkpoints."""

from .again import plan_again, plan_nothing, take_back, without_watermark
from .attempt import Attempt, note_attempt, read_attempt
from .epochs import complete_epochs
from .holder import Holder, check_parents, start_of
from .journal import Entry, claimed_by_others, find_unreported, forget, note_batch
from .lease import Lease, hold_lease, take_turn
from .log import Checkpoint
from .manifest import (
    HeldBefore,
    Manifest,
    begin_anew,
    note_step,
    note_told,
    noted_generation,
    noted_held,
    noted_parts,
    noted_target,
    open_manifest,
)
from .position import (
    Due,
    GivenUp,
    Position,
    Sent,
    find_namesakes,
    followed_sinks,
    read_position,
    split_key,
    write_position,
)
from .rights import Rights
from .seen import SeenFile, normalize_uri
from .shorten import shorten_log
from .state_files import live_bytes, state_operators
from .stretches import Stretch, note_stretch, read_stretches
from .watermarks import Reached, note_reached, read_reached

__all__ = [
    "read_reached",
    "plan_again",
    "plan_nothing",
    "take_back",
    "without_watermark",
    "shorten_log",
    "Stretch",
    "note_stretch",
    "read_stretches",
    "Checkpoint",
    "SeenFile",
    "normalize_uri",
    "Entry",
    "Holder",
    "Lease",
    "Manifest",
    "check_parents",
    "complete_epochs",
    "find_namesakes",
    "claimed_by_others",
    "find_unreported",
    "followed_sinks",
    "forget",
    "hold_lease",
    "note_batch",
    "note_attempt",
    "begin_anew",
    "note_told",
    "note_reached",
    "note_step",
    "noted_parts",
    "noted_generation",
    "noted_held",
    "live_bytes",
    "state_operators",
    "HeldBefore",
    "noted_target",
    "open_manifest",
    "Attempt",
    "Due",
    "GivenUp",
    "Position",
    "Sent",
    "read_position",
    "split_key",
    "write_position",
    "read_attempt",
    "Reached",
    "Rights",
    "take_turn",
    "start_of",
]
