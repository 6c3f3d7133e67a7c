#include "reproduce/smoe/smoe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "reproduce/percent.h"
#include "reproduce/smoe/smoe.h"

namespace sluice::reproduce {
namespace {

// "+11 %" of a change from one value to another, with a minus as the paper's numbers have it.
std::string change(double from, double to) {
  const double percent = std::round(100 * (to / from - 1));
  return fmt::format("{}{:.0f} %", percent < 0 ? "−" : percent > 0 ? "+" : "", std::abs(percent));
}

using Figure = double (SmoeCell::*)() const;

class SmoeRows {
 public:
  SmoeRows(const SmoeResults& results, Report& report) : results_(results), report_(report) {}

  void add() {
    speed_row();
    hit_row();
    prompt_row();
    ladder_rows();
    needed_row();
    prediction_row();
    balance_row();
    shape_row();
    loss_row();
    add_smoe_sections(results_, report_);
  }

 private:
  void row(std::string id, std::string quantity, std::string paper, std::string ours,
           std::vector<Evidence> evidence, std::string note) {
    report_.rows.push_back({std::move(id),
                            std::move(quantity),
                            std::move(paper),
                            std::move(ours),
                            std::move(evidence),
                            std::move(note),
                            {}});
  }

  const SmoeCell& cell(const SmoePlace& place, const std::string& system, std::uint32_t batch) const {
    return results_.places.find(place.label, system, batch);
  }

  // The baseline with the least or largest figure; llama.cpp only where the paper compares with it.
  const SmoeCell& best_baseline(const SmoePlace& place, std::uint32_t batch, Figure of, bool least) const {
    const SmoeCell* best = nullptr;
    for (const SmoeSystem& system : smoe_baselines()) {
      if (system.is_llamacpp && !place.setting->has_llamacpp) continue;
      const SmoeCell& one = cell(place, system.name, batch);
      if (best == nullptr || ((one.*of)() < (best->*of)()) == least) best = &one;
    }
    return *best;
  }

  // The mean over all settings of the mean over the places of each.
  double mean(const std::function<double(const SmoePlace&)>& of) const {
    double all = 0;
    for (const SmoeSetting& setting : smoe_settings()) {
      double sum = 0, count = 0;
      for (const SmoePlace& place : smoe_places())
        if (place.setting == &setting) sum += of(place), count += 1;
      all += sum / count;
    }
    return all / static_cast<double>(smoe_settings().size());
  }

  static std::string by_place(const std::function<std::string(const SmoePlace&)>& text) {
    std::string all;
    for (const SmoePlace& place : smoe_places())
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", place.label, text(place));
    return all;
  }

  // "B = 3, 1" as the paper orders them.
  std::vector<std::uint32_t> largest_first() const {
    return {results_.batches.rbegin(), results_.batches.rend()};
  }
  std::string by_batch(const std::function<std::string(std::uint32_t)>& text) const {
    std::string all;
    for (const std::uint32_t batch : largest_first()) all += (all.empty() ? "" : ", ") + text(batch);
    return all;
  }
  std::string batch_list() const {
    return by_batch([](std::uint32_t batch) { return std::to_string(batch); });
  }

  void speed_row() {
    const auto ratio = [&](const SmoePlace& place, std::uint32_t batch) {
      return cell(place, "smoe", batch).tpot_s() /
             best_baseline(place, batch, &SmoeCell::tpot_s, true).tpot_s();
    };
    row("S-F12", "TPOT vs best baseline: mean B=3, B=1; S3 B=3, B=1; S1 B=3, B=1",
        "−35, −24; −48, −34; −27, −20 %",
        fmt::format("mean {}. {}", by_batch([&](std::uint32_t batch) {
                      return change(1, mean([&](const SmoePlace& place) { return ratio(place, batch); }));
                    }),
                    by_place([&](const SmoePlace& place) {
                      return by_batch([&](std::uint32_t batch) { return change(1, ratio(place, batch)); });
                    })),
        {Evidence::kReplay},
        fmt::format("B = {}. {}. The best baseline is, in order: {}. S1 and S2 stand on both ends of what "
                    "their host may read (SPEC §10, G1); the paper has no llama.cpp for S2",
                    batch_list(), routing_note(), by_place([&](const SmoePlace& place) {
                      return by_batch([&](std::uint32_t batch) {
                        return best_baseline(place, batch, &SmoeCell::tpot_s, true).system;
                      });
                    })));
  }

