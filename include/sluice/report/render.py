"""The two faces of a RunReport: text for a terminal, HTML for everyone else."""

from .html import render_html
from .text import render_text

__all__ = ["render_html", "render_text"]
