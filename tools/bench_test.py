#!/usr/bin/env python3
"""Tests of tools/bench.py and tools/ledger.py: a run of made-up benchmark programs goes into a ledger, and losses are found."""
import os
import subprocess
import sys
import tempfile
import unittest

import bench
import ledger

TOOLS = os.path.dirname(os.path.abspath(__file__))
FACTS = {"cpu": "AMD EPYC", "family": "25", "model": "17", "features": ["avx2", "avx512f", "avx512_vbmi2", "avx512_bf16"], "cores": 2,
         "memory_gib": 24, "kernel": "6.1"}


def result_of(seconds, share, bits=2.5):
    """One run of two programs: a limit, a row that is held against it, and a size."""
    rows = [{"name": "read, 8 streams, 2T", "rounds": 3, "bytes": 4e9, "seconds": {"median": 0.1, "low": 0.1, "high": 0.1}},
            {"name": "matmul m=1,  2T", "rounds": 3, "bytes": 2e9, "flops": 1e9, "limit": "read, 2T",
             "seconds": {"median": seconds, "low": seconds, "high": seconds}, "share": {"median": share, "low": share, "high": share}}]
    sizes = [{"name": "size: native", "figures": {"bits": bits}}]
    return {"name": bench.machine_name(FACTS), "date": "2026-01-02T03:04:05", "commit": "abc", "load": 0.1, "machine": FACTS,
            "programs": [{"program": "kernels", "rows": rows}, {"program": "trace", "rows": sizes}]}


