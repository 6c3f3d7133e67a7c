// DALI's prediction of the next layer: the input of its gate is that of this layer's, plus how much the two
// differ on the average of a calibration text. DALI (eq. 10, 11); SPEC §3.4. workload_forecast.h counts what
// is predicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// The mean difference from each sparse layer's gate input to the next one's. Thread-compatible.
class ResidualMean {
 public:
  // layers: sparse layers of the model; width: d of the gate's input. Allocates layers × d sums at once.
  ResidualMean(std::size_t layers, std::size_t width);

  // One token of the text: its gate inputs in `layer` and in the next one, (d) each. REQUIRES: layer + 1 <
  // layers.
  void add(std::size_t layer, std::span<const double> here, std::span<const double> next);
  // (d): the mean of `next - here` over the tokens so far; empty before the first. REQUIRES: layer + 1 <
  // layers.
  std::vector<double> mean(std::size_t layer) const;

 private:
  std::size_t width_;
  std::vector<double> sums_;           // (layers - 1, d)
  std::vector<std::uint64_t> tokens_;  // (layers - 1)
};

// The scores that the next layer's gate gives the predicted inputs. Memory is reused from call to call.
// Thread-compatible.
class ResidualPrediction {
 public:
  // inputs: (T, d), gate inputs of this layer; residual: (d); gate: (N, d), the next layer's.
  void predict(std::size_t tokens, std::size_t experts, std::span<const double> inputs,
               std::span<const double> residual, std::span<const double> gate);

  // (T, N) each, valid until the next predict(): the products, and their softmax over all N.
  std::span<const double> logits() const { return logits_; }
  std::span<const double> scores() const { return scores_; }

 private:
  std::vector<double> input_;  // (d) of one token
  std::vector<double> logits_, scores_;
};

}  // namespace sluice::experts
