#!/usr/bin/env python3
"""Puts the tables of a report into docs/performance.md.

    target/release/busbar bench all --out report && bench/tables.py report/report.md [--write docs/performance.md]

The tables are those of the report, without the rows of published figures. Without --write they are printed. A section whose part the report lacks stays as it is."""
import argparse, itertools, pathlib, sys

from common import write

# The section of the document, how the heading of the report begins, and how the head of the table does.
TABLES = [
    ("machine", "## How this was measured", "| method"),
    ("budgets", "## Budgets", "| work"),
    ("round 2010", "## Round of 2010", "| system"),
    ("round 6.5", "## Round 6.5", "| system"),
    ("added latency", "## Round 6.5", "| scenario | system"),
    ("evaluation", "## Evaluation", "| scenario"),
    ("generator", "## The load generator", "| connections"),
]


def squeezed(line):
    return " ".join(line.split())


def table(report, heading, head):
    """The first table with that head below that heading; `None`: the report has none."""
    lines = iter(report.splitlines())
    below = itertools.dropwhile(lambda line: not line.startswith(heading), lines)
    next(below, None)
    part = itertools.takewhile(lambda line: not line.startswith("## "), below)
    rows = itertools.dropwhile(lambda line: not squeezed(line).startswith(head), part)
    rows = itertools.takewhile(lambda line: line.startswith("|"), rows)
    return "\n".join(line for line in rows if "(published" not in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="report.md")
    parser.add_argument("--write", metavar="FILE", help="the document whose sections are written")
    arguments = parser.parse_args()
    report = pathlib.Path(arguments.report).read_text()
    for section, heading, head in TABLES:
        text = table(report, heading, head)
        if not text:
            print(f"{section}: not in this report", file=sys.stderr)
        elif arguments.write:
            write(arguments.write, section, text)
        else:
            print(f"\n{section}\n\n{text}")


main()
