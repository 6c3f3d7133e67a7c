#include "reproduce/slicemoe/slicemoe_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/setting.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"
#include "reproduce/slicemoe/slicemoe.h"
#include "reproduce/slicemoe/slicemoe_trained_rows.h"

namespace sluice::reproduce {
namespace {

using experts::InitialSlices;

std::string gigabytes(Bytes bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9); }

// "1.20 to 1.35×"
template <class Cells, class Value>
std::string range(const Cells& cells, Value&& value) {
  double least = 1e300, most = -1e300;
  for (const auto& cell : cells) {
    least = std::min(least, value(cell));
    most = std::max(most, value(cell));
  }
  return fmt::format("{:.2f} to {:.2f}×", least, most);
}

class SlicemoeRows {
 public:
  SlicemoeRows(const SlicemoeResults& results, Report& report)
      : results_(results),
        report_(report),
        first_(results.synthetic.front()),
        routing_(results.recorded ? *results.recorded : first_.routing),
        trained_(results.trained ? &*results.trained : nullptr) {}

  void add() {
    report_.rows.push_back(quantiser_row(trained_));
    report_.rows.push_back(miss_rate_row(trained_));
    hot();
    report_.rows.push_back(pareto_row(trained_));
    systems();
    starts();
    critical();
    if (trained_ != nullptr) {
      for (ReportSection& section : trained_sections(*trained_))
        report_.sections.push_back(std::move(section));
      for (ReportPicture& picture : trained_pictures(*trained_))
        report_.pictures.push_back(std::move(picture));
    }
    routing_section();
    reserve_section();
    router_section();
    for (const SlicemoeResults::Synthetic& one : results_.synthetic) systems_section(one);
    starts_section(routing_, routing_.starts, "the model's own routing, no limit");
    for (const SlicemoeResults::Synthetic& one : results_.synthetic)
      starts_section(one.routing, one.limited_starts, "cache-prior within 5 %");
  }

 private:
  // `measured`: what a trained model adds; may be empty.
  void row(std::string id, std::string quantity, std::string paper, std::string ours, std::string note,
           const std::string& measured = "") {
    std::vector<Evidence> evidence = {Evidence::kReplay};
    if (!measured.empty()) {
      ours += "; " + measured;
      evidence.push_back(Evidence::kRun);
    }
    report_.rows.push_back({std::move(id),
                            std::move(quantity),
                            std::move(paper),
                            std::move(ours),
                            std::move(evidence),
                            std::move(note),
                            {}});
  }

  static std::string hot_text(const RoutingResults& routing) {
    const auto at = std::ranges::find(routing.overlap, 16u, &HotOverlap::hottest);
    return fmt::format("{:.0f} % by the 16 hottest of the prompt (best choice {:.0f} %, by chance {:.0f} %)",
                       100 * at->prompt, 100 * at->best, 100 * at->chance);
  }

  void hot() {
    std::string ours = hot_text(routing_);
    if (results_.recorded) ours += "; synthetic " + hot_text(first_.routing);
    row("L-F3", "overlap of the prompt's hottest experts with those of the first decode steps",
        "figure: they overlap", ours,
        fmt::format(
            "share of the requests of the first {} steps that so many experts of each layer cover; {}",
            kEarlySteps, routing_.source),
        trained_ == nullptr ? "" : reproduce::hot_text(*trained_));
  }