  std::string routing_note() const {
    const SmoeRoutingFound& s3 = results_.routing(*s3_place().setting, SmoeRoutingKind::kFitted);
    return fmt::format(
        "Synthetic routing, fitted once to recorded DeepSeek-V2-Lite (f₁ {}, mass {}, overlap {}), which "
        "with "
        "S3's top {} has {:.3f}, {:.3f} and {:.3f}",
        kRecordedFacts.f_1, kRecordedFacts.mass, kRecordedFacts.overlap, s3.setting->top_k, s3.facts.f_1,
        s3.facts.mass, s3.facts.overlap);
  }

  static const SmoePlace& s3_place() { return smoe_place(kSmoeKnownPlace); }

  void hit_row() {
    row("S-F13", "GPU cache ratio vs best baseline; absolute", "≥ +66 %; > 60 %",
        by_place([&](const SmoePlace& place) {
          return by_batch([&](std::uint32_t batch) {
            const SmoeCell& ours = cell(place, "smoe", batch);
            return fmt::format("{}; {}",
                               change(best_baseline(place, batch, &SmoeCell::hit, false).hit(), ours.hit()),
                               percent(ours.hit()));
          });
        }),
        {Evidence::kReplay},
        fmt::format(
            "B = {}. Experts that are on the device when their layer starts to compute, of all that it then "
            "uses (SPEC §10, G2): what is not there is replaced, which raises the ratio by itself. The exact "
            "router's own experts are in a slot, in order: {}. The baseline with the highest ratio: {}",
            batch_list(), by_place([&](const SmoePlace& place) {
              return by_batch(
                  [&](std::uint32_t batch) { return percent(cell(place, "smoe", batch).own_hit()); });
            }),
            by_place([&](const SmoePlace& place) {
              return by_batch([&](std::uint32_t batch) {
                const SmoeCell& best = best_baseline(place, batch, &SmoeCell::hit, false);
                return fmt::format("{} {}", best.system, percent(best.hit()));
              });
            })));
  }

  void prompt_row() {
    row("S-F14", "TTFT vs best baseline", "−23 %",
        fmt::format("mean {}. {}", change(1, mean([&](const SmoePlace& place) { return prompt(place); })),
                    by_place([&](const SmoePlace& place) { return change(1, prompt(place)); })),
        {Evidence::kReplay},
        fmt::format(
            "prompts of {} tokens, one at a time; the paper's length is not known. The best baseline: "
            "{}. A prompt uses nearly all experts, so copies bind whoever loads them",
            results_.shape.prompt, by_place([&](const SmoePlace& place) {
              const SmoeCell& best = best_baseline(place, 1, &SmoeCell::ttft_s, true);
              return fmt::format("{} {:.0f} ms", best.system, 1e3 * best.ttft_s());
            })));
  }
  double prompt(const SmoePlace& place) const {
    return cell(place, "smoe", 1).ttft_s() / best_baseline(place, 1, &SmoeCell::ttft_s, true).ttft_s();
  }

  // Each rung against the one before it.
  static std::string rungs(const SmoeTable& table, const std::string& place,
                           const std::vector<SmoeSystem>& ladder, std::uint32_t batch, Figure of) {
    std::string text;
    for (std::size_t i = 1; i < ladder.size(); ++i)
      text += (text.empty() ? "" : ", ") + change((table.find(place, ladder[i - 1].name, batch).*of)(),
                                                  (table.find(place, ladder[i].name, batch).*of)());
    return text;
  }
  static std::string ladder_text(const SmoeTable& table, const std::string& place, std::uint32_t batch) {
    return fmt::format("loaded {}; {}. On the host {}; {}",
                       rungs(table, place, smoe_ladder(), batch, &SmoeCell::tpot_s),
                       rungs(table, place, smoe_ladder(), batch, &SmoeCell::hit),
                       rungs(table, place, smoe_host_ladder(), batch, &SmoeCell::tpot_s),
                       rungs(table, place, smoe_host_ladder(), batch, &SmoeCell::hit));
  }
  std::string ladder_by_batch(const SmoeTable& table, const std::string& place) const {
    std::string text;
    for (const std::uint32_t batch : results_.batches)
      text += fmt::format("{}B = {}: {}", text.empty() ? "" : ". ", batch, ladder_text(table, place, batch));
    return text;
  }

