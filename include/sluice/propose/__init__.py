"""What a pipeline over a folder of files would say, and why; without Spark."""

from .columns import Choice
from .layout import Layout, dialect
from .proposal import Proposal, propose
from .rules import RuleProposal
from .samples import make_row
from .types import format_schema

__all__ = [
    "Choice",
    "Layout",
    "Proposal",
    "RuleProposal",
    "dialect",
    "format_schema",
    "make_row",
    "propose",
]
