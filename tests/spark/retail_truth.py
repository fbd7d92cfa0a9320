"""What the tables of the worked pipeline `retail` hold, counted in plain Python from the files that
landed."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple

from sluice.demo.landing import Landing

COLUMNS = {
    "daily": ("country", "day", "sold", "returned", "revenue", "invoices"),
    "weekly": ("country", "week", "sold", "returned", "revenue", "invoices", "days"),
    "top_products": ("week", "place", "product", "description", "quantity", "revenue"),
    "repeat_customers": (
        *("customer", "first_purchase", "last_purchase", "invoices", "revenue", "is_repeat"),
    ),
}
GROUP = {"daily": 1, "weekly": 1, "top_products": 0, "repeat_customers": 0}
"""Which of the columns is the group."""
BEST = 10


class Sale(NamedTuple):
    """A line item, typed."""

    invoice: str
    product: str
    description: str
    quantity: int
    price: Decimal
    at: datetime
    customer: int | None
    country: str

    @property
    def amount(self) -> Decimal:
        return self.quantity * self.price

    @property
    def day(self) -> date:
        return self.at.date()

    @property
    def week(self) -> datetime:
        return begin_week(self.day)


def begin_week(day: date) -> datetime:
    """The first moment of its Monday."""
    return datetime.combine(day - timedelta(days=day.weekday()), time.min)


def read_sales(files: dict[str, bytes]) -> Iterator[Sale]:
    """The line items of some files that can be read, copies among them."""
    for content in files.values():
        for row in csv.DictReader(io.StringIO(content.decode())):
            if row["Quantity"].removeprefix("-").isdigit():
                yield Sale(
                    row["InvoiceNo"],
                    row["StockCode"].upper(),
                    row["Description"].strip(" ") or None,
                    int(row["Quantity"]),
                    Decimal(row["UnitPrice"]),
                    datetime.fromisoformat(row["InvoiceDate"]),
                    int(float(row["CustomerID"])) if row["CustomerID"] else None,
                    row["Country"],
                )


def part(sales: Iterable[Sale], key: Callable[[Sale], object]) -> dict:
    """Line items by a key."""
    parts: dict = defaultdict(list)
    for sale in sales:
        parts[key(sale)].append(sale)
    return parts


def sum_daily(sales: set[Sale]) -> Counter:
    return Counter(
        (*key, *sum_amounts(rows), len({row.invoice for row in rows if row.amount > 0}))
        for key, rows in part(sales, lambda sale: (sale.country, sale.day)).items()
    )


def sum_weekly(sales: set[Sale]) -> Counter:
    days = part(sales, lambda sale: (sale.country, sale.day))
    invoices, open_days = Counter(), Counter()
    for (country, _), rows in days.items():
        open_days[country, rows[0].week] += 1
        invoices[country, rows[0].week] += len({row.invoice for row in rows if row.amount > 0})
    return Counter(
        (*key, *sum_amounts(rows), invoices[key], open_days[key])
        for key, rows in part(sales, lambda sale: (sale.country, sale.week)).items()
    )


def sum_amounts(rows: list[Sale]) -> tuple[Decimal, Decimal, Decimal]:
    """Sold, returned, and both."""
    sold = sum((row.amount for row in rows if row.amount > 0), Decimal())
    back = sum((row.amount for row in rows if row.amount < 0), Decimal())
    return sold, back, sold + back


def choose_products(sales: set[Sale]) -> Counter:
    found: Counter = Counter()
    of_shelves = {sale for sale in sales if sale.product[:5].isdigit() and len(sale.product) > 4}
    for week, rows in part(of_shelves, lambda sale: sale.week).items():
        sums = sorted(
            (-sum(row.amount for row in of_one), product, of_one)
            for product, of_one in part(rows, lambda sale: sale.product).items()
        )
        for place, (lost, product, of_one) in enumerate(sums[:BEST], 1):
            name = min((row.description for row in of_one if row.description), default=None)
            many = sum(row.quantity for row in of_one)
            found[week, place, product, name, many, -lost] += 1
    return found


def know_customers(sales: set[Sale]) -> Counter:
    found: Counter = Counter()
    for customer, rows in part(sales, lambda sale: sale.customer).items():
        bought = [row for row in rows if row.amount > 0]
        if customer is not None and bought:
            times, invoices = [row.at for row in bought], {row.invoice for row in bought}
            revenue, many = sum(row.amount for row in rows), len(invoices)
            found[customer, min(times), max(times), many, revenue, many > 1] += 1
    return found


TABLES = {
    "daily": sum_daily,
    "weekly": sum_weekly,
    "top_products": choose_products,
    "repeat_customers": know_customers,
}
"""What each holds, of all line items."""


@dataclass(frozen=True)
class Truth:
    """What there is after each landing. `sales`: each good line item once; `new`: those that the
    landing brought."""

    sales: list[set[Sale]]
    new: list[set[Sale]]

    @classmethod
    def of(cls, landings: list[Landing]) -> "Truth":
        after, seen, new = [], set[Sale](), []
        for landing in landings:
            came = set(read_sales(landing.files)) - seen
            seen |= came
            new.append({sale for sale in came if sale.price >= 0 and sale.quantity})
            after.append((after[-1] if after else set()) | new[-1])
        return cls(after, new)

    @property
    def runs(self) -> range:
        return range(len(self.sales))

    def table(self, name: str, run: int) -> Counter:
        return TABLES[name](self.sales[run]) if run >= 0 else Counter()

    def changed(self, name: str, run: int) -> set:
        """The groups of which a run finds other rows than there were."""
        before, after = (self.table(name, number) for number in (run - 1, run))
        at = GROUP[name]
        return {row[at] for row in ((before - after) | (after - before))}

    def touched(self, name: str, run: int) -> set:
        """The groups to which rows belong that came with a run."""
        if name == "weekly":
            days = self.changed("daily", run)
            return set(map(begin_week, days))
        tell = {"daily": "day", "top_products": "week", "repeat_customers": "customer"}[name]
        return {getattr(sale, tell) for sale in self.new[run]}
