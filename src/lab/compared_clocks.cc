#include "lab/compared_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/duration.h"
#include "base/text_table.h"
#include "base/wrapped_text.h"
#include "lab/compare.h"

namespace sluice::lab {
namespace {

// Contenders from the shortest step to the longest.
std::vector<std::size_t> ranking(const Comparison& comparison, double RunFigures::*step) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < comparison.contenders.size(); ++i)
    if (has_clocks(comparison.contenders[i])) order.push_back(i);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return comparison.contenders[i].of(step).median; });
  return order;
}

}  // namespace

bool has_clocks(const Compared& compared) { return compared.of(&RunFigures::predicted_tpot_s).high > 0; }

Json clocks_json(const Compared& compared) {
  return {{"moe_s", to_json(compared.of(&RunFigures::moe_s))},
          {"predicted_tpot_s", to_json(compared.of(&RunFigures::predicted_tpot_s))},
          {"predicted_moe_s", to_json(compared.of(&RunFigures::predicted_moe_s))},
          {"predicted_over_measured", to_json(compared.of(&RunFigures::predicted_ratio))},
          {"overrun_share", to_json(compared.of(&RunFigures::overrun_share))}};
}

bool same_ranking(const Comparison& comparison) {
  return ranking(comparison, &RunFigures::tpot_s) == ranking(comparison, &RunFigures::predicted_tpot_s);
}

std::string clocks_table(const Comparison& comparison, std::size_t columns) {
  std::vector<std::vector<std::string>> rows = {
      {"preset", "step", "predicted", "by measured", "experts", "predicted", "overruns"}};
  for (const Compared& it : comparison.contenders) {
    if (!has_clocks(it)) continue;
    const auto time = [&](double RunFigures::*figure) { return format_duration(it.of(figure).median); };
    const Spread ratio = it.of(&RunFigures::predicted_ratio);
    rows.push_back({it.preset, time(&RunFigures::tpot_s), time(&RunFigures::predicted_tpot_s),
                    fmt::format("{:.3f} ({:.3f}-{:.3f})", ratio.median, ratio.low, ratio.high),
                    time(&RunFigures::moe_s), time(&RunFigures::predicted_moe_s),
                    fmt::format("{:.2f} %", 100 * it.of(&RunFigures::overrun_share).high)});
  }
  return '\n' + text_table(rows, columns) +
         wrapped_text(
             fmt::format("a decode step and its experts, as measured and by the modelled clock, which puts "
                         "the presets in {} order{}",
                         same_ranking(comparison) ? "the same" : "ANOTHER",
                         comparison.device_is_played
                             ? fmt::format("; overruns: the most of all runs by which the device was slower "
                                           "than its specification; dilated x{:g}",
                                           comparison.dilation)
                             : ""),
             columns) +
         '\n';
}

}  // namespace sluice::lab
