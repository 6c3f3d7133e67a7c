#include "reproduce/slicemoe/slicemoe_trained_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/setting.h"
#include "reproduce/slicemoe/slicemoe_replays.h"
#include "reproduce/svg.h"

namespace sluice::reproduce {
namespace {

using codec::SliceBits;
using Verdict = Ordering::Verdict;

constexpr double kMostLoss = 19;          // as a share of perplexity; larger losses are not told apart
constexpr double kSmallParameters = 1e9;  // the paper's models have 14e9 and more

// In per cent of perplexity.
std::string loss_text(const eval::LossDifference& difference) {
  const eval::PerplexityLoss loss = eval::of_perplexity(difference);
  return fmt::format("{:.2f} ± {:.2f}", 100 * loss.share, 100 * loss.error);
}
std::string bounded_loss_text(const eval::LossDifference& difference) {
  if (eval::of_perplexity(difference).share <= kMostLoss) return loss_text(difference);
  return fmt::format("> {:.0f}", 100 * kMostLoss);
}

constexpr const char* kBroken = "breaks";  // the run has no numbers

std::string loss_text(const TrainedPoint& point) {
  return point.broken ? kBroken : loss_text(point.loss) + " %";
}

std::string perplexity_text(const QuantiserCell& cell) {
  if (cell.broken) return kBroken;
  return cell.perplexity < 1e5 ? fmt::format("{:.2f}", cell.perplexity)
                               : fmt::format("{:.1e}", cell.perplexity);
}

const QuantiserCell* find_cell(const TrainedResults& found, std::string_view quantiser, SliceBits bits) {
  for (const QuantiserCell& cell : found.quantisers)
    if (cell.quantiser == quantiser && cell.bits == bits) return &cell;
  return nullptr;
}

// The pairs that were rounded, fewest bits first, like the paper's columns.
std::vector<SliceBits> columns(const TrainedResults& found) {
  std::vector<SliceBits> bits;
  for (const QuantiserCell& cell : found.quantisers)
    if (std::ranges::find(bits, cell.bits) == bits.end()) bits.push_back(cell.bits);
  std::ranges::sort(bits, {}, &SliceBits::high);
  return bits;
}

const TrainedCurve& curve_of(const TrainedSlices& slices, std::string_view name) {
  const auto curve = std::ranges::find(slices.limits, name, &TrainedCurve::name);
  SLUICE_CHECK(curve != slices.limits.end(), std::string(name));
  return *curve;
}
const TrainedPoint* point_at(const TrainedCurve& curve, double setting) {
  const auto point = std::ranges::find(curve.points, setting, &TrainedPoint::setting);
  return point == curve.points.end() ? nullptr : &*point;
}

// The limits (shares) of its curves, without the last point, which has no limit.
std::vector<double> limits_of(const TrainedSlices& slices) {
  std::vector<double> limits;
  for (const TrainedPoint& point : slices.limits.front().points) limits.push_back(point.setting);
  limits.pop_back();
  return limits;
}

ReportRow no_model(std::string id, std::string quantity, std::string paper) {
  return {std::move(id),
          std::move(quantity),
          std::move(paper),
          "n/a",
          {Evidence::kNone},
          "no trained model is at hand: give " + flag(Setting::kModel) + " DIR",
          {}};
}

std::string text_of(const TrainedResults& found) {
  return fmt::format(
      "{} ({:.0f} M parameters), {} tokens of text in {} windows of {}, the first {} of each a "
      "prompt, {} scored; experts in {:.0f} % of what all take at high precision",
      found.model, found.parameters * 1e-6, found.tokens, found.windows, found.window, found.prompt,
      found.scored, 100 * found.cache_share);
}

// The better value minus the worse one, as in the paper: negative where the ordering holds.
Verdict verdict(const eval::LossDifference& difference) {
  if (std::abs(difference.loss) <= kErrors * difference.error) return Verdict::kWithinNoise;
  return difference.loss < 0 ? Verdict::kHolds : Verdict::kFails;
}
Verdict verdict(const TextScores& better, const TextScores& worse) {
  if (better.broken) return Verdict::kFails;
  return worse.broken ? Verdict::kHolds : verdict(eval::difference(better.windows, worse.windows));
}
std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kFails:
      return "does not hold";
    case Verdict::kWithinNoise:
      return "within noise";
  }
  return "";
}

