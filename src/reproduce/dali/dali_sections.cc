#include "reproduce/dali/dali_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace sluice::reproduce {
namespace {

std::string first_machine(const DaliTable& table, const std::string& model) {
  return table.machines(model).front();
}

// All of one model and machine, in order.
std::vector<const DaliCell*> cells_of(const DaliTable& table, const std::string& model,
                                      const std::string& machine) {
  std::vector<const DaliCell*> cells;
  for (const DaliCell& cell : table.cells())
    if (cell.model == model && cell.machine == machine) cells.push_back(&cell);
  return cells;
}

void machines_section(const DaliResults& results, Report& report) {
  std::string text =
      "DALI's own machine is not identifiable from its paper (SPEC §10, G7), so each row stands on several. "
      "A fit has "
      "consumed the row that it was fitted to, which is no evidence for it.\n\n"
      "| model | machine | from | bits | a copy, ms | host, ms | device, ms | consumed "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const DaliResults::Routing& routing : results.routings)
    for (const DaliMachine& one : machines_of(*routing.model)) {
      const experts::ExpertCosts& costs = one.machine.costs;
      text += fmt::format("| {} | {} | {} | {} | {:.3f} | {:.3f} + {:.3f} w | {:.3f} | {} |\n",
                          routing.model->name, one.label, one.machine.source, one.machine.expert_bits,
                          1e3 * costs.device.transfer, 1e3 * costs.run.fixed, 1e3 * costs.run.per_token,
                          1e3 * costs.device.run.fixed, one.consumed.empty() ? "–" : one.consumed);
    }
  text +=
      "\nBeside the experts a layer has attention, norms and the next gate, shared experts, two copies down "
      "to the host, "
      "the decision, launches, and, where a prefetch predicts, a gate's product with two changes of streams: "
      "costs of "
      "DeepSeek-V2-Lite, ours.\n";
  report.sections.push_back({"Machines", text});
}

void routing_section(const DaliResults& results, Report& report) {
  std::string text =
      "The first third of the tokens tells which experts are popular and which follow which; batches are cut "
      "of the rest: sequence b is the tokens from b/B on, so sequences of one text are more "
      "alike than those "
      "of strangers would be.\n\n| model | routing | f₁, mass, overlap | distinct experts of a step and "
      "layer, by B | top-3 "
      "of the next step (F8), layers 1, 4, 8, 16, by B |\n|---|---|---|---|---|\n";
  for (const DaliResults::Routing& one : results.routings) {
    std::string active, top3;
    for (const auto& [batch, count] : one.active) active += fmt::format("{}: {:.1f} ", batch, count);
    for (const auto& [batch, kept] : one.top3_overlap) {
      top3 += fmt::format("{}:", batch);
      for (const double share : kept) top3 += fmt::format(" {:.2f}", share);
      top3 += " ";
    }
    text += fmt::format("| {} | {} | {} | {}| {}|\n", one.model->name, one.source,
                        one.facts.f_1 > 0 ? fmt::format("{:.3f}, {:.3f}, {:.3f}", one.facts.f_1,
                                                        one.facts.mass, one.facts.overlap)
                                          : "–",
                        active, top3);
  }
  if (!results.missing.empty()) text += "\nLeft out: " + results.missing + ".\n";
  report.sections.push_back({"Routing", text});
}

void sweep_section(const DaliResults& results, Report& report) {
  const DaliTable& table = results.sweep;
  std::string text =
      "A decode step in ms, half of the experts on the device; behind it D-hit, A-hit, token-weighted hits "
      "%, copies (demand "
      "and update) a step and layer, and how long both sides wait for each other (F4, F20), ms.\n\n"
      "| model | machine | B | system | step | D, A, tokens | copies | imbalance "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const DaliCell& cell : table.cells()) {
    const experts::DeviceCounts& counts = cell.result.decode.counts;
    const auto events = static_cast<double>(std::max<std::uint64_t>(counts.events, 1));
    text += fmt::format("| {} | {} | {} | {} | {:.2f} | {:.1f}, {:.1f}, {:.1f} | {:.2f} | {:.2f} |\n",
                        cell.model, cell.machine, cell.batch, cell.system, 1e3 * cell.tpot_s(),
                        100 * counts.d_hit(), 100 * counts.a_hit(), 100 * counts.token_hit(),
                        static_cast<double>(counts.loads + counts.streamed + counts.updates) / events,
                        1e3 * cell.imbalance_s());
  }
  report.sections.push_back({"Systems", text});
}