  void systems() {
    std::string ours;
    for (const SlicemoeResults::Synthetic& one : results_.synthetic) {
      const auto pair = [&](const auto& joules, const auto& seconds) {
        return range(one.systems, joules) + ", " + range(one.systems, seconds);
      };
      ours += fmt::format(
          "{}{} at equal miss rate {} (behind the exempt steps {}); at equal routing loss {}; at the model's "
          "own routing {}",
          ours.empty() ? "" : "; ", one.model,
          pair([](const SystemCell& c) { return c.high.joules / c.slices.joules; },
               [](const SystemCell& c) { return c.high.seconds / c.slices.seconds; }),
          pair([](const SystemCell& c) { return c.high.limited_joules / c.slices.limited_joules; },
               [](const SystemCell& c) { return c.high.limited_seconds / c.slices.limited_seconds; }),
          pair([](const SystemCell& c) { return c.equal_loss.joules / c.slices.joules; },
               [](const SystemCell& c) { return c.equal_loss.seconds / c.slices.seconds; }),
          pair([](const SystemCell& c) { return c.free_high.joules / c.free_slices.joules; },
               [](const SystemCell& c) { return c.free_high.seconds / c.free_slices.seconds; }));
    }
    row("L-F9",
        "decode energy reduction; speed-up of slices by criticality with warm-up against Cache-Prior at high "
        "precision",
        "at equal accuracy: DeepSeek 2.37×, 1.81×; Qwen 2.85×, 1.64×", ours,
        "misses limited to 5 % of bytes in both (hard, λ = 0); ranges over 1.8, 2.4, 3.6 GB and MAT84, "
        "MAT63, MAT42. "
        "Accuracy "
        "cannot be replayed. At an equal miss rate both may read the same bytes from Flash, for that rate is "
        "normalised by high-precision bytes: what is left is DRAM, and the 10 steps of an answer that no "
        "limit "
        "counts. At equal routing loss (an equal share of the scores of the model's own experts goes to "
        "others) Cache-Prior needs a higher limit, so more of Flash; what low precision costs in accuracy is "
        "not in it. The model's own routing: neither has a limit, and nothing is lost by routing. Equal "
        "perplexity: runs of the trained model, slices within 5 %, Cache-Prior at the limit at which it "
        "loses as "
        "much; the machine's equations on what the runs read and computed",
        trained_ == nullptr ? "" : equal_accuracy_text(*trained_));
  }

  static std::string start_text(const std::vector<StartCell>& cells) {
    return fmt::format(
        "empty {}, {}; last-layer {}, {}; random {}, {}",
        range(cells, [](const StartCell& c) { return c.energy_ratio(InitialSlices::kEmpty); }),
        range(cells, [](const StartCell& c) { return c.time_ratio(InitialSlices::kEmpty); }),
        range(cells, [](const StartCell& c) { return c.energy_ratio(InitialSlices::kLastLayer); }),
        range(cells, [](const StartCell& c) { return c.time_ratio(InitialSlices::kLastLayer); }),
        range(cells, [](const StartCell& c) { return c.energy_ratio(InitialSlices::kRandom); }),
        range(cells, [](const StartCell& c) { return c.time_ratio(InitialSlices::kRandom); }));
  }
  static std::string early_text(const std::vector<StartCell>& cells) {
    const auto ratio = [&](double SystemFigures::*figure) {
      return range(cells, [&](const StartCell& c) {
        return c.early[static_cast<std::size_t>(InitialSlices::kEmpty)].*figure /
               c.early[static_cast<std::size_t>(InitialSlices::kWarmup)].*figure;
      });
    };
    return ratio(&SystemFigures::joules) + ", " + ratio(&SystemFigures::seconds);
  }

  void starts() {
    std::string ours = start_text(routing_.starts);
    ours += fmt::format("; within 5 %, {}: {}", first_.model, start_text(first_.limited_starts));
    row("L-F10", "predicted warm-up against other initial states: decode energy, time", "empty 2.31×, 1.96×",
        ours,
        fmt::format(
            "times that of pcw over all {} decode tokens, ranges over caches and slices; {}, the "
            "model's own routing. Empty against pcw in the first {} steps of an answer: {}. An empty "
            "cache is full again after some tens of steps, so that the longer the answer, the less it "
            "matters what it began with",
            routing_.decode_tokens, routing_.source, kEarlySteps, early_text(routing_.starts)));
  }

  void critical() {
    std::string ours, others;
    const auto text = [](const CriticalShares& one) {
      std::string shares;
      for (std::size_t count = 0; count <= one.most(); ++count)
        shares += fmt::format("{}{}: {:.1f} %", count > 0 ? ", " : "", count, 100 * one.shares[count]);
      return fmt::format("{} (mean {:.2f})", shares, one.mean());
    };
    for (const CriticalShares& one : routing_.critical)
      if (one.theta == experts::CriticalRule().theta)
        ours = fmt::format("0 to {}; ", one.most()) + text(one);
      else
        others += fmt::format("{}θ {}: {}", others.empty() ? "" : "; ", one.theta, text(one));
    row("L-crit", "critical experts per token", "0–2", ours,
        fmt::format("share of the tokens of a layer with so many at θ = {}, decode steps; {}. {}",
                    experts::CriticalRule().theta, routing_.source, others),
        trained_ == nullptr ? "" : critical_text(*trained_));
  }

