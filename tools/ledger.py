"""Ledgers of measurements: CSV files below bench/results/, one row a figure. bench/results/README.md says what the columns mean.

`make bench` appends to them, the pages and pictures in docs/ are made of them.
"""
import csv
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "bench/results")
COLUMNS = ["date", "commit", "machine", "command", "case", "measure", "median", "low", "high", "rounds", "bytes", "gb_s", "gflop_s",
           "limit", "limit_rate", "share", "share_low", "share_high", "checked", "note"]
MACHINE_COLUMNS = ["machine", "title", "cpu", "family", "model", "features", "cores", "memory_gib", "kernel", "note"]
NUMBERS = {"median", "low", "high", "rounds", "bytes", "gb_s", "gflop_s", "limit_rate", "share", "share_low", "share_high"}


class Malformed(Exception):
    """A ledger that is not as its README says; the message names file, line, what was expected and what was found."""


def read(path, columns=None):
    """The rows as dictionaries; empty cells are None, numbers are floats. A row of other columns is Malformed."""
    columns = columns or COLUMNS
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        head = next(lines, None)
        if head != columns:
            raise Malformed(f"{path}: line 1: expected the columns {','.join(columns)}, found {','.join(head or [])}")
        rows = []
        for cells in lines:
            if len(cells) != len(columns):
                raise Malformed(f"{path}: line {lines.line_num}: expected {len(columns)} cells, found {len(cells)}")
            row = {column: cell or None for column, cell in zip(columns, cells)}
            for column in NUMBERS.intersection(columns):
                try:
                    row[column] = None if row[column] is None else float(row[column])
                except ValueError:
                    raise Malformed(f"{path}: line {lines.line_num}: {column}: expected a number, found {row[column]}") from None
            rows.append(row)
    return rows


def text(value):
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def append(path, rows, columns=None):
    """Adds rows at the end. The file is written beside and renamed, so that an interruption leaves the old one."""
    columns = columns or COLUMNS
    kept = ""
    if os.path.exists(path):
        read(path, columns)  # nothing is added to a file that is no ledger
        with open(path, newline="", encoding="utf-8") as file:
            kept = file.read()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".partial", "w", newline="", encoding="utf-8") as file:
        file.write(kept)
        lines = csv.writer(file, lineterminator="\n")
        if not kept:
            lines.writerow(columns)
        for row in rows:
            unknown = set(row) - set(columns)
            if unknown:
                raise Malformed(f"{path}: a row has columns that a ledger has not: {', '.join(sorted(unknown))}")
            lines.writerow([text(row.get(column)) for column in columns])
    os.rename(path + ".partial", path)


def title(machine, folder=RESULTS):
    """What a machine is called on pages; the name itself where machines.csv does not know it."""
    path = os.path.join(folder, "machines.csv")
    if os.path.exists(path):
        for row in read(path, MACHINE_COLUMNS):
            if row["machine"] == machine:
                return row["title"]
    return machine