void simple_section(const char* heading, const std::string& intro, const DaliTable& table, Report& report) {
  std::string text = intro +
                     "\n\n| model | machine | system | slots | step, ms | D, A, tokens % | copies | "
                     "prefetched: sent a layer, "
                     "used, late % |\n|---|---|---|---|---|---|---|---|\n";
  for (const DaliCell& cell : table.cells()) {
    const experts::DeviceCounts& counts = cell.result.decode.counts;
    const experts::PrefetchCounts& ahead = counts.prefetch;
    const auto events = static_cast<double>(std::max<std::uint64_t>(counts.events, 1));
    const auto sent = static_cast<double>(std::max<std::uint64_t>(ahead.sent, 1));
    text += fmt::format("| {} | {} | {} | {} | {:.2f} | {:.1f}, {:.1f}, {:.1f} | {:.2f} | {} |\n", cell.model,
                        cell.machine, cell.system, cell.slots, 1e3 * cell.tpot_s(), 100 * counts.d_hit(),
                        100 * counts.a_hit(), 100 * counts.token_hit(),
                        static_cast<double>(counts.loads + counts.streamed + counts.updates) / events,
                        ahead.sent == 0
                            ? "–"
                            : fmt::format("{:.2f}, {:.0f}, {:.0f}", static_cast<double>(ahead.sent) / events,
                                          100 * static_cast<double>(ahead.used) / sent,
                                          100 * static_cast<double>(ahead.late) / sent));
  }
  report.sections.push_back({heading, text});
}

void predictions_section(const DaliTrained& trained, Report& report) {
  std::string text = fmt::format(
      "{}: {} sparse layers of {} experts, top {}. Share of the experts of most tokens that are named, %, "
      "with the standard "
      "error over sixteen blocks. The first half of the text calibrates residual and stat.\n\n"
      "| text | top | B | residual | raw | stream (ours) | stat | random "
      "|\n|---|---|---|---|---|---|---|---|\n",
      trained.model, trained.layers, trained.experts, trained.top_k);
  std::vector<std::string> done;
  for (const DaliAccuracy& one : trained.accuracies) {
    const std::string key = fmt::format("| {} | {} | {} |", one.text, one.top, one.batch);
    if (std::ranges::count(done, key) > 0) continue;
    done.push_back(key);
    text += key;
    for (const char* prefetch : {"dali-residual", "raw", "stream", "stat", "random"}) {
      const DaliAccuracy& found = trained.find(one.text, prefetch, one.batch, one.top);
      text += fmt::format(" {:.1f} ± {:.1f} |", 100 * found.value, 100 * found.error);
    }
    text += "\n";
  }
  report.sections.push_back({"Predictions", text});
}

// Names of cells in the order of their time, the slowest first.
std::string order_of(const std::vector<const DaliCell*>& cells, const std::vector<std::string_view>& names) {
  std::vector<const DaliCell*> some;
  for (const DaliCell* cell : cells)
    if (std::ranges::count(names, cell->system) > 0) some.push_back(cell);
  std::ranges::stable_sort(some,
                           [](const DaliCell* a, const DaliCell* b) { return a->tpot_s() > b->tpot_s(); });
  std::string text;
  for (const DaliCell* cell : some) text += fmt::format("{}{}", text.empty() ? "" : " < ", cell->system);
  return text;
}

}  // namespace

