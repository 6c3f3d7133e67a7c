// The table after a generation. Names are the same as in the JSON (docs/counters.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::engine {
struct GenerateRequest;
struct GenerateResult;
struct RunReport;
}  // namespace sluice::engine

namespace sluice::app {

struct RunTimes;

std::string tokens_text(std::uint64_t tokens);  // "1 token", "2 tokens"

// "predicted 1.20 MiB and 300 KiB in vain (assumed routing)", or why nothing is predicted.
std::string predicted_bytes_text(const engine::RunReport& run);

// In lines of at most `columns`.
std::string run_table(const engine::RunReport& run, const std::vector<engine::GenerateRequest>& requests,
                      const std::vector<engine::GenerateResult>& results, const RunTimes& times,
                      std::size_t columns);

}  // namespace sluice::app
