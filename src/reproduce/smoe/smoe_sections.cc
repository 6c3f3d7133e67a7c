#include "reproduce/smoe/smoe_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::reproduce {
namespace {

void places_section(Report& report) {
  std::string text =
      "What the paper says of its machines, or what follows from that (SPEC §10, G1). A host of a band is "
      "known by its two ends alone.\n\n"
      "| place | model | α | from | a copy, ms | host, ms a token | device, ms | slots of 64 a layer "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const SmoePlace& place : smoe_places()) {
    const experts::ExpertCosts& costs = place.machine->costs;
    text += fmt::format("| {} | {} | {} | {} | {:.3f} | {:.3f} | {:.3f} | {} |\n", place.label,
                        place.setting->model, place.setting->alpha, place.machine->source,
                        1e3 * costs.device.transfer, 1e3 * costs.run.per_token, 1e3 * costs.device.run.fixed,
                        place.slots);
  }
  report.sections.push_back({"Places", text});
}

void routing_section(const SmoeResults& results, Report& report) {
  const lab::SyntheticRouting fitted = smoe_routing(SmoeRoutingKind::kFitted);
  std::string text = fmt::format(
      "The generator of SPEC §6 with a = {}, d = {}, φ = {}, σ = {} has the figures of recorded "
      "DeepSeek-V2-Lite: f₁ {}, mass {}, overlap {}, within 0.01 with its shape. It was fitted to them once, "
      "before any row was computed; φ = {} alone gives overlap {}. {} sequences, each a prompt of {} tokens "
      "and {} decoded ones. Layers know nothing of each other.\n\n"
      "| model | overlap as | f₁ | mass | overlap | predicted top-score is top-score, active % "
      "|\n|---|---|---|---|---|---|\n",
      fitted.a, fitted.d, fitted.phi, fitted.sigma, kRecordedFacts.f_1, kRecordedFacts.mass,
      kRecordedFacts.overlap, smoe_routing(SmoeRoutingKind::kOverlap).phi, kSecondOverlap,
      results.shape.sequences, results.shape.prompt, results.shape.output);
  for (const SmoeRoutingFound& one : results.routings)
    text += fmt::format("| {}, top {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.1f}, {:.1f} |\n",
                        one.setting->model, one.setting->top_k,
                        one.kind == SmoeRoutingKind::kFitted ? "recorded" : fmt::format("{}", kSecondOverlap),
                        one.facts.f_1, one.facts.mass, one.facts.overlap, 100 * one.accuracy.precision(),
                        100 * one.accuracy.active_share());
  if (results.trained) {
    const SmoeTrained& trained = *results.trained;
    text +=
        fmt::format("| {}, top {} | measured | {:.3f} | {:.3f} | {:.3f} | {:.1f}, {:.1f} |\n", trained.model,
                    trained.routing.top_k, trained.facts.f_1, trained.facts.mass, trained.facts.overlap,
                    100 * trained.accuracy.precision(), 100 * trained.accuracy.active_share());
  }
  report.sections.push_back({"Routing", text});
}

void table_section(const char* heading, const std::string& intro, const SmoeTable& table, Report& report) {
  std::string text = intro +
                     "\n\n| place | B | system | step, ms | prompt, ms | on the device %: used, exact "
                     "router's | scores moved, "
                     "replaced % | copies: kept, streamed, ahead | host, ms | missing %: top, low "
                     "|\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const SmoeCell& cell : table.cells()) {
    const experts::DeviceCounts& counts = cell.result.decode.counts;
    const auto events = static_cast<double>(std::max<std::uint64_t>(counts.events, 1));
    text += fmt::format(
        "| {} | {} | {} | {:.2f} | {:.0f} | {:.1f}, {:.1f} | {:.1f}, {:.1f} | {:.2f}, {:.2f}, {:.2f} | "
        "{:.2f} | "
        "{:.0f}, {:.0f} |\n",
        cell.place, cell.batch, cell.system, 1e3 * cell.tpot_s(), 1e3 * cell.ttft_s(), 100 * cell.hit(),
        100 * cell.own_hit(), 100 * cell.moved(), 100 * (1 - cell.result.decode_changes.agreement()),
        static_cast<double>(counts.loads) / events, static_cast<double>(counts.streamed) / events,
        static_cast<double>(counts.prefetch.sent) / events, 1e3 * cell.host_s(),
        100 * cell.needed.top_share(), 100 * cell.needed.low_share());
  }
  report.sections.push_back({heading, text});
}

void losses_section(const SmoeTrained& trained, Report& report) {
  std::string text = fmt::format(
      "{}: perplexity {:.2f} with the exact router; {} tokens in {} windows of its text, decoded one by one "
      "behind prompts, with memory for a share of all experts (cache lru, nothing read ahead).\n\n"
      "| α | in memory | scores moved % | loss of perplexity % | KL, nats | same top token % "
      "|\n|---|---|---|---|---|---|\n",
      trained.model, trained.perplexity, trained.scored, trained.windows);
  for (const SmoeLoss& one : trained.losses)
    text += fmt::format("| {} | {:.0f} % | {:.2f} | {:.2f} ± {:.2f} | {:.4f} | {:.1f} |\n", one.alpha,
                        100 * one.cache, 100 * one.moved, 100 * one.loss, 100 * one.error, one.divergence,
                        100 * one.agreement);
  report.sections.push_back({"Losses", text});
}

}  // namespace

void add_smoe_sections(const SmoeResults& results, Report& report) {
  places_section(report);
  routing_section(results, report);
  table_section(
      "Systems",
      "Decode steps and prompts of all systems on the fitted routing. \"Used\" is the share that is "
      "on the device when its layer starts to compute, of the experts that the layer uses; \"missing\" "
      "is the share of top-score and of low-score experts that are not. Copies are by layer; those "
      "ahead are what was asked for.",
      results.places, report);
  table_section("Overlap", fmt::format("Both ladders on S3 with overlap {}.", kSecondOverlap),
                results.overlap, report);
  if (!results.trained) return;
  table_section("Routing of the trained model",
                "Both ladders on S3's machine, over what the trained model routed and predicted.",
                results.own, report);
  losses_section(*results.trained, report);
}

}  // namespace sluice::reproduce
