// What SliceMoE's rows that are about quality are measured on: a trained model, run by the engine over a
// text, each way against the exact model (SPEC §6.4, mode R).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "codec/slice_bits.h"
#include "engine/options.h"
#include "eval/stepped_windows.h"
#include "lab/reproduce/critical_shares.h"
#include "lab/reproduce/hot_overlap.h"

namespace sluice::lab {

// How much is measured.
struct TrainedGrid {
  std::size_t quantiser_tokens = 3072, quantiser_window = 512;  // of Table 1: prompts alone
  eval::SteppedWindows windows{.window = 640, .prompt = 500};   // SPEC §6.4, "Settings"
  std::size_t count = 5;                                        // of these windows; fewer of a shorter text
  std::vector<codec::SliceBits> quantised, curves;
  double cache_share = .25;     // of all experts at high precision
  std::vector<double> limits;   // m* of L-F8
  std::vector<double> lambdas;  // of cache-prior, L-F2
  std::vector<double> thetas, kappas;
};
TrainedGrid trained_grid(bool quick);

struct TrainedSettings {
  std::string model;              // a Hugging Face directory
  std::string text;               // that the model has not been trained on
  std::string work;               // a directory that is there; variants of the model are made in it
  engine::EngineOptions options;  // memory, threads, instruction set and reads, of all runs
  TrainedGrid grid;
  std::function<bool()> interrupted;               // may be empty
  std::function<void(std::string_view)> on_stage;  // may be empty
};

// The text as one way to compute it has it.
struct TextScores {
  double perplexity = 0;
  eval::LossDifference loss;               // against the exact model
  double agreement = 0, divergence = 0;    // with the exact model: likeliest token; KL, nats
  std::vector<eval::WindowScore> windows;  // behind `loss`
  bool broken = false;                     // scores of its routers, or logits, are no numbers: none of these
};

// Sets what follows from `windows`, or `broken` where that is no number.
void set_scores(TextScores& scores, std::vector<eval::WindowScore> windows,
                std::span<const eval::WindowScore> exact);

// A row of Table 1: all experts rounded, everything computed as one prompt.
struct QuantiserCell : TextScores {
  std::string quantiser;  // of codec::quantiser_variants()
  codec::SliceBits bits;
  double sqnr_db = 0;  // of normal weights (SPEC §7.4): arithmetic, and there where all else is broken
};

// One way to run the model. Broken: nothing but the setting.
struct TrainedPoint : TextScores {
  double setting = 0;                         // the limit, λ, θ or κ
  double hbn = 0;                             // bytes missed of the bytes at b_high of all that was asked for
  double msb_missed = 0, lsb_missed = 0;      // shares of slices asked for
  double low_share = 0;                       // of a token's weight, computed low
  double own = 1;                             // share of the model's own choices that were used
  double bytes = 0, joules = 0, seconds = 0;  // a decode token; on the modelled machine
};
struct TrainedCurve {
  std::string name;
  std::vector<TrainedPoint> points;  // by setting
};

inline constexpr double kErrors = 2;  // standard errors beyond which a difference counts

// Whether another setting does better than the default: loses less by more than kErrors standard errors
// of the paired difference, and reads no more. What is broken is not compared.
struct SweepVerdict {
  double standard = 0;         // the default
  std::vector<double> better;  // settings
};
SweepVerdict verdict_of(const std::vector<TrainedPoint>& points, double standard);

// Of one pair of slices.
struct TrainedSlices {
  codec::SliceBits bits;
  Bytes cache_bytes = 0;
  TrainedCurve high_bit, low_bit;    // L-F2: by λ
  std::vector<TrainedCurve> limits;  // L-F8: high, low (8/4 alone), AMAT-only, DBSC+AMAT, +PCW
  TrainedCurve theta_free, theta_limited, kappa;
};

// Slices against Cache-Prior at high precision where both lose as much (L-F9); none where one of them is
// broken.
struct EqualAccuracy {
  double energy_ratio = 0, time_ratio = 0;
  bool inside = false;  // of the sweep of the other; else it is compared at its nearest end
};
std::optional<EqualAccuracy> at_equal_accuracy(const TrainedCurve& high, const TrainedPoint& slices);

struct TrainedResults {
  std::string model;  // its name
  double parameters = 0;
  std::uint64_t quantiser_tokens = 0, windows = 0, tokens = 0, scored = 0;
  std::size_t window = 0, prompt = 0;
  double cache_share = 0;                           // of all experts at high precision
  double quantiser_perplexity = 0, perplexity = 0;  // of the exact model
  std::vector<QuantiserCell> quantisers;
  std::vector<TrainedSlices> slices;
  std::vector<HotOverlap> overlap;
  std::vector<CriticalShares> critical;
  std::uint64_t decode_tokens = 0;  // behind critical; overlap: the first kEarlySteps of each window
  Bytes work_bytes = 0;             // that variants took on disk, at most at a time
};

// Beside options.memory it keeps logits of the exact model: 4 bytes × vocabulary × scored tokens, of Table 1
// and then of the windows, never of both; and what RoutingRecorder keeps of the windows, for a while. Leaves
// nothing behind in `work`, also where it fails. Error(kInvalid) for a text of fewer than two windows, and
// for a model whose own logits are no numbers;
// (kUnsupported) for a model without experts, or with an encoder; as store::pack and
// store::write_rounded_copy of the directory, and Engine; (kInterrupted).
TrainedResults measure_trained(const TrainedSettings& settings);

Json to_json(const TrainedResults& results);

}  // namespace sluice::lab
