// The figures of a run as JSON. Names are those of the table for people (docs/counters.md).
#pragma once

#include <optional>
#include <vector>

#include "base/json/json.h"

namespace sluice::engine {
struct GenerateResult;
struct RunReport;
}  // namespace sluice::engine

namespace sluice::app {

Json io_json(const engine::RunReport& run);       // {bytes_read, reads, seconds}
Json experts_json(const engine::RunReport& run);  // {accesses, hits, …, prefill{}, decode{}}
// The part of experts_json about computation that differs from the exact model's: {routing{}, and slices{}
// or, with a limit, limit{}}.
Json losses_json(const engine::RunReport& run);

// What is predicted of decoding: {bytes_per_token, wasted_bytes_per_token, routing, tok_s}. REQUIRES: no
// experts in slices. The same with what it means that it came otherwise: bytes_hint, waste_hint,
// speed_hint.
Json forecast_json(const engine::RunReport& run);
Json forecast_json(const engine::RunReport& run, const std::vector<engine::GenerateResult>& results);

struct RunTimes {
  double load_s = 0;                                 // the whole start up to here
  double open_s = 0, tokenizer_s = 0, prompt_s = 0;  // parts of it, besides engine::StartTimes
  std::optional<double> first_token_s;               // empty: no token came
};
Json start_json(const engine::RunReport& run, const RunTimes& times);  // stages of load_s

}  // namespace sluice::app
