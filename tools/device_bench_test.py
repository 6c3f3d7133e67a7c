#!/usr/bin/env python3
"""Tests of tools/device_bench.py: what programs print becomes rows of a ledger."""
import unittest

import device_bench


def of_preset(name, moe, overruns=0.001):
    same = {"median": moe, "low": moe, "high": moe}
    return {"preset": name, "runs": 5, "tpot_s": same,
            "same_tokens": True,
            "device": {"moe_s": same, "predicted_over_measured": {"median": 0.98, "low": 0.97, "high": 1.0},
                       "overrun_share": {"median": overruns, "low": 0, "high": overruns}}}


def of_run(step, asked=60, paused=0):
    return {"placement": {"decode": {"tpot_s": step}}, "device": {"overrun_share": 0.002},
            "experts": {"device": {"prefetch": {"asked": asked, "paused": paused, "sent": 40, "used": 30, "wasted": 8}}}}


class Rows(unittest.TestCase):
    def by_measure(self, rows, case, measure):
        found = [row for row in rows if row["case"].endswith(case) and row["measure"].startswith(measure)]
        self.assertEqual(len(found), 1, (case, measure))
        return found[0]

    def test_presets_are_held_against_the_best_baseline(self):
        result = {"texts_equal": True, "device": {"same_ranking": True},
                  "presets": [of_preset("cpu-moe", 3.0), of_preset("gpu-lru", 2.0), of_preset("dali", 1.0, overruns=0.02)]}
        rows = device_bench.compared_rows(result, "case", 0.1)
        self.assertEqual(self.by_measure(rows, "dali", "experts, x")["median"], 2)
        self.assertEqual(self.by_measure(rows, "cpu-moe", "experts, x")["median"], 2 / 3)
        self.assertEqual(self.by_measure(rows, "gpu-lru", "step, predicted")["low"], 0.97)
        self.assertIn("NOT VALID", self.by_measure(rows, "dali", "s of experts")["note"])
        self.assertNotIn("NOT VALID", self.by_measure(rows, "gpu-lru", "s of experts")["note"])

    def test_another_ranking_is_said(self):
        result = {"texts_equal": True, "device": {"same_ranking": False}, "presets": [of_preset("dali", 1.0)]}
        self.assertIn("OTHER", self.by_measure(device_bench.compared_rows(result, "case", 0), "dali", "step, predicted")["measure"])

    def test_deciding_is_a_share_of_its_own_run(self):
        rows = device_bench.deciding_rows([{"policy_s": 0.02, "seconds": 2.0}, {"policy_s": 0.01, "seconds": 4.0}], 10, "case", 0.5)
        share = self.by_measure(rows, "case", "share of a step")
        self.assertEqual((share["low"], share["high"]), (0.0025, 0.01))
        self.assertEqual(self.by_measure(rows, "case", "s of deciding")["high"], 0.002)

    def test_prefetches_are_held_against_none_turn_by_turn(self):
        runs = {"none": [of_run(1.0), of_run(2.0), of_run(4.0)], "raw": [of_run(0.5), of_run(2.0), of_run(3.0, paused=15)]}
        rows = device_bench.prefetch_rows(runs, "case", 0)
        ratio = self.by_measure(rows, "raw", "s a step, x without")
        self.assertEqual((ratio["median"], ratio["low"], ratio["high"]), (0.75, 0.5, 1.0))
        self.assertEqual(self.by_measure(rows, "raw", "share of layers")["low"], 0.75)
        self.assertEqual(self.by_measure(rows, "raw", "share of prefetched experts computed")["median"], 0.75)

    def test_rungs_are_held_against_the_base_of_their_reading(self):
        results = {"loaded": {"presets": [of_preset("s-base", 4.0), of_preset("smoe", 1.0)]},
                   "host": {"presets": [of_preset("s-base", 2.0), of_preset("smoe", 1.0, overruns=0.02)]}}
        rows = device_bench.ladder_rows(results, "case", 0)
        self.assertEqual(self.by_measure(rows, "loaded; smoe", "s a step, x")["median"], 0.25)
        self.assertEqual(self.by_measure(rows, "host; smoe", "s a step, x")["median"], 0.5)
        self.assertEqual(self.by_measure(rows, "host; smoe", "step, predicted")["high"], 1.0)
        self.assertIn("NOT VALID", self.by_measure(rows, "host; smoe", "s a step, x")["note"])
        self.assertNotIn("NOT VALID", self.by_measure(rows, "loaded; smoe", "s a step, x")["note"])


if __name__ == "__main__":
    unittest.main()
