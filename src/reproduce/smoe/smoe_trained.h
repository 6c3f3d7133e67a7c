// SMoE on a trained model: what its routing is like, how well the partial state predicts the next layer, and
// what the router costs. SPEC §6.2: S-F18, S-T3, S-fig.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/options.h"
#include "lab/replay/routed_steps.h"
#include "lab/replay/synthetic_routing.h"
#include "reproduce/smoe/rank_figures.h"
#include "reproduce/smoe/top_score_accuracy.h"

namespace sluice::reproduce {

struct SmoeTrainedSettings {
  std::string model;              // a Hugging Face directory or a packed store
  std::string text;               // a text that the model has not been trained on
  engine::EngineOptions options;  // memory, threads, instruction set and reads, for all runs
  std::size_t windows = 8;        // each has 256 tokens behind each other; 64 of each are a prompt
  std::vector<double> alphas = {.1, .25, .35, .6};
  std::vector<double> caches = {.25, .5};  // shares of all experts
  std::function<bool()> interrupted;       // may be empty
};

// The text with one alpha and memory for one share of all experts, against the exact router.
struct SmoeLoss {
  double alpha = 0, cache = 0;
  double moved = 0;            // share of all scores that replaced experts had
  double loss = 0, error = 0;  // loss of perplexity, as a share, and its standard error
  double divergence = 0;       // KL, nats
  double agreement = 0;        // share of equal likeliest tokens
};

struct SmoeTrained {
  std::string model;
  std::size_t windows = 0, scored = 0;  // scored tokens
  double perplexity = 0;                // with the exact router
  // As the model routes: decoded tokens with all scores, and what the partial state predicted of each next
  // layer where the host held kHeld of all experts.
  lab::RoutedSteps routing;
  lab::RoutingFacts facts;
  RankFigures ranks;
  TopScoreAccuracy accuracy;  // with kAccuracyAlpha
  std::vector<SmoeLoss> losses;

  static constexpr double kHeld = .31, kAccuracyAlpha = .25;
};
Json to_json(const SmoeTrained& trained);

// Error(kUnsupported) for a model without two sparse layers, or an encoder-decoder; (kInvalid) for a text of
// fewer than two windows; otherwise errors as Engine; (kInterrupted).
SmoeTrained measure_smoe_trained(const SmoeTrainedSettings& settings);

}  // namespace sluice::reproduce