  void routing_section() {
    std::string text =
        "| routing | prompts | tokens of prompts, decode | f_1 | top-k mass | overlap of adjacent steps "
        "|\n|---|---|---|---|---|---|\n";
    const auto line = [&](const RoutingResults& one) {
      text +=
          fmt::format("| {} | {} | {}, {} | {:.3f} | {:.3f} | {:.3f} |\n", one.source, one.prompts,
                      one.prompt_tokens, one.decode_tokens, one.facts.f_1, one.facts.mass, one.facts.overlap);
    };
    if (results_.recorded) line(*results_.recorded);
    for (const SlicemoeResults::Synthetic& one : results_.synthetic) line(one.routing);
    const lab::SyntheticRouting& settings = first_.settings;
    text += fmt::format(
        "\nSynthetic routing is z = b + x of SPEC §6 with a = {}, d = {}, φ = {}, σ = {}, seed {}: chosen so "
        "that these three figures are about those of the recorded one. Recorded routing has the scores of "
        "the "
        "chosen experts only, so routers that change the selection are replayed on synthetic routing.\n",
        settings.a, settings.d, settings.phi, settings.sigma, settings.seed);
    if (!results_.recorded)
      text += "\nNo recorded routing of DeepSeek-V2-Lite is at hand (" + flag(Setting::kTrace) +
              " FILE): rows that would be of it "
              "are of synthetic routing.\n";
    report_.sections.push_back({"Routing", text});
  }

  void reserve_section() {
    std::string text = fmt::format(
        "LSBs leave before any MSB (SPEC §4.3), so in a cache that is full of MSBs no LSB stays: each one "
        "that "
        "is wanted is read again, or, within a limit that missing MSBs use up, done without. A share of the "
        "cache that MSBs leave to them ({}) changes this. MAT84 in 2.4 GB, {}:\n\n"
        "| reserve | no limit: MSB, LSB misses %, mJ | within 5 %: MSB, LSB misses %, mJ, critical and high "
        "%, "
        "lost % |\n|---|---|---|\n",
        flag(Setting::kLsbReserve), first_.routing.source);
    for (const ReserveCell& cell : first_.reserves)
      text +=
          fmt::format("| {:.0f} % | {:.1f}, {:.1f}, {:.1f} | {:.1f}, {:.1f}, {:.1f}, {:.1f}, {:.1f} |\n",
                      100 * cell.reserve, 100 * cell.exact.msb_missed, 100 * cell.exact.lsb_missed,
                      1e3 * cell.exact.joules, 100 * cell.limited.msb_missed, 100 * cell.limited.lsb_missed,
                      1e3 * cell.limited.joules, 100 * cell.limited.high, 100 * cell.limited.mass_lost);
    report_.sections.push_back({"Room for LSBs", text});
  }

  void router_section() {
    std::string text = fmt::format(
        "Slices by criticality (θ = {}), MAT84 in 2.4 GB, predicted warm-up, {}; the limit is 5 % of bytes. "
        "cumsum looks at experts of probability {}.\n\n"
        "| router | constraint | λ at the end | HBN % | lost % | mJ | ms | limit passed, tokens of a layer "
        "|\n|---|---|---|---|---|---|---|---|\n",
        experts::CriticalRule().theta, first_.routing.source, experts::CacheAwareRules().p);
    for (const RouterCell& cell : first_.routers)
      text += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {} |\n", cell.router,
                          cell.constraint,
                          experts::find_router(cell.router).rules == experts::RouterRules::kLambda
                              ? fmt::format("{:.2f}", cell.lambda)
                              : "–",
                          100 * cell.figures.hbn, 100 * cell.figures.mass_lost, 1e3 * cell.figures.joules,
                          1e3 * cell.figures.seconds, cell.violations);
    report_.sections.push_back({"Routers", text});
  }