  void ladder_rows() {
    const std::string s3 = kSmoeKnownPlace;
    row("S-F16", "ladder +CE, +ER, +Pre, +BA: TPOT each vs previous; cache ratio",
        "−8, −20, −14, −34 %; +11, +60, +12, −3 %", "S3, " + ladder_by_batch(results_.places, s3),
        {Evidence::kReplay},
        fmt::format(
            "missing experts are loaded, or the host computes them, until +BA divides them (SPEC §10, "
            "G16); {} of {} experts a layer on the device, α = {}. Where the host computes what is "
            "missing nothing is loaded in decode steps, so a cache that learns from loads learns from "
            "prompts alone. B = 1 at all places, missing experts loaded: {}",
            s3_place().slots, s3_place().setting->experts, s3_place().setting->alpha,
            by_place([&](const SmoePlace& place) {
              return rungs(results_.places, place.label, smoe_ladder(), 1, &SmoeCell::tpot_s);
            })));
    row("S-F16b", "the ladder's end over its base: TPOT, misses loaded; on the host; cache ratio",
        "0.418 (product of S-F16); goals of ours: ≤ 0.42; ≤ 0.55; ≥ 60 %", "S3, " + ends(results_.places, s3),
        {Evidence::kReplay},
        "the share of a step in which each unit is busy says what binds, base (loaded) and end: " +
            binds(s3) + ". Scores of experts that others replaced: " + moved(results_.places, s3));
    row("S-F16c", fmt::format("the same with overlap {}", kSecondOverlap), "no such number; no goal",
        fmt::format("S3, {}. {}", ends(results_.overlap, s3), ladder_by_batch(results_.overlap, s3)),
        {Evidence::kReplay},
        fmt::format(
            "overlap of neighbouring tokens {:.3f} instead of {:.3f}: nobody has recorded it. It decides "
            "what +CE gains, and what is left to +ER. Scores of experts that others replaced: {}",
            results_.routing(*s3_place().setting, SmoeRoutingKind::kOverlap).facts.overlap,
            results_.routing(*s3_place().setting, SmoeRoutingKind::kFitted).facts.overlap,
            moved(results_.overlap, s3)));
    own_ladder_row();
    admission_row();
  }

  // What the host has computed can enter the device's cache, too.
  void admission_row() {
    row("S-F16e", "+CE, +ER, +Pre, +BA where the host computes: admission idle instead of loaded",
        "no such number; no goal", "S3, " + admission_text(results_.places, kSmoeKnownPlace),
        {Evidence::kReplay},
        fmt::format("Idle admission is ours (SPEC §10, G5): while the link is idle, the cache also takes in "
                    "what the host has computed. TPOT from loaded to idle, and the cache ratios. Overlap {}: "
                    "{}. The last rung, B = {}: {}",
                    kSecondOverlap, admission_text(results_.overlap, kSmoeKnownPlace), batch_list(),
                    by_place([&](const SmoePlace& place) {
                      return by_batch([&](std::uint32_t batch) {
                        return change(cell(place, "smoe", batch).tpot_s(),
                                      cell(place, "smoe, idle", batch).tpot_s());
                      });
                    })));
  }
  std::string admission_text(const SmoeTable& table, const std::string& place) const {
    std::string text;
    for (const std::uint32_t batch : results_.batches) {
      text += fmt::format("{}B = {}:", text.empty() ? "" : ". ", batch);
      for (std::size_t i = 0; i < smoe_idle_ladder().size(); ++i) {
        const SmoeCell &idle = table.find(place, smoe_idle_ladder()[i].name, batch),
                       &loaded = table.find(place, smoe_host_ladder()[i + 1].name, batch);
        text += fmt::format("{} {} ({:.0f} → {:.0f} %)", i == 0 ? "" : ",",
                            change(loaded.tpot_s(), idle.tpot_s()), 100 * loaded.hit(), 100 * idle.hit());
      }
    }
    return text;
  }

