#include "commands/chat/turn_statistics.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/rate.h"
#include "device/accountant.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "report/fitted_line.h"
#include "report/ratios.h"

namespace sluice::app {
namespace {

std::string speed(double tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? fmt::format(", {:.1f} tok/s", tokens / seconds) : "";
}

}  // namespace

TurnStatistics::TurnStatistics(const engine::RunReport& run) : run_(run), begin_(counts()) {}

TurnStatistics::Counts TurnStatistics::counts() const {
  const engine::ExpertStatistics total = run_.statistics.total();
  const engine::DiskReport disk = run_.disk();
  return {static_cast<double>(total.accesses), static_cast<double>(total.hits), disk.seconds,
          disk.bytes_read};
}

TurnStatistics::Counts TurnStatistics::since_begin() const {
  const Counts now = counts();
  return {now.accesses - begin_.accesses, now.hits - begin_.hits, now.disk_s - begin_.disk_s,
          now.read - begin_.read};
}

std::string TurnStatistics::line(std::size_t prompt_tokens, const engine::GenerateResult& result,
                                 std::size_t columns) const {
  const Counts turn = since_begin();
  const auto fresh = static_cast<double>(prompt_tokens - result.statistics.cached);
  const auto tokens = static_cast<double>(result.tokens.size());
  const std::string prompt = result.statistics.cached == 0
                                 ? fmt::format("{} new", fresh)
                                 : fmt::format("{} new + {} kept", fresh, result.statistics.cached);
  return fitted_line(
      {{prompt + speed(fresh, result.prefill_s), 2},
       {fmt::format("{} tokens", tokens) + speed(tokens - 1, result.decode_s), 0},
       {result.tokens.empty() ? "" : "first after " + format_duration(result.prefill_s), 4},
       {result.statistics.drafts.drafted > 0
            ? fmt::format("{} of {} drafts accepted", result.statistics.drafts.accepted,
                          result.statistics.drafts.drafted)
            : "",
        6},
       {turn.accesses > 0 ? fmt::format("hits {:.0f} %", 100 * turn.hits / turn.accesses) : "", 3},
       {turn.read > 0 ? fmt::format("{} read, {}", format_bytes(turn.read),
                                    format_rate(ratio(static_cast<double>(turn.read), turn.disk_s)))
                      : "nothing read",
        5},
       {fmt::format("{} of {}", format_bytes(run_.accountant.used()), format_bytes(run_.memory.budget)), 1}},
      " · ", columns);
}

Json TurnStatistics::json(std::size_t prompt_tokens, const engine::GenerateResult& result) const {
  const Counts turn = since_begin();
  return {{"prompt_tokens", prompt_tokens},
          {"kept_tokens", result.statistics.cached},
          {"tokens", result.tokens.size()},
          {"prefill_s", result.prefill_s},
          {"decode_s", result.decode_s},
          {"draft_n", result.statistics.drafts.drafted},
          {"draft_n_accepted", result.statistics.drafts.accepted},
          {"hits", turn.accesses > 0 ? Json(turn.hits / turn.accesses) : Json()},
          {"bytes_read", turn.read}};
}

}  // namespace sluice::app
