"""A format reads in Spark exactly the texts that Python's strptime reads."""

import random
from datetime import datetime

import pytest
from sluice.quality.strptime import NotTranslatable, parses

pytestmark = pytest.mark.usefixtures("compiled")

FORMATS = [
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S%z",
    "%d/%m/%y",
    "%m%d%Y",
    "%d%m%y",
    "%H%M",
    "%S%f",
    "%d %m",
    "%m-%d",
    "%%%Y",
    "%f%S",
    "%y%m%d%H%M%S",
]


def make_texts(pattern: str, rng: random.Random, count: int) -> list[str]:
    """Texts of a format, half of them bent.

    A character is changed, dropped, doubled, or put in another script.
    """
    texts = []
    for _ in range(count):
        moment = datetime(
            rng.choice([1, 1900, 1999, 2000, 2023, 2024]),
            rng.randint(1, 12),
            rng.randint(1, 28),
            rng.randint(0, 23),
            rng.randint(0, 59),
            rng.randint(0, 59),
        )
        text = moment.strftime(pattern.replace("%Y", "YEAR")).replace("YEAR", f"{moment.year:04d}")
        text += (
            rng.choice(["Z", "+0130", "-23:59", "+24:00", "z", "+01:00:30", "+0100:30"])
            if "%z" in pattern
            else ""
        )
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            at = rng.randrange(len(text) + 1)
            text = (
                text[:at]
                + rng.choice(
                    [
                        "",
                        "0",
                        "2",
                        "29",
                        "31",
                        "6",
                        "60",
                        " ",
                        "  ",
                        "\n",
                        "\u00a0",
                        "\x1c",
                        "٣",
                        "４",
                        "𝟐",
                        "T",
                        "t",
                        "-",
                        ":",
                        "00",
                    ]
                )
                + text[at + rng.randint(0, 2) :]
            )
        texts.append(text)
    return texts


def reads(text: str, pattern: str) -> bool:
    try:
        datetime.strptime(text, pattern)
    except ValueError:
        return False
    return True


def test_spark_reads_what_python_reads(spark):
    rng = random.Random(2)
    texts = {pattern: make_texts(pattern, rng, 700) for pattern in FORMATS}
    rows = list(zip(*texts.values(), strict=True))
    frame = spark.createDataFrame(rows, [f"c{n}" for n in range(len(FORMATS))]).coalesce(1)
    found = frame.select(
        *[parses(frame[f"c{n}"], pattern) for n, pattern in enumerate(FORMATS)]
    ).collect()
    differing = [
        (pattern, row[n], answers[n])
        for row, answers in zip(rows, found, strict=True)
        for n, pattern in enumerate(FORMATS)
        if reads(row[n], pattern) != answers[n]
    ]
    assert differing == []
    shares = [sum(answers[n] for answers in found) / len(found) for n in range(len(FORMATS))]
    assert all(0.2 < share < 0.95 for share in shares), shares


@pytest.mark.parametrize(
    "pattern", ["%d %B %Y", "%I:%M %p", "%j %Y", "%Y %y", "%Y-%m-%d at %H", "%z %Y"]
)
def test_a_format_with_parts_only_python_reads_is_not_translated(spark, pattern):
    with pytest.raises(NotTranslatable):
        parses(spark.range(1)["id"], pattern)
