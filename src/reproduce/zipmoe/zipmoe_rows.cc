#include "reproduce/zipmoe/zipmoe_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/setting.h"
#include "engine/plan/options.h"
#include "engine/plan/profile.h"
#include "model/architecture.h"
#include "reproduce/percent.h"
#include "reproduce/zipmoe/zipmoe_systems.h"

namespace sluice::reproduce {
namespace {

std::string range(std::vector<double> values, double factor, const char* unit) {
  const lab::Spread spread = lab::spread_of(std::move(values));
  return fmt::format("{:.2f} to {:.2f}{}", spread.low * factor, spread.high * factor, unit);
}

class Rows {
 public:
  Rows(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report)
      : runs_(runs), results_(results), report_(report) {}
  void add();

 private:
  void row(std::string id, std::string quantity, std::string paper, std::string ours,
           std::vector<Evidence> evidence, std::string note, std::vector<std::string> commands = {}) {
    report_.rows.push_back({std::move(id), std::move(quantity), std::move(paper), std::move(ours),
                            std::move(evidence), std::move(note), std::move(commands)});
  }
  // A row that is both simulated and run.
  void row_of_both(std::string id, std::string quantity, std::string paper,
                   std::string ZipmoeReplay::*replayed, const std::string& ran, const std::string& note,
                   std::vector<std::string> commands) {
    if (results_.replay) {
      const std::string& figures = (*results_.replay).*replayed;
      row(std::move(id), std::move(quantity), std::move(paper), "S " + figures + "; R " + ran,
          {Evidence::kReplay, Evidence::kRun},
          "R: " + note + ". S: section \"Simulated rows\"" +
              (results_.replay->missing.empty() ? "" : "; " + results_.replay->missing),
          std::move(commands));
    } else {
      row(std::move(id), std::move(quantity), std::move(paper), "S n/a; R " + ran,
          {Evidence::kNone, Evidence::kRun},
          "R: " + note + ". S: the experts are stored whole, so there is no time of decoding to replay with",
          std::move(commands));
    }
  }
  // 1 - planned / other for every published baseline and budget.
  std::vector<double> reductions(double lab::RunFigures::*figure,
                                 const std::vector<std::string>& baselines) const {
    std::vector<double> values;
    for (const lab::Comparison& one : results_.sweep)
      for (const std::string& name : baselines)
        values.push_back(1 - one.find(kPlanned).of(figure).median / one.find(name).of(figure).median);
    return values;
  }
  // Rows of the paper's figures and tables, in its order; some functions add two.
  void waiting_row();        // Z-F1
  void exponent_rows();      // Z-F2, Z-F3
  void timing_row();         // Z-F4
  void latency_row();        // Z-F7
  void throughput_row();     // Z-F8
  void length_row();         // Z-F9
  void ladder_row();         // Z-F10
  void page_cache_row();     // Z-A
  void approximation_row();  // Z-T