class Ledger(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "machine.csv")

    def test_rows_say_bytes_rate_limit_share_and_whether_the_answer_was_checked(self):
        limit, product, size = bench.ledger_rows(result_of(0.1, 0.5))
        self.assertEqual((product["case"], product["measure"], product["median"]), ("matmul m=1, 2T", "s", 0.1))
        self.assertAlmostEqual(product["gb_s"], 20)
        self.assertAlmostEqual(product["gflop_s"], 10)
        self.assertAlmostEqual(product["limit_rate"], 40)
        self.assertEqual((product["share"], product["checked"]), (0.5, "yes"))
        self.assertIsNone(limit["limit_rate"])
        self.assertEqual((size["measure"], size["median"], size["checked"]), ("bits", 2.5, None))

    def test_what_is_appended_is_read_again_and_what_was_there_stays(self):
        first, second = (list(bench.ledger_rows(result_of(s, 0.5))) for s in (0.1, 0.2))
        ledger.append(self.path, first)
        ledger.append(self.path, second)
        rows = ledger.read(self.path)
        self.assertEqual([row["median"] for row in rows if row["case"] == "matmul m=1, 2T"], [0.1, 0.2])
        self.assertEqual(len(rows), 6)
        self.assertIsNone(rows[0]["share"])

    def test_a_row_lost_if_its_share_is_below_the_last_runs_spread(self):
        old, slower, noisy, larger = (list(bench.ledger_rows(r)) for r in
                                      (result_of(0.1, 0.5), result_of(0.1, 0.4), result_of(0.9, 0.5), result_of(0.1, 0.5, bits=2.6)))
        ledger.append(self.path, old)
        kept, date = bench.last_run(self.path)
        self.assertEqual(date, "2026-01-02T03:04:05")
        self.assertEqual(list(bench.losses(kept, slower)), ["kernels: matmul m=1, 2T: 0.50 → 0.40 of read, 2T"])
        self.assertEqual(list(bench.losses(kept, noisy)), [])  # a noisy minute hits the limit, too
        self.assertEqual(list(bench.losses(kept, larger)), ["trace: size: native: 2.5 → 2.6 bits"])

    def test_rows_copied_from_pages_are_no_run(self):
        rows = list(bench.ledger_rows(result_of(0.1, 0.5)))
        copied = [{**row, "date": date} for row in rows for date in (None, "2026-12-31", "not recorded")]
        ledger.append(self.path, copied)
        self.assertEqual(bench.last_run(self.path), ([], None))
        ledger.append(self.path, rows)
        kept, date = bench.last_run(self.path)
        self.assertEqual((len(kept), date), (len(rows), "2026-01-02T03:04:05"))

    def test_nothing_is_appended_to_a_file_that_is_no_ledger(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("a,b\n1,2\n")
        with self.assertRaisesRegex(ledger.Malformed, "line 1: expected the columns date,.*found a,b"):
            ledger.append(self.path, [])
        with self.assertRaisesRegex(ledger.Malformed, "columns that a ledger has not: speed"):
            ledger.append(self.path + "2", [{"speed": 1}])

    def test_a_cell_that_is_no_number_is_named(self):
        ledger.append(self.path, [{"case": "x", "median": "fast"}])
        with self.assertRaisesRegex(ledger.Malformed, "line 2: median: expected a number, found fast"):
            ledger.read(self.path)

    def test_a_new_machine_gets_a_row_once(self):
        rows = list(bench.ledger_rows(result_of(0.1, 0.5)))
        for _ in range(2):
            bench.keep(self.folder.name, FACTS, rows)
        machines = ledger.read(os.path.join(self.folder.name, "machines.csv"), ledger.MACHINE_COLUMNS)
        self.assertEqual([(row["machine"], row["title"]) for row in machines],
                         [("zen4-avx512bf16-2cores-24gib", "Zen 4, 2 cores, AVX-512 with BF16")])
        self.assertEqual(ledger.title("zen4-avx512bf16-2cores-24gib", self.folder.name), "Zen 4, 2 cores, AVX-512 with BF16")


    def test_a_run_of_a_changed_tree_stays_out_of_the_ledger(self):
        rows = list(bench.ledger_rows({**result_of(0.1, 0.5), "commit": "abc-changed"}))
        bench.keep(self.folder.name, FACTS, rows)
        self.assertEqual(os.listdir(self.folder.name), ["zen4-avx512bf16-2cores-24gib-changed.csv"])


class Program(unittest.TestCase):
    def test_a_run_is_printed_and_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in bench.PROGRAMS:
                program = os.path.join(folder, f"sluice_bench_{name}")
                row = '{"name": "read, 2T", "rounds": 3, "bytes": 4e9, "seconds": {"median": 0.1, "low": 0.09, "high": 0.2}}'
                with open(program, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\nprintf '%s' '{{\"rows\": [{row}]}}' >\"$2\"\n")
                os.chmod(program, 0o755)
            command = [sys.executable, os.path.join(TOOLS, "bench.py"), "--bin", folder, "--results", os.path.join(folder, "results"),
                       "--dir", folder]
            first, second = (subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(2))
            self.assertEqual((first.returncode, first.stderr), (0, ""))
            self.assertIn("no earlier run", first.stdout)
            self.assertIn("40.00 GB/s", first.stdout)
            self.assertIn("no row lost more than its spread" if "-changed" not in second.stdout else "kept in", second.stdout)
            kept = [name for name in os.listdir(os.path.join(folder, "results")) if name != "machines.csv"]  # -changed or not
            self.assertEqual(len(kept), 1)
            rows = ledger.read(os.path.join(folder, "results", kept[0]))
            self.assertEqual(len(rows), 2 * len(bench.PROGRAMS))
            self.assertEqual({row["command"] for row in rows}, {f"make bench, {name}" for name in bench.PROGRAMS})


class Kept(unittest.TestCase):
    def test_every_ledger_of_the_repository_is_well_formed_and_its_machines_are_known(self):
        machines = {row["machine"] for row in ledger.read(os.path.join(ledger.RESULTS, "machines.csv"), ledger.MACHINE_COLUMNS)}
        names = [name for name in os.listdir(ledger.RESULTS) if name.endswith(".csv") and name != "machines.csv"]
        self.assertTrue(names)
        for name in names:
            for row in ledger.read(os.path.join(ledger.RESULTS, name)):
                self.assertIn(row["machine"], machines, name)
                self.assertTrue(row["command"] and row["case"] and row["measure"], (name, row))


if __name__ == "__main__":
    unittest.main()