  void own_ladder_row() {
    const char* const quantity = "the same over routing of a trained model";
    if (!results_.trained)
      return row("S-F16d", quantity, "no such number; no goal", "n/a", {Evidence::kNone},
                 "not measured: no trained model was given");
    const SmoeTrained& trained = *results_.trained;
    row("S-F16d", quantity, "no such number; no goal",
        fmt::format("{}. {}", ends(results_.own, kSmoeKnownPlace),
                    ladder_by_batch(results_.own, kSmoeKnownPlace)),
        {Evidence::kReplay},
        fmt::format(
            "{}, {} experts, top {}, on S3's machine with the same share of them on the device; f₁ "
            "{:.3f}, mass {:.3f}, overlap {:.3f}. Its predictions are of the partial state, where the "
            "host's cache held {:.0f} % of the experts. Scores of experts that others replaced: {}",
            trained.model, trained.routing.experts, trained.routing.top_k, trained.facts.f_1,
            trained.facts.mass, trained.facts.overlap, 100 * SmoeTrained::kHeld,
            moved(results_.own, kSmoeKnownPlace)));
  }

  std::string ends(const SmoeTable& table, const std::string& place) const {
    std::string text;
    for (const std::uint32_t batch : results_.batches) {
      const SmoeCell& end = table.find(place, "smoe", batch);
      text += fmt::format("{}B = {}: {:.3f}; {:.3f}; {} (exact router's {})", text.empty() ? "" : ". ", batch,
                          end.tpot_s() / table.find(place, "s-base", batch).tpot_s(),
                          end.tpot_s() / table.find(place, "s-base, host", batch).tpot_s(),
                          percent(end.hit()), percent(end.own_hit()));
    }
    return text;
  }

  std::string binds(const std::string& place) const {
    std::string text;
    for (const std::uint32_t batch : results_.batches)
      for (const char* system : {"s-base", "smoe"}) {
        const SmoeCell& one = results_.places.find(place, system, batch);
        const double step = one.tpot_s();
        text += fmt::format("{}B = {}, {} {:.1f} ms: link for loads {}, for prefetches {}, host's experts {}",
                            text.empty() ? "" : "; ", batch, system, 1e3 * step, percent(one.load_s() / step),
                            percent(one.prefetch_s() / step), percent(one.host_s() / step));
      }
    return text;
  }

  std::string moved(const SmoeTable& table, const std::string& place) const {
    std::string text;
    for (const std::uint32_t batch : results_.batches)
      for (const char* system : {"s-er", "s-pre", "smoe"})
        text += fmt::format("{}B = {}, {} {}", text.empty() ? "" : "; ", batch, system,
                            percent(table.find(place, system, batch).moved()));
    return text + " of all scores";
  }

  void needed_row() {
    std::string ours;
    for (const std::uint32_t batch : results_.batches) {
      ours += fmt::format("{}S3, B = {}:", ours.empty() ? "" : ". ", batch);
      for (const SmoeSystem& rung : smoe_ladder()) {
        const NeededExperts& needed = cell(s3_place(), rung.name, batch).needed;
        ours += fmt::format("{} {} {:.0f} / {:.0f} %", &rung == &smoe_ladder().front() ? "" : ",", rung.name,
                            100 * needed.top_share(), 100 * needed.low_share());
      }
    }
    row("S-F15", "share of top/low-score active experts that need loading per ladder step",
        "figure only (falls)", ours, {Evidence::kReplay},
        "top-score for some token of the step, by the model's own scores; needing is neither in a slot nor "
        "copied there in time, whoever then computes the expert");
  }

