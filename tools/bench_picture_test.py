#!/usr/bin/env python3
"""The committed picture is what the ledger gives, and a ledger without a bar is refused."""
import os
import subprocess
import sys
import unittest

import bench_picture

TOOLS = os.path.dirname(os.path.abspath(__file__))


class Picture(unittest.TestCase):
    def test_the_committed_picture_is_what_the_ledger_gives(self):
        done = subprocess.run([sys.executable, os.path.join(TOOLS, "bench_picture.py"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_missing_row_is_named(self):
        with self.assertRaisesRegex(SystemExit, "has no row of .* for: 8 GB; llama.cpp, as found"):
            bench_picture.rates([])

    def test_a_bar_is_as_high_as_its_rate(self):
        def row(who, rate):
            return {"case": f"x; y; 8 GB; cold; {who}", "median": rate, "low": None, "high": None}
        found = {(budget, who): row(who, 2.0 if who == "Sluice" else 1.0) for budget in bench_picture.BUDGETS for who, _ in bench_picture.WHO}
        bars = [line for line in bench_picture.draw(found, "here").splitlines() if line.startswith("<rect x=") and 'height="12"' not in line]
        heights = [float(bar.split('height="')[1].split('"')[0]) for bar in bars]
        self.assertEqual(len(heights), 12)
        self.assertAlmostEqual(heights[2], 2 * heights[0], delta=0.11)


if __name__ == "__main__":
    unittest.main()
