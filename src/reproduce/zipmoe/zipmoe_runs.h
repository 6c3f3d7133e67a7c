// The runs behind ZipMoE's rows: prompts, budgets, and comparisons of presets under them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/compare.h"
#include "reproduce/zipmoe/zipmoe.h"

namespace sluice::reproduce {

// Thread-compatible. `settings` must outlive it.
class ZipmoeRuns {
 public:
  // Error(kUsage) for outputs longer than the model's positions.
  explicit ZipmoeRuns(const ZipmoeSettings& settings);

  const ZipmoeSettings& settings() const { return settings_; }
  const engine::EngineOptions& options() const { return options_; }  // for one prompt and tokens()
  std::size_t tokens() const { return tokens_; }
  unsigned repeats() const { return repeats_; }  // repeats of each run
  const std::vector<std::size_t>& batches() const { return batches_; }
  const std::vector<std::size_t>& lengths() const { return lengths_; }  // lengths of outputs, ascending

  // Calls the settings' on_stage. Error(kInterrupted).
  void stage(const std::string& text) const;
  void check_interrupted() const;

  // Positions that the key/value cache needs when each of `batch` prompts continues by `tokens` tokens, as
  // `sluice compare` reserves them.
  std::size_t positions(std::size_t batch, std::size_t tokens) const;
  std::vector<engine::GenerateRequest> requests(std::size_t batch, std::size_t tokens) const;

  lab::Comparison compare(const std::string& what, const std::vector<std::string>& presets, Bytes budget,
                          std::size_t batch, std::size_t tokens);
  // The command line for the same runs as compare().
  std::string compare_command(const std::vector<std::string>& presets, Bytes budget, std::size_t batch,
                              std::size_t tokens) const;
  bool all_same() const { return all_same_; }  // texts of all comparisons so far are equal
  // The profile that the comparisons measured for the packed model; empty before the first that needed it.
  std::optional<engine::Profile> profile() const { return comparer_.profile(*settings_.packed.checkpoint); }

  // The budget under which the cache holds this share of all experts in full. Makes engines to find it.
  Bytes budget_for(double share) const;

 private:
  std::vector<tokenizer::TokenId> prompt(std::size_t index) const;

  const ZipmoeSettings& settings_;
  std::size_t tokens_;
  unsigned repeats_;
  std::vector<std::size_t> batches_, lengths_;
  engine::EngineOptions options_;
  lab::Comparer comparer_;
  bool all_same_ = true;
};

}  // namespace sluice::reproduce
