// The figures of a run, for people and as JSON. Names are the same in both (docs/counters.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/generate.h"

namespace sluice::app {

// {budget, peak, accounted, by_name{}}. `peak` is the more of what the accountant held at most and, where no
// other engine is in the process, what the system counted of the process (engine::measured_peak).
enum class Engines { kOne, kSeveral };
Json memory_json(const engine::RunReport& run, Engines engines = Engines::kOne);
Bytes memory_peak(const engine::RunReport& run, Engines engines = Engines::kOne);
Json io_json(const engine::RunReport& run);       // {bytes_read, reads, seconds}
Json experts_json(const engine::RunReport& run);  // {accesses, hits, …, prefill{}, decode{}}
// The part of experts_json about computation that differs from the exact model's: {routing{}, and slices{}
// or, with a limit, limit{}}.
Json losses_json(const engine::RunReport& run);

// "process 9.1 MiB, dense 7.3 MiB, …": the largest value of each name.
std::string memory_line(const engine::RunReport& run);

// The current value of each name in MiB without units, in at most so many columns: "MiB: process 9.1 dense
// 7.3 …"; leaves out the smallest, with "…" at the end.
std::string memory_line_short(const engine::RunReport& run, std::size_t columns);

// What is predicted of decoding: {bytes_per_token, wasted_bytes_per_token, routing, tok_s}. REQUIRES: no
// experts in slices. The same with what it means that it came otherwise: bytes_hint, waste_hint,
// speed_hint.
Json forecast_json(const engine::RunReport& run);
Json forecast_json(const engine::RunReport& run, const std::vector<engine::GenerateResult>& results);
// "predicted 1.20 MiB and 300 KiB in vain (assumed routing)". REQUIRES: no experts in slices.
std::string predicted_bytes_text(const engine::RunReport& run);

// One line per layer, one character per expert: F in full, c packed, · on disk; coloured if `colour`.
std::string residency_picture(const engine::RunReport& run, bool colour, std::size_t columns);

struct ReportRow {
  std::string_view name;
  std::string text;
};
// What was computed otherwise than by the exact model, and how often; empty if nothing was.
std::vector<ReportRow> loss_rows(const engine::RunReport& run);

struct RunTimes {
  double load_s = 0;                                 // the whole start up to here
  double open_s = 0, tokenizer_s = 0, prompt_s = 0;  // parts of it, besides engine::StartTimes
  std::optional<double> first_token_s;               // empty: no token came
};
Json start_json(const engine::RunReport& run, const RunTimes& times);  // stages of load_s
// The table after a generation, in lines of at most `columns`.
std::string run_table(const engine::RunReport& run, const std::vector<engine::GenerateRequest>& requests,
                      const std::vector<engine::GenerateResult>& results, const RunTimes& times,
                      std::size_t columns);

}  // namespace sluice::app