void order_quantisers(const TrainedResults& found, std::vector<Ordering>& list) {
  const auto order = [&](const std::string& claim, SliceBits bits, std::string_view better,
                         std::string_view worse) {
    const QuantiserCell *a = find_cell(found, better, bits), *b = find_cell(found, worse, bits);
    if (a == nullptr || b == nullptr) return;
    Ordering one{.claim = fmt::format("{}, {}", claim, mat_name(bits)),
                 .found = perplexity_text(*a) + " against " + perplexity_text(*b)};
    one.verdict = verdict(*a, *b);
    list.push_back(one);
  };
  for (const SliceBits bits : columns(found)) {
    order("AMAT beats truncation of the code alone", bits, "amat", "asym_keep_zero");
    order("AMAT beats truncation without a new scale", bits, "amat", "asym_keep_scale");
    order("AMAT beats symmetric codes that are clipped", bits, "amat", "sym_clip");
    order("scales of its own (asym base) beat AMAT", bits, "asym_base", "amat");
    order("asymmetric beats symmetric (base)", bits, "asym_base", "sym_base");
    order("AMAT beats sym base", bits, "amat", "sym_base");
    order("ours: the centre (amat_center) beats AMAT", bits, "amat_center", "amat");
  }
}

void order_curves(const TrainedResults& found, std::vector<Ordering>& list) {
  for (const TrainedSlices& slices : found.slices) {
    const auto order = [&](const std::string& claim, double limit, const char* better, const char* worse) {
      const auto has = [&](const char* name) {
        return std::ranges::find(slices.limits, name, &TrainedCurve::name) != slices.limits.end();
      };
      if (!has(better) || !has(worse)) return;
      const TrainedPoint &a = *point_at(curve_of(slices, better), limit),
                         &b = *point_at(curve_of(slices, worse), limit);
      std::string found = loss_text(a) + " against " + loss_text(b);
      if (!a.broken && !b.broken) {
        const eval::LossDifference difference = eval::difference(a.windows, b.windows);
        found = fmt::format("{:.2f} % of perplexity, {:.1f} standard errors",
                            100 * eval::of_perplexity(difference).share,
                            std::abs(difference.loss) / difference.error);
      }
      list.push_back(
          {.claim = fmt::format("{}, {}, limit {:.3g} %", claim, mat_name(slices.bits), 100 * limit),
           .found = std::move(found),
           .verdict = verdict(a, b)});
    };
    for (const double limit : limits_of(slices)) {
      if (limit > kMissRate) continue;  // SPEC §4.4: the region of interest
      order("low bits beat high bits (fig. 2)", limit, "low", "high");
      order("DBSC+AMAT beats high", limit, "DBSC+AMAT", "high");
      order("DBSC+AMAT beats AMAT-only", limit, "DBSC+AMAT", "AMAT-only");
      order("DBSC+AMAT beats low", limit, "DBSC+AMAT", "low");
      order("+PCW beats DBSC+AMAT", limit, "DBSC+AMAT+PCW", "DBSC+AMAT");
    }
  }
}

std::string count_text(const std::vector<Ordering>& list) {
  const auto count = [&](Verdict verdict) { return std::ranges::count(list, verdict, &Ordering::verdict); };
  return fmt::format("{} hold, {} are within two standard errors of nothing, {} do not hold",
                     count(Verdict::kHolds), count(Verdict::kWithinNoise), count(Verdict::kFails));
}

ReportSection about_section(const TrainedResults& found) {
  std::string text = fmt::format(
      "{}. Every number of this section is a run of the engine: its kernels, its cache, its decisions.\n\n"
      "Quality is perplexity and agreement with the exact model on this text, not accuracy in tasks. The "
      "exact model has a perplexity of {:.1f}. Losses are of perplexity against the exact model on the same "
      "tokens, ± one standard error from {} windows. Variants took at most {:.0f} MB of disk at a time, and "
      "are gone.",
      text_of(found), found.perplexity, found.windows, static_cast<double>(found.work_bytes) * 1e-6);
  if (found.parameters < kSmallParameters)
    text += fmt::format(
        "\n\n**This model is small** ({:.0f} M parameters): what it loses by rounding, or by another expert "
        "in "
        "an expert's place, may be far from what the paper's models lose. Orderings can carry over; "
        "percentages do not.",
        found.parameters * 1e-6);
  return {"Measured on a trained model", text};
}