  void prediction_row() {
    std::string ours;
    for (const SmoeSetting& setting : smoe_settings()) {
      const TopScoreAccuracy& found = results_.routing(setting, SmoeRoutingKind::kFitted).accuracy;
      ours += fmt::format("{}{} (α = {}) {}; {}", ours.empty() ? "assumed: " : ", ", setting.name,
                          setting.alpha, percent(found.precision()), percent(found.active_share()));
    }
    std::string sent;
    for (const std::uint32_t batch : results_.batches) {
      const experts::PrefetchCounts& counts = cell(s3_place(), "s-pre", batch).result.decode.counts.prefetch;
      const auto all = static_cast<double>(std::max<std::uint64_t>(counts.sent, 1));
      sent += fmt::format("{}B = {}: {} used, {} late", sent.empty() ? "" : ", ", batch,
                          percent(static_cast<double>(counts.used) / all),
                          percent(static_cast<double>(counts.late) / all));
    }
    std::vector<Evidence> evidence = {Evidence::kReplay};
    std::string measured = "Not measured: no trained model was given";
    if (results_.trained) {
      const TopScoreAccuracy& found = results_.trained->accuracy;
      ours += fmt::format(". {}: {}; {}", results_.trained->model, percent(found.precision()),
                          percent(found.active_share()));
      evidence.push_back(Evidence::kRun);
      measured = fmt::format("{} measures it, with α = {} and {:.0f} % of its experts in memory",
                             results_.trained->model, SmoeTrained::kAccuracyAlpha, 100 * SmoeTrained::kHeld);
    }
    row("S-F18", "prefetched is top-score; is active", "82 %; 95 %", ours, evidence,
        fmt::format(
            "no prediction of the paper's models is at hand. Replays assume normal errors of {} on the "
            "next layer's logits, fitted to the 82 % for S3 (consumed there; the 95 % are not). {}. "
            "What s-pre then sends in S3: {}",
            kPredictionError, measured, sent));
  }

  void balance_row() {
    const lab::HybridMachine& machine = *s3_place().machine;
    std::string ours = fmt::format("one expert {:.2f} (consumed: the machine is made so)",
                                   machine.costs.run.of(1) / machine.costs.device.transfer);
    for (const std::uint32_t batch : results_.batches)
      for (const char* system : {"smoe", "smoe, literal"}) {
        const SmoeCell& one = cell(s3_place(), system, batch);
        ours += fmt::format(
            "; B = {}, totals of a step by {} {}", batch,
            system == std::string_view("smoe") ? "look-ahead" : "the printed rule",
            one.load_s() > 0 ? fmt::format("{:.2f}", one.host_s() / one.load_s()) : "without loads");
      }
    std::string speed;
    for (const std::uint32_t batch : results_.batches) {
      const SmoeCell &ahead = cell(s3_place(), "smoe", batch),
                     &literal = cell(s3_place(), "smoe, literal", batch);
      speed += fmt::format("{}B = {}: TPOT {}, cache ratio {}", speed.empty() ? "" : "; ", batch,
                           change(ahead.tpot_s(), literal.tpot_s()), change(ahead.hit(), literal.hit()));
    }
    row("S-F19", "CPU time / load time in S3", "≈ 1/3", ours, {Evidence::kArithmetic, Evidence::kReplay},
        "the figure may be read of one expert, or of all that a step computes on the host and loads (SPEC "
        "§10, G4). The printed rule, which always loads the first missing expert, against look-ahead: " +
            speed);
  }

  // The ranks 1, 2, k, k + 1, 2 k and N.
  static std::vector<std::size_t> some_ranks(std::size_t top_k, std::size_t experts) {
    return {1, 2, top_k, top_k + 1, std::min(2 * top_k, experts), experts};
  }
  static std::string by_rank(const std::vector<double>& values, std::size_t top_k, const char* format) {
    std::string text;
    for (const std::size_t rank : some_ranks(top_k, values.size()))
      text += fmt::format("{}{}: ", text.empty() ? "" : ", ", rank) +
              fmt::format(fmt::runtime(format), values[rank - 1]);
    return text;
  }

