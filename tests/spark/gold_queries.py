"""Queries over the tables of `gold.py`, of every kind that can be refreshed by group: filtering
each input by the group gives the rows of that group.

All are exact: no sums of floats, and where rows tie, those that do are equal.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Query:
    """A step. `code`: SQL, or Python with a function `daily`. `inputs`: those that are read commit
    by commit; one alone is called `source`. `static`: read as a whole. `through`: what else a table
    of the inputs says, that belongs to groups through others."""

    code: str
    groups: dict[str, str | dict[str, str]] = field(default_factory=lambda: DAY)
    inputs: tuple[str, ...] = ("orders",)
    static: tuple[str, ...] = ()
    rules: tuple[dict, ...] = ()
    through: dict[str, dict] = field(default_factory=dict)

    @property
    def is_python(self) -> bool:
        return "def daily(" in self.code

    @property
    def tables(self) -> dict[str, str]:
        """What the query calls an input -> its table."""
        names = (*self.inputs, *self.static)
        return {"source": names[0]} if len(names) == 1 else dict(zip(names, names, strict=True))


DAY = {"day": "date(at)"}
COUNTRY, CUSTOMER = {"country": "country"}, {"customer": "customer"}
SUMS = "SELECT date(at) AS day, sum(amount) AS total, count(*) AS rows FROM source GROUP BY 1"

OF_ROWS = {
    "rows_as_they_are": Query(
        """SELECT id, date(at) AS day, amount, CASE WHEN amount > 20 THEN 'much' WHEN amount > 10
          THEN 'some' ELSE 'little' END AS size, coalesce(note, 'none') AS note
          FROM source WHERE quantity > 1"""
    ),
    "rows_out_of_a_list": Query(
        """SELECT date(at) AS day, word, count(*) AS times
          FROM source LATERAL VIEW explode(split(note, ' ')) AS word GROUP BY 1, 2"""
    ),
    "distinct": Query("SELECT DISTINCT customer, product FROM source", CUSTOMER),
    "nested_columns": Query(
        """SELECT date(at) AS day, id, named_struct('what', product, 'many', quantity) AS bought,
          array(note, country) AS words FROM source"""
    ),
    "names_in_upper_case": Query(
        """SELECT date(at) AS Day, count(*) AS `ROWS`, max(note) AS `Last-Note`
          FROM source GROUP BY 1""",
        {"Day": "date(at)"},
    ),
}
OF_SUMS = {
    "sums": Query(
        """SELECT date(at) AS day, sum(amount) AS total, count(*) AS rows, count(note) AS notes,
          avg(amount) AS mean, min(amount) AS least, max(at) AS last,
          count(DISTINCT customer) AS people, array_sort(collect_list(id)) AS ids
          FROM source GROUP BY 1"""
    ),
    "group_that_is_not_selected": Query(
        """SELECT customer, sum(amount) AS total, count(*) AS rows FROM source
          GROUP BY date(at), customer""",
        {"_group_day": "date(at)"},
    ),
    "several_rows_a_group": Query(
        "SELECT date(at) AS day, product, sum(quantity) AS sold FROM source GROUP BY 1, 2"
    ),
    "two_groups": Query(
        """SELECT country, date(at) AS day, sum(amount) AS total FROM source
          GROUP BY country, date(at)""",
        COUNTRY | DAY,
    ),
    "by_month": Query(
        """SELECT date_trunc('month', at) AS month, sum(amount) AS total,
          sum(amount) FILTER (WHERE country = 'NL') AS home,
          max_by(product, struct(amount, id)) AS dearest, median(quantity) AS half,
          percentile(quantity, 0.25) AS quarter FROM source GROUP BY 1""",
        {"month": "date_trunc('month', at)"},
    ),
    "by_ratio": Query(
        "SELECT ratio, count(*) AS rows, sum(amount) AS total FROM source GROUP BY ratio",
        {"ratio": "ratio"},
    ),
    "by_text_in_lower_case": Query(
        "SELECT lower(customer) AS who, count(*) AS rows FROM source GROUP BY lower(customer)",
        {"who": "lower(customer)"},
    ),
    "repeat_customers": Query(
        """WITH people AS (SELECT date(at) AS day, customer, count(DISTINCT id) AS orders
          FROM source WHERE amount > 0 GROUP BY 1, 2 HAVING count(*) > 1)
          SELECT day, count_if(orders > 1) AS again, count(*) AS people FROM people GROUP BY day"""
    ),
    "subtotals": Query(
        """SELECT date(at) AS day, product, grouping(product) AS whole, sum(amount) AS total
          FROM source GROUP BY date(at), product GROUPING SETS ((date(at), product), (date(at)))"""
    ),
    "windows": Query(
        """SELECT window.start AS began, product, sum(amount) AS total FROM source
          GROUP BY window(at, '3 hours', '3 hours', '1 hour'), product""",
        {"began": "window(at, '3 hours', '3 hours', '1 hour').start"},
    ),
    "pivot": Query(
        """SELECT * FROM (SELECT date(at) AS day, country, quantity FROM source)
          PIVOT (sum(quantity) FOR country IN ('NL' AS home, 'DE' AS abroad))"""
    ),
}
OF_ORDER = {
    "top_two": Query(
        """SELECT day, place, id, amount FROM (SELECT *, row_number() OVER (PARTITION BY day
          ORDER BY amount DESC, id) AS place FROM (SELECT *, date(at) AS day FROM source))
          WHERE place < 3"""
    ),
    "ranks": Query(
        """SELECT country, id, rank() OVER w AS place, dense_rank() OVER w AS step,
          amount, sum(amount) OVER (PARTITION BY country) AS total FROM source
          WINDOW w AS (PARTITION BY country ORDER BY quantity DESC)""",
        COUNTRY,
    ),
    "running_total": Query(
        """SELECT customer, id, sum(amount) OVER (PARTITION BY customer ORDER BY at, id
          ROWS UNBOUNDED PRECEDING) AS so_far, timestampdiff(MINUTE, lag(at) OVER
          (PARTITION BY customer ORDER BY at, id), at) AS minutes FROM source""",
        CUSTOMER,
    ),
    "sessions": Query(
        """SELECT customer, session_window.start AS began, session_window.end AS ended,
          count(*) AS rows, sum(amount) AS total FROM source
          GROUP BY session_window(at, '30 minutes'), customer""",
        CUSTOMER,
    ),
    "sliding_windows": Query(
        """SELECT customer, window.start AS began, sum(quantity) AS sold FROM source
          GROUP BY window(at, '20 minutes', '10 minutes'), customer""",
        CUSTOMER,
    ),
    "versions_of_a_customer": Query(
        """SELECT customer, country, at AS valid_from,
          lead(at) OVER (PARTITION BY customer ORDER BY at, id) AS valid_to
          FROM (SELECT *, lag(struct(country)) OVER (PARTITION BY customer ORDER BY at, id)
          AS before FROM source) WHERE before IS NULL OR NOT before.country <=> country""",
        CUSTOMER,
    ),
}
OF_LISTS = {
    "three_days_long": Query(
        """SELECT day, count(*) AS rows, sum(amount) AS total, count(DISTINCT customer) AS people
          FROM source LATERAL VIEW explode(sequence(date(at), date_add(date(at), 2))) AS day
          GROUP BY day""",
        {"day": "sequence(date(at), date_add(date(at), 2))"},
    ),
    "hours_by_country": Query(
        """SELECT country, hour, sum(quantity) AS sold FROM (SELECT country, quantity, explode(
          sequence(date_trunc('hour', at), date_trunc('hour', at) + INTERVAL 2 HOURS,
          INTERVAL 1 HOUR)) AS hour FROM source) GROUP BY country, hour""",
        COUNTRY
        | {
            "hour": "sequence(date_trunc('hour', at), date_trunc('hour', at) + INTERVAL 2 HOURS, "
            "INTERVAL 1 HOUR)"
        },
    ),
    "windows_that_overlap": Query(
        """SELECT window, country, count(*) AS rows, sum(amount) AS total FROM source
          GROUP BY window(at, '2 hours', '30 minutes'), country""",
        {"window": "window(at, '2 hours', '30 minutes')"},
    ),
    "words": Query(
        """SELECT word, count(*) AS rows, max(amount) AS most FROM source
          LATERAL VIEW explode(split(note, ' ')) AS word GROUP BY word""",
        {"word": "split(note, ' ')"},
    ),
}
"""Of rows that belong to several groups."""
QUERIES = OF_ROWS | OF_SUMS | OF_ORDER | OF_LISTS
