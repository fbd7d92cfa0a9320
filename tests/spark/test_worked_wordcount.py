"""The worked pipeline `wordcount` against plain Python: what the console shows last."""

import re
from collections import Counter
from dataclasses import replace
from itertools import islice

from sluice.demo.wordcount import generate_landings
from sluice.demo.worked import WORKED, run_worked


def count_words(lines: list[str]) -> Counter:
    """The words of the lines that are lines."""
    return Counter(
        word for line in lines if len(line) <= 200 for word in re.findall(r"\w+", line.lower())
    )


def test_the_console_shows_the_counts_of_all_words_and_a_file_is_no_line(
    spark, tmp_path, monkeypatch, capsys
):
    landing = next(generate_landings())
    lines = [line for sent in landing.messages.values() for _, line in sent]
    for seconds in (5, 40):  # a slow machine needs longer until the first rows are there
        once = replace(
            WORKED["wordcount"], generate=lambda: islice(generate_landings(), 1), seconds=seconds
        )
        monkeypatch.setitem(WORKED, "wordcount", once)
        (report,) = run_worked("wordcount", tmp_path / "root", lambda text: None)
        shown = capsys.readouterr().out.split("Batch ")[-1]
        if report.counts.read == len(lines):
            break
    report.check()
    counts = report.counts
    assert (counts.read, counts.rejected, counts.entered) == (len(lines), 1, len(lines) - 1)
    found = {word: int(times) for word, times in re.findall(r"\|\s*([a-z]+)\|\s*(\d+)\|", shown)}
    assert found == count_words(lines)
    long = next(rule for rule in report.steps[0].rules if rule.name == "words_are_short")
    assert (long.outcome, long.samples) == ("failed", ["donaudampfschiff"])