  const ZipmoeRuns& runs_;
  const ZipmoeResults& results_;
  Report& report_;
  const std::vector<std::string> baselines_ = published_baselines();
  const std::string baseline_names_ = fmt::format("{}", fmt::join(baselines_, ", "));
};

void Rows::waiting_row() {
  const lab::Comparison &tight = results_.sweep.front(), &loose = results_.sweep.back();
  const auto wait = [](const lab::Comparison& one, const char* preset) {
    return percent(one.find(preset).of(&lab::RunFigures::wait_share).median);
  };
  row_of_both(
      "Z-F1", "share of the time that waits for the disk, server to edge: decoder-only; encoder-decoder",
      "38.5 % to 80.1 %; 15.8 % to 41.7 %", &ZipmoeReplay::f1,
      fmt::format("z-accelerate {} to {}, {} {} to {}", wait(loose, "z-accelerate"),
                  wait(tight, "z-accelerate"), kPlanned, wait(loose, kPlanned), wait(tight, kPlanned)),
      "from the largest budget to the smallest, since there is one machine; S from 32 to 2 GB/s, "
      "z-accelerate",
      {runs_.compare_command({"z-accelerate", kPlanned}, results_.budgets.back(), 1, runs_.tokens()) + " " +
           flag(Setting::kJson),
       runs_.compare_command({"z-accelerate", kPlanned}, results_.budgets.front(), 1, runs_.tokens()) + " " +
           flag(Setting::kJson)});
}

void Rows::exponent_rows() {
  row("Z-F2", "entropy of exponents, bits, of 3 models; share of the 256 symbols that occur",
      "2.651, 2.563, 2.554; 14.06, 11.33, 14.84 %",
      fmt::format("{:.3f}; {}", results_.exponents.entropy_bits, percent(results_.exponents.symbols / 256.0)),
      {Evidence::kArithmetic},
      fmt::format("{} words of experts of {}", results_.exponents.words, runs_.settings().whole_name));
  std::string sizes, codec_names;
  std::vector<CodecSize> codecs = results_.exponents.codecs;
  std::ranges::sort(codecs, {}, &CodecSize::codec);  // as in the paper: LZ4 first
  for (const CodecSize& codec : codecs) {
    sizes += percent(codec.size) + "; ";
    codec_names += (codec_names.empty() ? "" : ", ") + (codec.codec == "lz4" ? "LZ4HC" : codec.codec);
  }
  row("Z-F3", "size after LZ4HC; ZSTD; entropy bound", "74 %; 68 %; 66.02, 65.96, 66.52 %",
      sizes + percent(results_.exponents.bound), {Evidence::kArithmetic},
      fmt::format("here: {}; bound (8 + H) / 16, by which the paper's entropies would be 66.57, 66.02, 65.96 "
                  "%; 4 chunks a matrix",
                  codec_names));
}

void Rows::timing_row() {
  const std::string quantity =
      "threads from which decoding exponents beats reading them raw; disk's loss under decoding in the "
      "background";
  const std::optional<engine::Profile> profile = runs_.profile();
  if (!profile || profile->model.chunks == 0 || profile->u.median <= 0)
    return row("Z-F4", quantity, "3; 7.47 %", "n/a", {Evidence::kNone}, "the store has no coded exponents");
  const double decode = profile->c.median * profile->model.chunks, read = profile->u.median;
  row("Z-F4", quantity, "3; 7.47 %",
      fmt::format("{:.0f}; not measured", std::max(1.0, std::ceil(decode / read))),
      {Evidence::kRun, Evidence::kNone},
      fmt::format(
          "{}: one thread decodes a plane in {:.3f} ms, the disk reads it raw in {:.3f} ms, several reads "
          "in flight. The loss is not measured: here decoding shares the compute threads, there is no "
          "background to it",
          runs_.settings().packed.checkpoint->codec(), decode * 1e3, read * 1e3),
      {"sluice profile " + runs_.settings().packed_name + runs_.settings().flags});
}

void Rows::latency_row() {
  const std::string spread =
      fmt::format("{} to {}", format_bytes(results_.budgets.front()), format_bytes(results_.budgets.back()));
  std::vector<std::string> commands;
  for (const Bytes budget : results_.budgets)
    commands.push_back(runs_.compare_command(sweep_systems(), budget, 1, runs_.tokens()));
  row_of_both("Z-F7", "reduction of TPOT / of TTFT: decoder-only; encoder-decoder",
              "62.65–97.97 % / 53.25–87.90 %; 4.99–81.24 % / ≤ 83.45 %", &ZipmoeReplay::f7,
              fmt::format("{} / {}", range(reductions(&lab::RunFigures::tpot_s, baselines_), 100, " %"),
                          range(reductions(&lab::RunFigures::ttft_s, baselines_), 100, " %")),
              fmt::format("{} against {} over budgets of {}; against z-basic-lru: TPOT {}, TTFT {}", kPlanned,
                          baseline_names_, spread,
                          range(reductions(&lab::RunFigures::tpot_s, {"z-basic-lru"}), 100, " %"),
                          range(reductions(&lab::RunFigures::ttft_s, {"z-basic-lru"}), 100, " %")),
              std::move(commands));
}

void Rows::throughput_row() {
  std::vector<std::string> commands;
  std::string gains;
  for (std::size_t i = 0; i < results_.batches.size(); ++i) {
    std::vector<double> values;
    for (const std::string& name : baselines_)
      values.push_back(results_.batches[i].find(kPlanned).of(&lab::RunFigures::tok_s).median /
                       results_.batches[i].find(name).of(&lab::RunFigures::tok_s).median);
    gains += fmt::format("{}B={}: {}", gains.empty() ? "" : ", ", runs_.batches()[i], range(values, 1, "×"));
    commands.push_back(runs_.compare_command(batch_systems(), results_.batch_budgets[i], runs_.batches()[i],
                                             runs_.tokens() / 2));
  }
  row_of_both("Z-F8", "gain in throughput at B = 1, 4, 16: decoder-only; encoder-decoder",
              "1.79–42.49×; 1.31–5.82×", &ZipmoeReplay::f8, gains,
              fmt::format("{} against {}, different prompts decoded together", kPlanned, baseline_names_),
              std::move(commands));
}

void Rows::length_row() {
  std::vector<std::string> commands;
  std::string speeds;
  for (std::size_t i = 0; i < results_.lengths.size(); ++i) {
    const auto e2e = [&](const char* name) {
      return results_.lengths[i].find(name).of(&lab::RunFigures::e2e_s).median;
    };
    speeds += fmt::format("{}{} tokens: {:.2f}× ({:.2f}×)", speeds.empty() ? "" : ", ", runs_.lengths()[i],
                          e2e("z-accelerate") / e2e(kPlanned), e2e("z-basic-lru") / e2e(kPlanned));
    commands.push_back(runs_.compare_command(length_systems(), results_.middle(), 1, runs_.lengths()[i]));
  }
  row_of_both("Z-F9", "end-to-end speed-up against the length of the output: decoder-only; encoder-decoder",
              "3.03–42.49×; 1.11–5.64×", &ZipmoeReplay::f9, speeds,
              fmt::format("{} against z-accelerate (z-basic-lru) at {}; S against {}", kPlanned,
                          format_bytes(results_.middle()), baseline_names_),
              std::move(commands));
}

void Rows::ladder_row() {
  const auto figure = [&](const char* name, double lab::RunFigures::*member) {
    return results_.ladder.find(name).of(member).median;
  };
  const auto basic = [&](double lab::RunFigures::*member) {
    return (figure("z-basic-fifo", member) + figure("z-basic-marking", member) +
            figure("z-basic-lru", member)) /
           3;
  };
  const double base_tok = figure("z-accelerate", &lab::RunFigures::tok_s),
               basic_tok = basic(&lab::RunFigures::tok_s), c_tok = figure("z-C", &lab::RunFigures::tok_s),
               cp_tok = figure(kPlanned, &lab::RunFigures::tok_s);
  // Where the systems are not in this order, there is no gain to divide.
  const std::string core =
      cp_tok > basic_tok && basic_tok > base_tok
          ? fmt::format("core share of the gain {:.1f} %", 100 * (basic_tok - base_tok) / (cp_tok - base_tok))
          : "planned pools are not ahead of the rest";
  row_of_both(
      "Z-F10", "ablation, tok/s (E2E s): baseline, basic average, +C, +C+P",
      "DeepSeek 1.60 (585.96), 4.43 (204.05), 5.18 (176.68), 5.30 (173.23); Qwen1.5 1.99 (515.12), 6.39 "
      "(160.33), 7.64 (134.10), 7.79 (–)",
      &ZipmoeReplay::f10,
      fmt::format("{:.2f} ({:.3f}), {:.2f} ({:.3f}), {:.2f} ({:.3f}), {:.2f} ({:.3f})", base_tok,
                  figure("z-accelerate", &lab::RunFigures::e2e_s), basic_tok, basic(&lab::RunFigures::e2e_s),
                  c_tok, figure("z-C", &lab::RunFigures::e2e_s), cp_tok,
                  figure(kPlanned, &lab::RunFigures::e2e_s)),
      fmt::format("at {}; {} (paper: 76.5, 75.9 %)", format_bytes(results_.ladder.budget), core),
      {runs_.compare_command(ladder_steps(), results_.middle(), 1, runs_.tokens())});
}

void Rows::page_cache_row() {
  const lab::Comparison& middle = results_.sweep[results_.sweep.size() / 2];
  const auto against = [&](double lab::RunFigures::*member) {
    return percent(1 -
                   middle.find(kPlanned).of(member).median / middle.find("z-accelerate").of(member).median);
  };
  row("Z-A", "page cache removed (32 GB occupied): reduction of TTFT; of TPOT", "56.64 %; 53.32 %",
      against(&lab::RunFigures::ttft_s) + "; " + against(&lab::RunFigures::tpot_s), {Evidence::kRun},
      fmt::format("{}. {} against z-accelerate at {}",
                  runs_.options().fetch.io == fetch::IoMode::kDirect
                      ? "no run here has a page cache to use: reads go past it (" + flag(Setting::kIo) +
                            " direct), and what it takes "
                            "counts"
                      : fmt::format("not quite the paper's condition: with {} {} reads go through the page "
                                    "cache, and pages are dropped behind each; what was there before stays",
                                    flag(Setting::kIo), fetch::io_mode_name(runs_.options().fetch.io)),
                  kPlanned, format_bytes(middle.budget)),
      {runs_.compare_command({"z-accelerate", kPlanned}, results_.middle(), 1, runs_.tokens())});
}

void Rows::approximation_row() {
  const auto& [scheduler, ratio] = results_.ratios.front();
  std::string others;
  for (std::size_t i = 1; i < results_.ratios.size(); ++i)
    others += fmt::format("{}{} {:.3f}", i > 1 ? ", " : "", results_.ratios[i].first,
                          results_.ratios[i].second.mean);
  row("Z-T", "approximation ratio", "≤ 3 − 1/L",
      fmt::format("worst {:.3f}, mean {:.3f}; worst share of the bound {:.3f}", ratio.worst, ratio.mean,
                  ratio.worst_of_bound),
      {Evidence::kArithmetic},
      fmt::format("{} over {} random instances, against a lower bound of the optimum (stronger than the "
                  "theorem); means of others: {}",
                  scheduler, ratio.instances, others));
}

void Rows::add() {
  waiting_row();
  exponent_rows();
  timing_row();
  latency_row();
  throughput_row();
  length_row();
  ladder_row();
  page_cache_row();
  approximation_row();
  row("Z-abs", "abstract: reduction of latency up to; throughput up to", "72.77 %; 6.76×", "n/a",
      {Evidence::kNone},
      "the paper's own ranges (Z-F7, Z-F8) say otherwise, so it is not clear what is compared; probably the "
      "best baseline only");
}

}  // namespace

void add_zipmoe_rows(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report) {
  Rows(runs, results, report).add();
}

const std::vector<std::string>& zipmoe_row_ids() {
  static const std::vector<std::string> ids = {"Z-F1", "Z-F2",  "Z-F3", "Z-F4", "Z-F7", "Z-F8",
                                               "Z-F9", "Z-F10", "Z-A",  "Z-T",  "Z-abs"};
  return ids;
}

}  // namespace sluice::reproduce