ReportSection quantiser_section(const TrainedResults& found) {
  std::string text = fmt::format(
      "All experts rounded, everything else exact, {} tokens scored; the exact model has {:.3f}. Each cell: "
      "perplexity (loss %, agreement %); SQNR of normal weights in dB, which is arithmetic.\n\n| |",
      found.quantiser_tokens, found.quantiser_perplexity);
  std::string rule = "|---|";
  for (const SliceBits bits : columns(found)) {
    text += fmt::format(" {} | dB |", mat_name(bits));
    rule += "---|---|";
  }
  text += "\n" + rule + "\n";
  std::vector<std::string> names;
  for (const QuantiserCell& cell : found.quantisers)
    if (std::ranges::find(names, cell.quantiser) == names.end()) names.push_back(cell.quantiser);
  for (const std::string& name : names) {
    text += fmt::format("| {} |", name);
    for (const SliceBits bits : columns(found)) {
      const QuantiserCell& cell = *find_cell(found, name, bits);
      text += cell.broken ? fmt::format(" {} | {:.1f} |", kBroken, cell.sqnr_db)
                          : fmt::format(" {} ({}, {:.1f}) | {:.1f} |", perplexity_text(cell),
                                        bounded_loss_text(cell.loss), 100 * cell.agreement, cell.sqnr_db);
    }
    text += "\n";
  }
  return {"Table 1: how experts are rounded", text};
}

std::string point_row(const TrainedPoint& point, const std::string& setting) {
  if (point.broken) return fmt::format("| {} | | {} | | | | | | | |\n", setting, kBroken);
  return fmt::format("| {} | {:.2f} | {:.3f} | {} | {:.1f} | {:.4f} | {:.1f} | {:.0f} | {:.3f} | {:.3f} |\n",
                     setting, 100 * point.hbn, point.perplexity, loss_text(point.loss), 100 * point.agreement,
                     point.divergence, 100 * point.low_share, point.bytes / 1024, 1e3 * point.joules,
                     1e3 * point.seconds);
}
std::string point_head(const std::string& first) {
  return "| " + first +
         " | HBN % | perplexity | loss % | agreement % | KL | weight computed low % | KiB a token | mJ | ms "
         "|\n|---|---|---|---|---|---|---|---|---|---|\n";
}

ReportSection curve_section(const TrainedSlices& slices) {
  std::string text = fmt::format(
      "A cache of {:.1f} MiB; mJ and ms a token are of the modelled machine, from what the run read and "
      "computed (BF16 in all but experts).\n",
      static_cast<double>(slices.cache_bytes) / static_cast<double>(kMiB));
  for (const TrainedCurve* curve : {&slices.high_bit, &slices.low_bit}) {
    if (curve->points.empty()) continue;
    text += fmt::format("\nCache-Prior, {}, no limit (L-F2):\n\n{}", curve->name, point_head("λ"));
    for (const TrainedPoint& point : curve->points)
      text += point_row(point, fmt::format("{}", point.setting));
  }
  for (const TrainedCurve& curve : slices.limits) {
    text += fmt::format("\n{}, limit on misses (L-F8):\n\n{}", curve.name, point_head("limit"));
    for (const TrainedPoint& point : curve.points)
      text += point_row(point, point.setting == 1 ? "none" : fmt::format("{:.3g} %", 100 * point.setting));
  }
  return {"Miss rate and quality: " + mat_name(slices.bits), text};
}

std::string sweep_text(const std::vector<TrainedPoint>& points, double standard) {
  const SweepVerdict verdict = verdict_of(points, standard);
  if (verdict.better.empty())
    return fmt::format("no other value loses less by two standard errors without reading more: {} stays.\n",
                       standard);
  return fmt::format("better than {}, by two standard errors and without reading more: {}.\n", standard,
                     fmt::join(verdict.better, ", "));
}