  void systems_section(const SlicemoeResults::Synthetic& one) {
    std::string text =
        "Cache-Prior at high precision, then slices (DBSC, AMAT, predicted warm-up); misses limited to 5 % "
        "of "
        "bytes. Lost: share of the scores of the model's own experts that went to others. The last column is "
        "the first system at the limit at which it loses as much as the second one (\"outside\": no limit of "
        "the sweep does; the nearest).\n\n"
        "| cache | slices | mJ a token | ms a token | HBN % | lost % | critical and high % | equal loss: mJ, "
        "ms "
        "|\n|---|---|---|---|---|---|---|---|\n";
    for (const SystemCell& cell : one.systems) {
      const auto pair = [&](double SystemFigures::*figure, double factor) {
        return fmt::format("{:.1f}, {:.1f}", factor * cell.high.*figure, factor * cell.slices.*figure);
      };
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.1f}, {:.1f}{} |\n",
                          gigabytes(cell.cell.memory), mat_name(cell.cell.bits),
                          pair(&SystemFigures::joules, 1e3), pair(&SystemFigures::seconds, 1e3),
                          pair(&SystemFigures::hbn, 100), pair(&SystemFigures::mass_lost, 100),
                          pair(&SystemFigures::high, 100), 1e3 * cell.equal_loss.joules,
                          1e3 * cell.equal_loss.seconds, cell.equal_loss.inside ? "" : " (outside)");
    }
    text +=
        "\nWhere the energy goes, mJ a token:\n\n| cache | slices | system | Flash | DRAM reads | DRAM "
        "writes | compute |\n|---|---|---|---|---|---|---|\n";
    for (const SystemCell& cell : one.systems)
      for (const auto& [name, figures] :
           {std::pair{"Cache-Prior, high", &cell.high}, std::pair{"slices", &cell.slices}})
        text += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.2f} |\n",
                            gigabytes(cell.cell.memory), mat_name(cell.cell.bits), name,
                            1e3 * figures->energy.flash, 1e3 * figures->energy.dram_read,
                            1e3 * figures->energy.dram_write, 1e3 * figures->energy.compute);
    report_.sections.push_back({"Systems: " + one.routing.source, text});
  }

  void starts_section(const RoutingResults& routing, const std::vector<StartCell>& cells,
                      const std::string& how) {
    std::string text = fmt::format(
        "Decode tokens after each initial state ({}): mJ, ms a token, and HBN miss rate behind the first 10 "
        "steps.\n\n| cache | slices |",
        how);
    std::string rule = "|---|---|";
    for (std::size_t i = 0; i < kInitialStates; ++i) {
      text += fmt::format(" {} |", experts::initial_slices_name(static_cast<InitialSlices>(i)));
      rule += "---|";
    }
    text += "\n" + rule + "\n";
    for (const StartCell& cell : cells) {
      text += fmt::format("| {} | {} |", gigabytes(cell.cell.memory), mat_name(cell.cell.bits));
      for (const SystemFigures& one : cell.whole)
        text +=
            fmt::format(" {:.1f}, {:.1f}, {:.1f} % |", 1e3 * one.joules, 1e3 * one.seconds, 100 * one.hbn);
      text += "\n";
    }
    report_.sections.push_back({"Initial states: " + routing.source + ", " + how, text});
  }

  const SlicemoeResults& results_;
  Report& report_;
  const SlicemoeResults::Synthetic& first_;
  const RoutingResults& routing_;
  const TrainedResults* const trained_;  // may be null
};

}  // namespace

std::vector<CacheCell> cache_grid() {
  std::vector<CacheCell> cells;
  for (const codec::SliceBits bits : codec::kStoredSliceBits)
    for (const Bytes memory : kCacheSizes) cells.push_back({bits, memory});
  return cells;
}

double StartCell::energy_ratio(InitialSlices initial) const {
  return whole[static_cast<std::size_t>(initial)].joules /
         whole[static_cast<std::size_t>(InitialSlices::kWarmup)].joules;
}
double StartCell::time_ratio(InitialSlices initial) const {
  return whole[static_cast<std::size_t>(initial)].seconds /
         whole[static_cast<std::size_t>(InitialSlices::kWarmup)].seconds;
}

void add_slicemoe_rows(const SlicemoeResults& results, Report& report) {
  SlicemoeRows(results, report).add();
}

const std::vector<std::string>& slicemoe_row_ids() {
  static const std::vector<std::string> ids = {"L-T1", "L-F2", "L-F3", "L-F8", "L-F9", "L-F10", "L-crit"};
  return ids;
}

}  // namespace sluice::reproduce
