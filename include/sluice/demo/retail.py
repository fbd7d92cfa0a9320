"""Seeded invoices of a shop, one CSV a day: the same seed gives the same bytes.

Three landings: some weeks, then a day, then two. What shops send is in them: credit notes of today,
and such that come days later and name the day of the sale, line items twice in a file and once more
in the next, no customer on a quarter of the invoices, postage and write-offs among the products, a
bad debt at a negative price, and lines that nobody can read.
"""

import csv
import io
import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from operator import attrgetter
from typing import NamedTuple

from .landing import Landing

START = date(2010, 12, 1)
DAYS = (19, 1, 2)
"""Of each landing. On Saturdays the shop is closed."""
HEADER = (
    *("InvoiceNo", "StockCode", "Description", "Quantity"),
    *("InvoiceDate", "UnitPrice", "CustomerID", "Country"),
)
COUNTRIES = ("United Kingdom",) * 6 + ("France", "Germany", "EIRE", "Spain")
_COLOURS = ("WHITE", "RED", "BLUE", "PINK")
_THINGS = ("LANTERN", "TEA CUP", "CAKE TIN", "DOORMAT", "CLOCK, LARGE", "TRAY 9 INCH", "BUNTING")
PRODUCTS = [
    (f"{21700 + n}{'ab'[n % 2] if n % 5 == 0 else ''}", f"{colour} {thing}", (85 + 37 * n) / 100)
    for n, (colour, thing) in enumerate((c, t) for t in _THINGS for c in _COLOURS)
]
"""Code, description and price."""
CUSTOMERS = [(f"{12400 + 13 * n}.0", COUNTRIES[n % len(COUNTRIES)]) for n in range(45)]
_FIRST, _A_DAY = 536365, 60


class Line(NamedTuple):
    """A line item, in the order of the columns."""

    invoice: str
    product: str
    description: str
    quantity: str
    at: str
    price: str
    customer: str
    country: str


def generate_landings(seed: int = 7) -> Iterator[Landing]:
    """What each portion of days brings."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    day, sold, before = START, list[Line](), list[Line]()
    for number in DAYS:
        files, first = {}, day
        for _ in range(number):
            if day.weekday() != 5:
                lines = _sell(rng, day)
                rows = lines + _take_back(rng, day, sold) + _odd_lines(rng, day)
                # Written twice, in this file and by the export of the day before.
                rows += rng.sample(lines, 2) + rng.sample(before, min(2, len(before)))
                files[f"retail/{day}.csv"] = _write_lines(rows)
                sold, before = sold + lines, lines
            day += timedelta(days=1)
        yield Landing(f"{first} to {day - timedelta(days=1)}" if number > 1 else str(first), files)


def _number(day: date, place: int) -> int:
    """Of an invoice or a credit note of a day."""
    return _FIRST + (day - START).days * _A_DAY + place


def _sell(rng: random.Random, day: date) -> list[Line]:
    """The line items of a day's invoices; who lives abroad pays postage."""
    lines: list[Line] = []
    for place in range(rng.randint(8, 14)):
        at = datetime.combine(day, time(8 + place // 2, rng.randrange(60)))
        customer, country = rng.choice(CUSTOMERS)
        customer = customer if rng.random() > 0.25 else ""
        bought = [
            (code, what, rng.choice((1, 2, 6, 12, 24)), price)
            for code, what, price in rng.sample(PRODUCTS, rng.randint(1, 5))
        ]
        bought += [("POST", "POSTAGE", 1, 18.0)] if country != COUNTRIES[0] else []
        lines += [
            Line(f"{_number(day, place)}", c, w, f"{n}", f"{at}", f"{p}", customer, country)
            for c, w, n, p in bought
        ]
    return lines


def _take_back(rng: random.Random, day: date, sold: list[Line]) -> list[Line]:
    """Credit notes for earlier sales: two that are of today, and two that were written on the day
    of the sale and only now sent."""
    lines = []
    for place, line in enumerate(rng.sample(sold, min(4, len(sold)))):
        at = str(datetime.combine(day, time(17, place))) if place < 2 else line.at
        quantity = -rng.randint(1, int(line.quantity))
        invoice = f"C{_number(day, 40 + place)}"
        lines.append(line._replace(invoice=invoice, quantity=f"{quantity}", at=at))
    return lines


def _odd_lines(rng: random.Random, day: date) -> list[Line]:
    """A write-off at no price; on Mondays also what a rule refuses and what nobody can read."""
    at, home = str(datetime.combine(day, time(18, 5))), COUNTRIES[0]
    code, what, price = rng.choice(PRODUCTS)
    lines = [Line(f"{_number(day, 50)}", code, "damaged", "-7", at, "0.0", "", home)]
    if day.weekday() == 0:
        debt = ("B", "Adjust bad debt", "1", at, "-1106.06", "", home)
        lines += [
            Line(f"A{_number(day, 51)}", *debt),
            Line(f"{_number(day, 52)}", code, what, "0", at, f"{price}", "", home),
            Line(f"{_number(day, 53)}", code, what, "a dozen", at, f"{price}", "", home),
        ]
    return lines


def _write_lines(lines: list[Line]) -> bytes:
    """A file of its day, by time as the real ones are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(sorted(lines, key=attrgetter("at")))
    return text.getvalue().encode()