ReportSection sweep_section(const TrainedSlices& slices) {
  std::string text;
  const double standard = experts::CriticalRule().theta;
  for (const TrainedCurve* curve : {&slices.theta_free, &slices.theta_limited}) {
    text += fmt::format("θ, {}:\n\n{}", curve->name, point_head("θ"));
    for (const TrainedPoint& point : curve->points)
      text += point_row(point, fmt::format("{}", point.setting));
    text += "\nθ: " + sweep_text(curve->points, standard) + "\n";
  }
  text +=
      fmt::format("κ, {}:\n\n| κ | MSB misses % | LSB misses % | KiB a token | mJ |\n|---|---|---|---|---|\n",
                  slices.kappa.name);
  for (const TrainedPoint& point : slices.kappa.points)
    text += point.broken ? fmt::format("| {} | {} | | | |\n", point.setting, kBroken)
                         : fmt::format("| {} | {:.1f} | {:.1f} | {:.1f} | {:.3f} |\n", point.setting,
                                       100 * point.msb_missed, 100 * point.lsb_missed, point.bytes / 1024,
                                       1e3 * point.joules);
  return {"θ and κ: " + mat_name(slices.bits), text};
}

ReportSection ordering_section(const TrainedResults& found) {
  const std::vector<Ordering> list = orderings_of(found);
  std::string text = fmt::format(
      "{}. A difference counts beyond two standard errors; a negative one is a smaller loss. Standard errors "
      "of "
      "{} windows are themselves uncertain by {:.0f} %, so that more text may change an ordering.\n\n"
      "| the paper's ordering | here | |\n|---|---|---|\n",
      count_text(list), found.windows, 100 / std::sqrt(2.0 * static_cast<double>(found.windows - 1)));
  for (const Ordering& one : list)
    text += fmt::format("| {} | {} | {} |\n", one.claim, one.found, verdict_text(one.verdict));
  return {"Which orderings hold", text};
}

PlotSeries series_of(const TrainedCurve& curve, double TrainedPoint::*x, double factor) {
  PlotSeries series{curve.name, {}};
  for (const TrainedPoint& point : curve.points) {
    if (point.broken) continue;
    const eval::PerplexityLoss loss = eval::of_perplexity(point.loss);
    const double y = 100 * loss.share, error = 100 * loss.error;
    series.points.push_back({factor * point.*x, y, y - error, y + error});
  }
  std::ranges::sort(series.points, {}, &PlotPoint::x);
  return series;
}

void add_pictures(const TrainedResults& found, const TrainedSlices& slices,
                  std::vector<ReportPicture>& pictures) {
  const std::string mat = mat_name(slices.bits),
                    number = fmt::format("{}{}", slices.bits.high, slices.bits.low);
  const std::string note =
      fmt::format("{}, {} tokens scored; bars: one standard error", found.model, found.scored);
  if (!slices.low_bit.points.empty())
    pictures.push_back(
        {"slicemoe-bits" + number + ".svg",
         "Loss against the miss rate of Cache-Prior: high bits, and low bits in the same bytes (fig. 2)",
         line_chart({"Cache-Prior by λ: few experts of many bits, or many of few", "HBN miss rate, %",
                     "% of perplexity lost", note},
                    {series_of(slices.high_bit, &TrainedPoint::hbn, 100),
                     series_of(slices.low_bit, &TrainedPoint::hbn, 100)})});
  std::vector<PlotSeries> loss, agreement;
  for (const TrainedCurve& curve : slices.limits) {
    TrainedCurve limited = curve;
    limited.points.pop_back();  // the point without a limit
    loss.push_back(series_of(limited, &TrainedPoint::hbn, 100));
    PlotSeries& one = agreement.emplace_back(PlotSeries{curve.name, {}});
    for (const TrainedPoint& point : limited.points)
      if (!point.broken)
        one.points.push_back(
            {100 * point.hbn, 100 * point.agreement, 100 * point.agreement, 100 * point.agreement});
    std::ranges::sort(one.points, {}, &PlotPoint::x);
  }
  pictures.push_back(
      {"slicemoe-quality" + number + ".svg", "Loss against the HBN miss rate, limited hard (fig. 8), " + mat,
       line_chart(
           {"Quality within a limit on misses, " + mat, "HBN miss rate, %", "% of perplexity lost", note},
           loss)});
  pictures.push_back({"slicemoe-agreement" + number + ".svg",
                      "Agreement with the exact model against the HBN miss rate, limited hard, " + mat,
                      line_chart({"Agreement within a limit on misses, " + mat, "HBN miss rate, %",
                                  "% of likeliest tokens that are the exact model's", note},
                                 agreement)});
  pictures.push_back(
      {"slicemoe-theta" + number + ".svg", "Loss against bytes, by θ, " + mat,
       line_chart({"θ: loss against bytes, " + mat, "KiB read a token", "% of perplexity lost", note},
                  {series_of(slices.theta_free, &TrainedPoint::bytes, 1.0 / 1024),
                   series_of(slices.theta_limited, &TrainedPoint::bytes, 1.0 / 1024)})});
}

}  // namespace