  void shape_row() {
    const SmoeRoutingFound& s3 = results_.routing(*s3_place().setting, SmoeRoutingKind::kFitted);
    const std::size_t k = s3.setting->top_k;
    std::string ours =
        fmt::format("S3. F4, mean score by rank {}. F11, used again by the next token, by rank {}",
                    by_rank(s3.ranks.score, k, "{:.3f}"), by_rank(s3.ranks.reuse, k, "{:.2f}"));
    if (results_.trained) {
      const SmoeTrained& trained = *results_.trained;
      ours += fmt::format(". {}: F4 {}; F11 {}", trained.model,
                          by_rank(trained.ranks.score, trained.routing.top_k, "{:.3f}"),
                          by_rank(trained.ranks.reuse, trained.routing.top_k, "{:.2f}"));
    }
    const experts::ExpertCosts& costs = s3_place().machine->costs;
    ours += ". F6/F8, ms for 1, 2, 4, 8 tokens:";
    const std::pair<const char*, const experts::ComputeTime*> units[] = {{"host", &costs.run},
                                                                         {"device", &costs.device.run}};
    for (const auto& [unit, time] : units) {
      ours += fmt::format(" {}", unit);
      for (const std::uint32_t tokens : {1u, 2u, 4u, 8u})
        ours += fmt::format(" {:.2f}", 1e3 * time->of(tokens));
      ours += ",";
    }
    ours += fmt::format(" a copy {:.2f}. F17, from s-er to s-pre:", 1e3 * costs.device.transfer);
    for (const std::uint32_t batch : results_.batches) {
      const SmoeCell &without = cell(s3_place(), "s-er", batch), &with = cell(s3_place(), "s-pre", batch);
      ours += fmt::format("{} B = {} the link is busy {:.1f} → {:.1f} ms a step, TPOT {}",
                          batch == results_.batches.front() ? "" : ",", batch,
                          1e3 * (without.load_s() + without.prefetch_s()),
                          1e3 * (with.load_s() + with.prefetch_s()), change(without.tpot_s(), with.tpot_s()));
    }
    row("S-fig",
        "shape only: F4 few high scores, rest near inactive; F6/F8 CPU, GPU, PCIe time per expert vs tokens "
        "(CPU linear, GPU flat, PCIe ≫ GPU); F11 reuse probability falls with score rank, also beyond rank "
        "k; "
        "F17 PCIe time rises with prefetch while TPOT falls",
        "order as stated", ours,
        results_.trained ? std::vector{Evidence::kReplay, Evidence::kRun} : std::vector{Evidence::kReplay},
        "F6 and F8 are the modelled machine, which is made so; sluice profile measures them on real ones. "
        "Reuse of synthetic routing follows from its parameters");
  }

  void loss_row() {
    const char* const quantity = "accuracy vs α";
    const char* const paper = "table (SPEC §6.2)";
    if (!results_.trained)
      return row(
          "S-T3", quantity, paper, "n/a", {Evidence::kNone},
          "not measured: neither the paper's models nor its tasks are at hand, and no trained model was "
          "given");
    const SmoeTrained& trained = *results_.trained;
    std::string ours;
    for (const SmoeLoss& one : trained.losses)
      ours +=
          fmt::format("{}α = {}, {:.0f} % in memory: {:+.2f} ± {:.2f} %, {}", ours.empty() ? "" : "; ",
                      one.alpha, 100 * one.cache, 100 * one.loss, 100 * one.error, percent(one.agreement));
    row("S-T3", quantity, paper, ours, {Evidence::kRun},
        fmt::format(
            "not tasks, which the paper's models alone can show: loss of perplexity of {} ({:.2f} with "
            "the exact router) with its standard error, and how often the likeliest token stays the "
            "same; {} tokens in {} windows, decoded one by one behind prompts. Scores moved, in order: "
            "{}",
            trained.model, trained.perplexity, trained.scored, trained.windows, moved_text(trained)));
  }
  static std::string moved_text(const SmoeTrained& trained) {
    std::string text;
    for (const SmoeLoss& one : trained.losses)
      text += fmt::format("{}{:.2f}", text.empty() ? "" : ", ", 100 * one.moved);
    return text + " %";
  }

  const SmoeResults& results_;
  Report& report_;
};

}  // namespace

void add_smoe_rows(const SmoeResults& results, Report& report) { SmoeRows(results, report).add(); }

const std::vector<std::string>& smoe_row_ids() {
  static const std::vector<std::string> ids = {"S-F12",  "S-F13",  "S-F14",  "S-F16", "S-F16b",
                                               "S-F16c", "S-F16d", "S-F16e", "S-F15", "S-F18",
                                               "S-F19",  "S-fig",  "S-T3"};
  return ids;
}

}  // namespace sluice::reproduce
