// How well a model predicts a text, and how far it is from another model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/json/json.h"
#include "eval/feed.h"
#include "eval/windows.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// The score of one window.
struct WindowScore {
  std::uint64_t predicted = 0;  // tokens scored
  double nll = 0;               // −ln of their probabilities, summed, in nats
  // With a reference:
  double reference_nll = 0;
  std::uint64_t same_top = 0;           // positions where both would choose the same token
  std::vector<double> divergence = {};  // KL(reference ‖ model) of each scored position, in nats
};

Json to_json(const WindowScore& score);
// Error(kInvalid) naming `name` unless the JSON is a score, with a comparison or without, as asked.
enum class Compared { kNo, kYes };
WindowScore window_score_from_json(const Json& json, Compared compared, const std::string& name);

// Scores windows one after the other. The engines must outlive it. Thread-compatible.
class TextScorer {
 public:
  // Tokens of a window below `prompt` go in chunks, the others one by one (feed()).
  TextScorer(engine::Engine& model, std::size_t prompt = kAllOfIt);
  ~TextScorer();
  // Compares the model with `reference`, whose logits are made first, for at most `rows` positions at a time,
  // and kept until the model's logits come: rows × vocabulary × 4 bytes. Both vocabularies must have one
  // size. The reference always computes a window in chunks.
  void compare_with(engine::Engine& reference, std::size_t rows);

  // Calls `go_on` at every scored position: Error(kInterrupted) when it returns false.
  WindowScore score(std::span<const tokenizer::TokenId> text, const Window& window,
                    const std::function<bool()>& go_on);

 private:
  engine::Engine& model_;
  engine::Engine* reference_ = nullptr;
  std::size_t prompt_;
  std::unique_ptr<engine::Sequence> sequence_, reference_sequence_;
  std::size_t block_ = kAllOfIt;         // tokens that both models take before the next ones
  std::vector<float> reference_logits_;  // (block_, vocabulary)
};

struct Quantiles {
  double mean = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, most = 0, least = 0;
};
Quantiles quantiles(std::vector<double> values);  // at least one value

// Totals of all windows, in their order: the same sums even if the work was interrupted.
struct TextScore {
  std::uint64_t predicted = 0;
  double nll = 0;
  double perplexity() const;  // exp(nll / predicted)
  double bits_per_byte(Bytes text_bytes) const;
  // With a reference:
  double reference_nll = 0;
  double reference_perplexity() const;
  double top_agreement = 0;  // share of positions
  std::optional<Quantiles> divergence;
};
TextScore sum(std::span<const WindowScore> windows);

}  // namespace sluice::eval
