// How well DALI's prediction works on a trained model: which experts of the next layer it names, and how near
// its input is to the true one. One text calibrates, others are measured. SPEC §3.4; rows D-T2, D-T5, D-T8.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/options.h"

namespace sluice::reproduce {

struct DaliTrainedSettings {
  std::string model;  // a Hugging Face directory or a packed store
  std::string text;   // its first half calibrates, its second half is measured
  struct Text {
    std::string name, text;
  };
  std::vector<Text> others = {};  // also measured
  engine::EngineOptions options;  // memory, threads, instruction set and reads
  std::size_t tokens = 0;         // tokens of each half and text, at most
  std::vector<std::uint32_t> batches = {1, 8, 16, 32};
  std::vector<std::uint32_t> tops = {1, 2, 4, 8};  // experts that are named
  std::function<bool()> interrupted;               // may be empty
};

// |named ∩ the experts of most tokens| / number of these, mean over layers behind the first and over steps.
// A step has one token of each of `batch` stretches of the text.
struct DaliAccuracy {
  std::string text, prefetch;
  std::uint32_t batch = 0, top = 0;
  double value = 0, error = 0;  // standard error over sixteen blocks of steps
};

struct DaliTrained {
  std::string model;
  std::uint32_t layers = 0, experts = 0, top_k = 0;
  std::size_t calibrated = 0, measured = 0;  // tokens of the two halves
  // By sparse layer but the last: cosine of its gate input, as it is and with the residual, with the next
  // layer's; mean over tokens.
  std::vector<double> cosine_raw, cosine_residual;
  std::vector<DaliAccuracy> accuracies;

  // REQUIRES: it was measured.
  const DaliAccuracy& find(const std::string& text, const std::string& prefetch, std::uint32_t batch,
                           std::uint32_t top) const;
};
Json to_json(const DaliTrained& trained);

inline constexpr const char* kDaliHeldOut = "held-out half";

// Error(kUnsupported) for a model without two sparse layers, or an encoder-decoder; (kInvalid) for a text
// that is too short; otherwise errors as Engine.
DaliTrained measure_dali(const DaliTrainedSettings& settings);

}  // namespace sluice::reproduce
