// What one answer of a chat took.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/json/json.h"
#include "engine/run_report.h"

namespace sluice::engine {
struct GenerateResult;
}  // namespace sluice::engine

namespace sluice::app {

// Figures of an engine as they were before an answer. Thread-compatible; the engine must outlive it.
class TurnStatistics {
 public:
  explicit TurnStatistics(const engine::RunReport& run);
  // "41 new + 212 kept, 3.1 tok/s · 128 tokens, 4.2 tok/s · first after 2.4 s · hits 71 % · …", as much as
  // fits.
  std::string line(std::size_t prompt_tokens, const engine::GenerateResult& result,
                   std::size_t columns) const;
  // {prompt_tokens, kept_tokens, tokens, prefill_s, decode_s, draft_n, draft_n_accepted, hits, bytes_read}
  Json json(std::size_t prompt_tokens, const engine::GenerateResult& result) const;

 private:
  struct Counts {
    double accesses = 0, hits = 0, disk_s = 0;
    Bytes read = 0;
  };
  Counts counts() const;
  Counts since_begin() const;

  const engine::RunReport run_;
  const Counts begin_;
};

}  // namespace sluice::app
