"""Why an operator that puts rows of several groups together is refused, and what to write instead.

{0} is the group's column, {1} the operator.
"""

UNGROUPED = (
    "GROUP BY without the group's column `{0}` puts rows of several groups together",
    "Group by it as well: `GROUP BY {0}, ...`",
)
GLOBAL = (
    "an aggregate without GROUP BY makes one row of all groups, whatever their `{0}` is",
    "Group by it: `GROUP BY {0}`",
)
TOTALS = (
    "ROLLUP, CUBE or GROUPING SETS without the group's column `{0}` in each set makes rows of "
    "several groups",
    "Keep it in each: `GROUP BY GROUPING SETS (({0}), ({0}, product))`; totals of all groups are "
    "a step of their own",
)
UNPARTED = (
    "a window function without the group's column `{0}` in PARTITION BY looks at rows of several "
    "groups",
    "Partition by it as well: `OVER (PARTITION BY {0}, ... ORDER BY ...)`",
)
INDISTINCT = (
    "DISTINCT over columns without the group's column `{0}` makes one row of equal rows of "
    "several groups",
    "Select it as well: `SELECT DISTINCT {0}, ...`",
)
HALF = (
    "{0} puts rows that belong to groups together with rows of a table that has none",
    "Join that table, or say under `groups` how a group follows from its rows",
)
APART = (
    "{1} of queries that do not have the group's column `{0}` in the same place",
    "Select it in each of them: `SELECT {0}, ... UNION ALL SELECT {0}, ...`",
)
