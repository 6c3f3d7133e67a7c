#include "reproduce/smoe/smoe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "reproduce/svg.h"

namespace sluice::reproduce {
namespace {

// What a rung adds to the one before it.
constexpr const char* kAdds[] = {"base", "+CE", "+ER", "+Pre", "+BA"};

void ladder(const SmoeResults& results, Report& report) {
  std::vector<PlotSeries> series;
  for (const auto& [name, rungs] : {std::pair{"missing experts are loaded", &smoe_ladder()},
                                    {"the host computes them", &smoe_host_ladder()}})
    for (const std::uint32_t batch : results.batches) {
      PlotSeries one{fmt::format("{}, B = {}", name, batch), {}};
      const auto tpot = [&](std::size_t rung) {
        return results.places.find(kSmoeKnownPlace, (*rungs)[rung].name, batch).tpot_s();
      };
      for (std::size_t i = 0; i < rungs->size(); ++i) {
        const double share = tpot(i) / tpot(0);
        one.points.push_back({static_cast<double>(i), share, share, share});
      }
      series.push_back(std::move(one));
    }
  PlotSeries paper{"paper", {}};
  for (double x = 0, share = 1; const double factor : {1.0, .92, .8, .86, .66}) {
    share *= factor;
    paper.points.push_back({x++, share, share, share});
  }
  series.push_back(std::move(paper));
  report.pictures.push_back(
      {"smoe-ladder.svg", "Time of a decode step, part by part, as a share of the base: S3, fitted routing",
       line_chart({"The parts of SMoE: S3", "0 base, 1 +CE, 2 +ER, 3 +Pre, 4 +BA", "share of the base's time",
                   "synthetic routing like recorded DeepSeek-V2-Lite"},
                  series)});
}

void hits(const SmoeResults& results, Report& report) {
  std::vector<PlotBar> bars;
  const std::uint32_t batch = results.batches.front();
  for (std::size_t i = 0; i < smoe_ladder().size(); ++i) {
    const SmoeCell& cell = results.places.find(kSmoeKnownPlace, smoe_ladder()[i].name, batch);
    const double used = 100 * cell.hit(), own = 100 * cell.own_hit();
    bars.push_back({kAdds[i], used, used, used});
    bars.push_back({"exact", own, own, own});
  }
  report.pictures.push_back(
      {"smoe-hits.svg",
       "Experts that are on the device when their layer starts to compute, part by part; beside each the "
       "exact router's own experts",
       bar_chart({"On the device, part by part: S3", "with each part; of the exact router's experts",
                  "% of the experts", fmt::format("B = {}, fitted routing; paper: > 60 with +BA", batch)},
                 bars)});
}

void reuse(const SmoeResults& results, Report& report) {
  std::vector<PlotSeries> series;
  const auto add = [&](std::string name, const RankFigures& ranks) {
    PlotSeries one{std::move(name), {}};
    for (std::size_t r = 0; r < ranks.reuse.size(); ++r)
      one.points.push_back({static_cast<double>(r + 1), ranks.reuse[r], ranks.reuse[r], ranks.reuse[r]});
    series.push_back(std::move(one));
  };
  const SmoeSetting& setting = *smoe_place(kSmoeKnownPlace).setting;
  add(fmt::format("fitted, top {}", setting.top_k), results.routing(setting, SmoeRoutingKind::kFitted).ranks);
  add(fmt::format("overlap {}, top {}", kSecondOverlap, setting.top_k),
      results.routing(setting, SmoeRoutingKind::kOverlap).ranks);
  if (results.trained)
    add(fmt::format("{}, top {}", results.trained->model, results.trained->routing.top_k),
        results.trained->ranks);
  report.pictures.push_back(
      {"smoe-reuse.svg",
       "How often the next token uses an expert again, by the rank of its score (figure 11)",
       line_chart({"Used again by the next token", "rank of the score", "share of the tokens", ""}, series)});
}

void losses(const SmoeTrained& trained, Report& report) {
  std::vector<PlotSeries> series;
  for (const SmoeLoss& loss : trained.losses) {
    const std::string name = fmt::format("{:.0f} % of the experts in memory", 100 * loss.cache);
    if (series.empty() || series.back().name != name) series.push_back({name, {{0, 0, 0, 0}}});
    const double y = 100 * loss.loss, error = 100 * loss.error;
    series.back().points.push_back({loss.alpha, y, y - error, y + error});
  }
  report.pictures.push_back(
      {"smoe-losses.svg", fmt::format("What the router smoe costs {}, over α", trained.model),
       line_chart({"Loss of perplexity", "α", "%", trained.model + "; bars: one standard error"}, series)});
}

}  // namespace

void add_smoe_pictures(const SmoeResults& results, Report& report) {
  ladder(results, report);
  hits(results, report);
  reuse(results, report);
  if (results.trained) losses(*results.trained, report);
}

}  // namespace sluice::reproduce
