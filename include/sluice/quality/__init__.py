"""Rules: row-level ones compiled to columns, table-level ones run by Great Expectations."""

from .expectations import check_expectations, import_in_background, validate_table
from .names import EXPECTATIONS, rule_name
from .rules import RowRule, compile_rules, is_table_level, row_result

__all__ = [
    "EXPECTATIONS",
    "RowRule",
    "check_expectations",
    "compile_rules",
    "import_in_background",
    "is_table_level",
    "row_result",
    "rule_name",
    "validate_table",
]
