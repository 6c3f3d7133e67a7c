// Measures SliceMoE's rows about quality: the engine runs a trained model over a text, each variant against
// the exact model (SPEC §6.4, mode R).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "codec/slices/slice_bits.h"
#include "engine/plan/options.h"
#include "eval/stepped_windows.h"
#include "reproduce/zipmoe/critical_shares.h"
#include "reproduce/zipmoe/hot_overlap.h"

namespace sluice::reproduce {

// The amount of measuring.
struct TrainedGrid {
  std::size_t quantiser_tokens = 3072, quantiser_window = 512;  // for Table 1: prompts only
  eval::SteppedWindows windows{.window = 640, .prompt = 500};   // SPEC §6.4, "Settings"
  std::size_t count = 5;  // number of these windows; fewer for a shorter text
  std::vector<codec::SliceBits> quantised, curves;
  double cache_share = .25;     // share of all experts at high precision
  std::vector<double> limits;   // m* for L-F8
  std::vector<double> lambdas;  // for cache-prior, L-F2
  std::vector<double> thetas, kappas;
};
TrainedGrid trained_grid(bool quick);

struct TrainedSettings {
  std::string model;              // a Hugging Face directory
  std::string text;               // a text that the model has not been trained on
  std::string work;               // an existing directory; variants of the model are made in it
  engine::EngineOptions options;  // memory, threads, instruction set and reads, for all runs
  TrainedGrid grid;
  std::function<bool()> interrupted;               // may be empty
  std::function<void(std::string_view)> on_stage;  // may be empty
};

// The scores of the text under one way to compute it.
struct TextScores {
  double perplexity = 0;
  eval::LossDifference loss;  // against the exact model
  // Agreement with the exact model: share of equal likeliest tokens; KL divergence in nats.
  double agreement = 0, divergence = 0;
  std::vector<eval::WindowScore> windows;  // behind `loss`
  // Scores of its routers, or logits, are not numbers: the other fields are unset.
  bool broken = false;
};

// Sets the fields that follow from `windows`, or `broken` if a score is not a number.
void set_scores(TextScores& scores, std::vector<eval::WindowScore> windows,
                std::span<const eval::WindowScore> exact);

// A row of Table 1: all experts rounded, everything computed as one prompt.
struct QuantiserCell : TextScores {
  std::string quantiser;  // one of codec::quantiser_variants()
  codec::SliceBits bits;
  // For normal weights (SPEC §7.4): pure arithmetic, valid even if the run is broken.
  double sqnr_db = 0;
};

// One way to run the model. If broken, only the setting is valid.
struct TrainedPoint : TextScores {
  double setting = 0;                         // the limit, λ, θ or κ
  double hbn = 0;                             // bytes missed divided by the bytes of all requests at b_high
  double msb_missed = 0, lsb_missed = 0;      // as shares of slices asked for
  double low_share = 0;                       // share of a token's weight that is computed low
  double own = 1;                             // share of the model's own choices that were used
  double bytes = 0, joules = 0, seconds = 0;  // per decode token; on the modelled machine
};
struct TrainedCurve {
  std::string name;
  std::vector<TrainedPoint> points;  // by setting
};

inline constexpr double kErrors = 2;  // standard errors beyond which a difference counts

// Whether another setting is better than the default: it loses less by more than kErrors standard errors of
// the paired difference, and reads no more. Broken runs are not compared.
struct SweepVerdict {
  double standard = 0;         // the default setting
  std::vector<double> better;  // settings
};
SweepVerdict verdict_of(const std::vector<TrainedPoint>& points, double standard);

// Results for one pair of slices.
struct TrainedSlices {
  codec::SliceBits bits;
  Bytes cache_bytes = 0;
  TrainedCurve high_bit, low_bit;    // L-F2: by λ
  std::vector<TrainedCurve> limits;  // L-F8: high, low (8/4 alone), AMAT-only, DBSC+AMAT, +PCW
  TrainedCurve theta_free, theta_limited, kappa;
};

// Slices against Cache-Prior at high precision where both lose equally much (L-F9); empty if one of them is
// broken.
struct EqualAccuracy {
  double energy_ratio = 0, time_ratio = 0;
  // The value lies inside the other system's sweep; else the comparison takes the nearest end.
  bool inside = false;
};
std::optional<EqualAccuracy> at_equal_accuracy(const TrainedCurve& high, const TrainedPoint& slices);

struct TrainedResults {
  std::string model;  // the model's name
  double parameters = 0;
  std::uint64_t quantiser_tokens = 0, windows = 0, tokens = 0, scored = 0;
  std::size_t window = 0, prompt = 0;
  double cache_share = 0;                           // share of all experts at high precision
  double quantiser_perplexity = 0, perplexity = 0;  // perplexities of the exact model
  std::vector<QuantiserCell> quantisers;
  std::vector<TrainedSlices> slices;
  std::vector<HotOverlap> overlap;
  std::vector<CriticalShares> critical;
  // Decode tokens behind `critical`; `overlap` counts the first kEarlySteps of each window.
  std::uint64_t decode_tokens = 0;
  Bytes work_bytes = 0;  // the most disk space that variants took at one time
};

// Besides options.memory it keeps logits of the exact model, 4 bytes × vocabulary × scored tokens, first for
// Table 1, then for the windows, never for both; and for a while what RoutingRecorder keeps of the windows.
// Leaves nothing behind in `work`, even after an error. Error(kInvalid) for a text of fewer than two windows,
// and for a model whose own logits are not numbers; (kUnsupported) for a model without experts, or with an
// encoder; errors as store::pack and store::write_rounded_copy of the directory, and Engine; (kInterrupted).
TrainedResults measure_trained(const TrainedSettings& settings);

Json to_json(const TrainedResults& results);

}  // namespace sluice::reproduce
