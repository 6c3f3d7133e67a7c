#include "reproduce/zipmoe/zipmoe_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/plan/options.h"
#include "engine/plan/profile.h"
#include "model/architecture.h"
#include "reproduce/zipmoe/zipmoe_systems.h"

namespace sluice::reproduce {

void add_zipmoe_sections(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report) {
  // Not in the paper's tables: the order that its argument predicts, and the choice of the planner.
  std::string order =
      "By the paper's argument: z-accelerate and z-deepspeed by far the slowest, then z-moe-infinity and "
      "z-basic, "
      "then z-C, then z-C+P. Here, by TPOT in ms:\n\n";
  for (const lab::Comparison& one : results.sweep) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const lab::Compared& it : one.contenders)
      ranked.emplace_back(it.of(&lab::RunFigures::tpot_s).median, it.preset);
    std::ranges::sort(ranked);
    order += fmt::format("- {}: ", format_bytes(one.budget));
    for (std::size_t i = 0; i < ranked.size(); ++i)
      order += fmt::format("{}{} {:.2f}", i > 0 ? " < " : "", ranked[i].second, ranked[i].first * 1e3);
    const lab::Compared& it = one.find(kPlanned);
    if (it.planned)
      order += fmt::format("; planned: F {} C {} S {} E {} of a layer, limit {}", it.planned->slots.f,
                           it.planned->slots.c, it.planned->slots.s, it.planned->slots.e, it.planned->limit);
    order += '\n';
  }
  order += fmt::format("\nTexts of all runs {}.\n",
                       runs.all_same() ? "were equal" : "DIFFERED, which must never be");
  report.sections.push_back({"Expected order", order});
  if (results.replay) report.sections.push_back({"Simulated rows", results.replay->conditions});

  const auto table = [](const lab::Comparison& one) {
    std::string text =
        "| preset | tok/s (least, most) | TTFT s | read per token | hits | CPU s per token | peak | waits "
        "for the disk |\n|---|---|---|---|---|---|---|---|\n";
    for (const lab::Compared& it : one.contenders) {
      const lab::Spread tok_s = it.of(&lab::RunFigures::tok_s);
      text += fmt::format(
          "| {} | {:.2f} ({:.2f}, {:.2f}) | {:.4f} | {} | {:.0f} % | {:.4f} | {} | {} |\n", it.preset,
          tok_s.median, tok_s.low, tok_s.high, it.of(&lab::RunFigures::ttft_s).median,
          format_bytes(static_cast<Bytes>(it.of(&lab::RunFigures::bytes_per_token).median)),
          100 * it.of(&lab::RunFigures::hit_rate).median, it.of(&lab::RunFigures::cpu_s_per_token).median,
          format_bytes(static_cast<Bytes>(it.of(&lab::RunFigures::peak).high)),
          fmt::format("{:.1f} %", 100 * it.of(&lab::RunFigures::wait_share).median));
    }
    return text;
  };
  for (const lab::Comparison& one : results.sweep)
    report.sections.push_back({fmt::format("Budget {}", format_bytes(one.budget)), table(one)});
  report.sections.push_back(
      {fmt::format("Ablation at {}", format_bytes(results.ladder.budget)), table(results.ladder)});
}

}  // namespace sluice::reproduce
