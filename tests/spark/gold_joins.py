"""Queries over several inputs, or over one that meets itself, that can be refreshed by group."""

from tests.spark.gold_queries import COUNTRY, CUSTOMER, Query

DAYS = {"day": {"orders": "date(at)", "returns": "date(returned_at)"}}
BOTH = ("orders", "returns")
OF_ORDERS = {"products": {"key": "product", "through": {"orders": "product"}}}

JOINS = {
    "join": Query(
        """SELECT o.customer, o.id, r.id AS returned, o.amount - r.amount AS paid FROM orders o
          JOIN returns r ON o.customer = r.customer AND o.product <=> r.product""",
        CUSTOMER,
        BOTH,
    ),
    "left_join": Query(
        """SELECT o.day, sold, back FROM
          (SELECT date(at) AS day, sum(amount) AS sold FROM orders GROUP BY 1) o LEFT JOIN
          (SELECT date(returned_at) AS day, sum(amount) AS back FROM returns GROUP BY 1) r
          ON o.day = r.day""",
        DAYS,
        BOTH,
    ),
    "full_join": Query(
        """SELECT coalesce(o.day, r.day) AS day, sold, back FROM
          (SELECT date(at) AS day, sum(amount) AS sold FROM orders GROUP BY 1) o FULL JOIN
          (SELECT date(returned_at) AS day, sum(amount) AS back FROM returns GROUP BY 1) r
          ON o.day = r.day""",
        DAYS,
        BOTH,
    ),
    "join_in_a_range_of_time": Query(
        """SELECT o.day, o.id, r.id AS returned FROM (SELECT *, date(at) AS day FROM orders) o
          LEFT JOIN (SELECT *, explode(sequence(date(returned_at) - INTERVAL 1 DAY,
          date(returned_at))) AS day FROM returns) r ON o.day = r.day
          AND o.customer = r.customer AND r.returned_at BETWEEN o.at AND o.at + INTERVAL 1 DAY""",
        {
            "day": {
                "orders": "date(at)",
                "returns": "sequence(date(returned_at) - INTERVAL 1 DAY, date(returned_at))",
            }
        },
        BOTH,
    ),
    "semi_join": Query(
        """SELECT o.customer, o.id FROM orders o
          LEFT SEMI JOIN returns r ON o.customer <=> r.customer""",
        CUSTOMER,
        BOTH,
    ),
    "anti_join": Query(
        """SELECT o.customer, o.id, o.amount FROM orders o
          LEFT ANTI JOIN returns r ON o.customer = r.customer AND o.product = r.product""",
        CUSTOMER,
        BOTH,
    ),
    "union_of_three": Query(
        """SELECT day, sum(n) AS rows FROM (SELECT date(at) AS day, 1 AS n FROM orders UNION ALL
          SELECT date(returned_at), 10 FROM returns UNION ALL SELECT date(at), 100 FROM events)
          GROUP BY day""",
        {"day": DAYS["day"] | {"events": "date(at)"}},
        (*BOTH, "events"),
    ),
    "set_operations": Query(
        """(SELECT customer, product, 'both' AS where FROM orders
          INTERSECT SELECT customer, product, 'both' FROM returns) UNION ALL
          (SELECT customer, product, 'kept' FROM orders
          EXCEPT ALL SELECT customer, product, 'kept' FROM returns)""",
        CUSTOMER,
        BOTH,
    ),
    "self_join": Query(
        """SELECT a.day, a.product AS one, b.product AS other, count(*) AS together FROM
          (SELECT DISTINCT date(at) AS day, customer, product FROM source) a JOIN
          (SELECT DISTINCT date(at) AS day, customer, product FROM source) b
          ON a.day = b.day AND a.product < b.product GROUP BY 1, 2, 3"""
    ),
    "above_the_mean": Query(
        """SELECT s.country, s.id, s.amount FROM source s JOIN
          (SELECT country, avg(amount) AS mean FROM source GROUP BY country) m
          ON s.country = m.country WHERE s.amount > m.mean""",
        COUNTRY,
    ),
    "static_join": Query(
        """SELECT date(o.at) AS day, p.category, sum(p.price * o.quantity) AS worth FROM orders o
          LEFT JOIN products p ON o.product = p.product GROUP BY 1, 2""",
        static=("products",),
    ),
    "dimension": Query(
        """SELECT date(o.at) AS day, p.category, sum(p.price * o.quantity) AS worth FROM orders o
          LEFT JOIN products p ON o.product = p.product GROUP BY 1, 2""",
        inputs=("orders", "products"),
        through=OF_ORDERS,
    ),
    "dimension_with_null_as_key": Query(
        """SELECT o.customer, o.id, p.category FROM orders o
          JOIN products p ON o.product <=> p.product WHERE p.price > 1""",
        CUSTOMER,
        inputs=("orders", "products"),
        through=OF_ORDERS,
    ),
    "dimension_without_match": Query(
        """SELECT o.customer, o.id FROM orders o
          LEFT ANTI JOIN products p ON o.product = p.product AND p.price > 1""",
        CUSTOMER,
        inputs=("orders", "products"),
        through=OF_ORDERS,
    ),
    "dimension_of_two": Query(
        """SELECT day, category, sum(amount) AS total, count(*) AS rows FROM
          (SELECT date(at) AS day, lower(product) AS what, amount FROM orders UNION ALL
          SELECT date(returned_at), lower(product), -amount FROM returns)
          LEFT JOIN (SELECT lower(product) AS what, max(price) AS price, max(category) AS category
          FROM products GROUP BY lower(product)) USING (what) GROUP BY day, category""",
        DAYS,
        (*BOTH, "products"),
        through={
            "products": {
                "key": "lower(product)",
                "through": {"orders": "lower(product)", "returns": "lower(product)"},
            }
        },
    ),
    "dimension_in_a_list": Query(
        """SELECT day, p.category, count(*) AS rows FROM (SELECT product,
          explode(sequence(date(at), date_add(date(at), 2))) AS day FROM orders) o
          JOIN products p ON p.product = o.product GROUP BY day, p.category""",
        {"day": {"orders": "sequence(date(at), date_add(date(at), 2))"}},
        inputs=("orders", "products"),
        through=OF_ORDERS,
    ),
    "function_of_two": Query(
        """from pyspark.sql import functions as F
def daily(orders, returns):
    sold = orders.groupBy("customer").agg(F.sum("amount").alias("sold"))
    back = returns.groupBy("customer").agg(F.sum("amount").alias("back"))
    return sold.join(back, "customer", "left")
""",
        CUSTOMER,
        BOTH,
    ),
}