ReportRow quantiser_row(const TrainedResults* found) {
  const std::string quantity = "perplexity of rounded experts (table 1), low bits at 4/2, 6/3, 8/4";
  const std::string paper =
      "DeepSeek-V2-Lite: sym base 19.67, 7.61, 7.08; sym trunc 3.6e10, 3.7e10, 3.8e10; asym base 9.46, 7.29, "
      "7.06; asym trunc nan, 1.2e9, 1.2e9; AMAT 10.18, 7.56, 7.11; high (asym) 7.06, 7.01, 7.00. "
      "Qwen1.5-MoE: "
      "sym base 19.75, 9.12, 8.18; sym trunc 1.5e6, 1.5e6, 1.5e6; asym base 11.51, 8.51, 8.14; asym trunc "
      "1.8e7, "
      "1.8e7, 1.7e7; AMAT 10.85, 8.61, 8.09; high (asym) 8.14, 7.97, 7.96";
  if (found == nullptr) return no_model("L-T1", quantity, paper);
  const auto cells = [&](const char* name) {
    std::string text;
    for (const SliceBits bits : columns(*found))
      text += (text.empty() ? "" : ", ") + perplexity_text(*find_cell(*found, name, bits));
    return text;
  };
  const std::string ours = fmt::format(
      "exact {:.2f}; sym base {}; sym trunc {} (scale adapted), {} (not adapted), {} (clipped); asym base "
      "{}; "
      "asym trunc {} (code alone), {} (scale not adapted); AMAT {}; with the centre {}; high (asym) {}",
      found->quantiser_perplexity, cells("sym_base"), cells("sym_shift_rescale"),
      cells("sym_shift_keep_scale"), cells("sym_clip"), cells("asym_base"), cells("asym_keep_zero"),
      cells("asym_keep_scale"), cells("amat"), cells("amat_center"), cells("asym_high"));
  return {"L-T1",
          quantity,
          paper,
          ours,
          {Evidence::kRun, Evidence::kArithmetic},
          fmt::format(
              "{}, all experts rounded, all as prompts, {} tokens scored; SQNR beside it (A). The paper's "
              "failures are of models whose activations are far larger",
              found->model, found->quantiser_tokens),
          {}};
}

ReportRow miss_rate_row(const TrainedResults* found) {
  const std::string
      quantity = "quality against the miss rate of Cache-Prior: high bits, or more experts of low bits",
      paper = "low bits win below 5 %";
  if (found == nullptr) return no_model("L-F2", quantity, paper);
  std::string ours;
  for (const TrainedSlices& slices : found->slices) {
    if (slices.low_bit.points.empty()) continue;
    for (const double limit : limits_of(slices)) {
      const TrainedPoint &high = *point_at(curve_of(slices, "high"), limit),
                         &low = *point_at(curve_of(slices, "low"), limit);
      ours += fmt::format("{}limit {:.3g} %: {} bits lose {}, {} bits {}", ours.empty() ? "" : "; ",
                          100 * limit, slices.bits.high, loss_text(high), slices.bits.low, loss_text(low));
    }
  }
  return {"L-F2",
          quantity,
          paper,
          ours,
          {Evidence::kRun},
          text_of(*found) +
              ". Both in the same bytes of cache, and of the same bytes a request; 4 bits are a "
              "uniform store with scales of its own. By λ without a limit: the tables below",
          {}};
}