std::string shape_texts(const DaliResults& results) {
  std::string text;
  const auto say = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  const std::string model = results.sweep.models().front(), machine = first_machine(results.sweep, model);
  const std::uint32_t half = results.sweep.slots(model).front(), batch = results.sweep.batches(model).back();
  const auto sweep = [&](const char* system) -> const DaliCell& {
    return results.sweep.find(model, machine, system, batch, half);
  };
  say(
      fmt::format("{} at 16 bits. F4/F20, B = {}: sides apart a step: layer split {:.1f}, HybriMoE {:.1f}, "
                  "DALI {:.1f} ms",
                  model, batch, 1e3 * sweep("d-llamacpp").imbalance_s(),
                  1e3 * sweep("d-hybrimoe").imbalance_s(), 1e3 * sweep("dali").imbalance_s()));
  say(fmt::format("F6: HybriMoE's prefetch gains {:+.1f} %",
                  100 * (sweep("d-hybrimoe, no prefetch").tpot_s() / sweep("d-hybrimoe").tpot_s() - 1)));
  const std::vector<const DaliCell*> prefetches =
      cells_of(results.prefetches, model, first_machine(results.prefetches, model));
  say("F16, slowest first: " + order_of(prefetches, {"none", "random", "stat", "raw", "dali-residual"}) +
      " (paper: random < none < HybriMoE < residual)");
  for (const std::string& each : results.prefetches.models()) {
    const DaliCell* best = nullptr;
    for (const DaliCell* cell : cells_of(results.prefetches, each, first_machine(results.prefetches, each)))
      if (cell->system.starts_with("size ") && (best == nullptr || cell->tpot_s() < best->tpot_s()))
        best = cell;
    if (best != nullptr) say(fmt::format("F18a, {}: best {}", each, best->system));
  }
  std::string shares;
  for (const DaliCell* cell : cells_of(results.shares, model, first_machine(results.shares, model)))
    shares += fmt::format("{}{} slots {:.1f}", shares.empty() ? "" : ", ", cell->slots, 1e3 * cell->tpot_s());
  say("F18b, ms a step: " + shares);
  std::string windows;
  for (const DaliCell* cell : cells_of(results.windows, model, first_machine(results.windows, model)))
    if (cell->system.front() == '(')
      windows += fmt::format("{}{} {:.1f}", windows.empty() ? "" : ", ", cell->system,
                             100 * cell->result.decode.counts.a_hit());
  say("F18c, A-hit %: " + windows);
  const auto assigned = [&](const char* placement) {
    return results.assignment.find(model, first_machine(results.assignment, model), placement, 16, half)
        .moe_s();
  };
  say(fmt::format("F21: beam's layers take {:.3f} of greedy's", assigned("beam") / assigned("greedy")));
  return text;
}

void add_dali_sections(const DaliResults& results, Report& report) {
  machines_section(results, report);
  routing_section(results, report);
  sweep_section(results, report);
  simple_section(
      "Assignment",
      "Residents drawn by seed, never changed; B = 16, then 32 (D-F14, D-T4). `cpu` is all on the host.",
      results.assignment, report);
  simple_section("Parts", "The ladder of D-F19, B = 16, a quarter of the experts on the device.",
                 results.ladder, report);
  simple_section("Prefetch variants and sizes",
                 "On top of greedy with residents that stay (F16, F18a), B = 16. Two experts on Mixtral, as "
                 "in the figure.",
                 results.prefetches, report);
  simple_section("Caches",
                 "Greedy and the residual prefetch everywhere, B = 16, a quarter and a half of the experts "
                 "on the device "
                 "(D-F17). `workload-ema` is ours.",
                 results.caches, report);
  simple_section("Windows", "D-T9, F18c: B = 32, a quarter of the experts on the device.", results.windows,
                 report);
  if (results.trained) predictions_section(*results.trained, report);
}

}  // namespace sluice::reproduce
