// Whether predictions of the next layer come true: which experts of most tokens were named, and how near the
// predicted input of a router was to the true one. DALI (Tables 2, 5, 8); SPEC §3.4. Runs, replays and
// `sluice reproduce` count with these classes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// Sums over layers of steps. The top x of a layer are the x experts with the most tokens, of those that some
// token chooses (top_by_workload): fewer where fewer are chosen.
struct PredictionCounts {
  std::uint64_t predicted = 0;  // experts in the predicted top x …
  std::uint64_t active = 0;     // … that some token really chose …
  std::uint64_t top = 0;        // … and that are in the true top x
  std::uint64_t wanted = 0;     // experts in the true top x
  double accuracy() const {     // 0 where nothing was predicted
    return wanted == 0 ? 0 : static_cast<double>(top) / static_cast<double>(wanted);
  }
  PredictionCounts& operator+=(const PredictionCounts& other);
};

// One prediction at a time. Allocates nothing once it has seen the largest layer. Thread-compatible.
class TopPrediction {
 public:
  // `named`: the predicted top x of the sparse layer; replaces what was predicted before.
  void expect(std::uint32_t layer, std::uint32_t x, std::span<const std::uint32_t> named);
  // The expected layer does not come next.
  void forget() { expects_ = false; }
  // (N) each: how many tokens have chosen an expert of the layer, and the sum or mean of the scores that all
  // tokens give it, which breaks ties. Zeros unless that layer was expected; it then is no more.
  PredictionCounts observe(std::uint32_t layer, std::span<const std::uint32_t> tokens,
                           std::span<const double> scores);

 private:
  bool expects_ = false;
  std::uint32_t layer_ = 0, x_ = 0;
  std::vector<std::uint32_t> named_, top_;
};

// The cosine of two vectors; 0 if one of them is 0. Sums are f64.
template <class A, class B>
double cosine(std::span<A> a, std::span<B> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// The cosines of predicted and true inputs of routers, by sparse layer. Keeps inputs of kTokens tokens: it
// looks at the first ones of each step. Thread-compatible.
class InputPrediction {
 public:
  static constexpr std::size_t kTokens = 4;

  InputPrediction(std::size_t layers, std::size_t width);

  // inputs: (T, d), what the router of the sparse layer is predicted to see; replaces what was predicted
  // before.
  void expect(std::size_t layer, std::span<const float> inputs);
  void forget() { tokens_ = 0; }
  // (T, d): what it sees. Does nothing unless that layer was expected; it then is no more.
  void observe(std::size_t layer, std::span<const float> inputs);

  // By sparse layer, the first one included, which nobody predicts: the mean over tokens; empty without any.
  struct Mean {
    double sum = 0;
    std::uint64_t tokens = 0;
    double value() const { return sum / static_cast<double>(tokens); }
  };
  std::span<const Mean> means() const { return means_; }

 private:
  const std::size_t width_;
  std::size_t layer_ = 0, tokens_ = 0;  // expected: of `inputs_`
  std::vector<float> inputs_;           // (kTokens, d)
  std::vector<Mean> means_;
};

}  // namespace sluice::experts