ReportRow pareto_row(const TrainedResults* found) {
  const std::string quantity = "quality against the HBN miss rate: high, low, AMAT-only, DBSC+AMAT, +PCW",
                    paper = "DBSC+AMAT Pareto-optimal (GSM8K, which needs a model that can answer it: n/a)";
  if (found == nullptr) return no_model("L-F8", quantity, paper);
  std::string ours;
  for (const TrainedSlices& slices : found->slices) {
    const TrainedPoint* any = point_at(slices.limits.front(), kMissRate);
    if (any == nullptr) continue;
    ours +=
        fmt::format("{}{} at {:.0f} %:", ours.empty() ? "" : "; ", mat_name(slices.bits), 100 * kMissRate);
    for (const TrainedCurve& curve : slices.limits) {
      const TrainedPoint& point = *point_at(curve, kMissRate);
      ours +=
          fmt::format("{} {} {}", &curve == &slices.limits.front() ? "" : ",", curve.name, loss_text(point));
      if (!point.broken) ours += fmt::format(" (agreement {:.1f} %)", 100 * point.agreement);
    }
  }
  return {"L-F8",
          quantity,
          paper,
          ours,
          {Evidence::kRun, Evidence::kNone},
          text_of(*found) + ". Perplexity lost against the exact model, limits hard with λ = " +
              fmt::format("{}", engine::EngineOptions().limits.lambda) +
              "; all limits below, with which orderings hold",
          {}};
}

const std::vector<std::string>& trained_row_ids() {
  static const std::vector<std::string> ids = {"L-T1", "L-F2", "L-F8"};
  return ids;
}

std::string hot_text(const TrainedResults& found) {
  const HotOverlap& at = *std::ranges::min_element(
      found.overlap, {}, [&](const HotOverlap& one) { return std::abs(one.chance - .25); });
  return fmt::format(
      "{}: {:.0f} % by the {} hottest of the prompt (best choice {:.0f} %, by chance {:.0f} %)", found.model,
      100 * at.prompt, at.hottest, 100 * at.best, 100 * at.chance);
}

std::string equal_accuracy_text(const TrainedResults& found) {
  std::string text;
  for (const TrainedSlices& slices : found.slices) {
    const TrainedPoint* point = point_at(curve_of(slices, "DBSC+AMAT+PCW"), kMissRate);
    if (point == nullptr) continue;
    const std::optional<EqualAccuracy> equal = at_equal_accuracy(curve_of(slices, "high"), *point);
    text += fmt::format("{}{} {}: at equal perplexity ", text.empty() ? "" : "; ", found.model,
                        mat_name(slices.bits));
    text += !equal ? fmt::format("n/a ({})", kBroken)
                   : fmt::format("{:.2f}×, {:.2f}×{}", equal->energy_ratio, equal->time_ratio,
                                 equal->inside ? "" : " (outside of the sweep: its nearest)");
  }
  return text;
}

std::string critical_text(const TrainedResults& found) {
  std::string text;
  for (const CriticalShares& one : found.critical)
    text += fmt::format("{}θ {}: 0 to {}, mean {:.2f}", text.empty() ? found.model + ": " : "; ", one.theta,
                        one.most(), one.mean());
  return text;
}

std::vector<Ordering> orderings_of(const TrainedResults& found) {
  std::vector<Ordering> list;
  order_quantisers(found, list);
  order_curves(found, list);
  return list;
}

std::vector<ReportSection> trained_sections(const TrainedResults& found) {
  std::vector<ReportSection> sections = {about_section(found), ordering_section(found),
                                         quantiser_section(found)};
  for (const TrainedSlices& slices : found.slices) {
    sections.push_back(curve_section(slices));
    sections.push_back(sweep_section(slices));
  }
  return sections;
}

std::vector<ReportPicture> trained_pictures(const TrainedResults& found) {
  std::vector<ReportPicture> pictures;
  for (const TrainedSlices& slices : found.slices) add_pictures(found, slices, pictures);
  return pictures;
}

}  // namespace sluice::reproduce
