// Measures what settings lose on more and more windows of a text, until it is known well enough, and which
// settings that takes. docs/quality-contract.md, "How it is measured".
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan/calibration_text.h"
#include "eval/state.h"
#include "eval/world_windows.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// Fewer scored tokens promise more than they know.
inline constexpr std::size_t kFewScored = 3000;

// How large an error of a loss may be: a tenth of the loss, or 0.002 nats (0.2 % of perplexity).
double enough_error(double loss);
bool is_known(const LossDifference& loss);  // its error is small enough

// How many windows are computed before anybody looks whether they are enough, the first time and behind so
// many windows: half as many again, and at least four more.
std::size_t next_look(std::size_t windows);

struct GrowingWindows {
  std::span<const tokenizer::TokenId> text;  // the most that is computed
  SteppedWindows windows;
  std::span<const engine::WorldPlan> plans;
  // Worlds whose losses are a curve that begins at 0, by what they change. Some need not be computed
  // (`later`, by world) until two neighbours that are differ so much that a line between them may be wrong:
  // by four times what an error may be of the larger loss.
  std::span<const std::vector<std::size_t>> curves = {};
  std::span<const std::uint8_t> later = {};  // empty: all are computed from the start
  using MakeEngine = std::function<std::unique_ptr<engine::Engine>()>;
  // The model that the plain windows are compared with; empty: nothing else.
  MakeEngine exact = {};
  MakeEngine of_worlds;         // for WorldWindows of the plans
  std::optional<double> hours;  // for this call, after which no window begins; empty: any time
  std::function<bool(std::size_t done, std::size_t all)> on_progress = {};  // tokens; false stops
};

struct GrownWindows {
  std::vector<WindowScore> exact;  // by window; empty without a model for it
  std::vector<WindowOfWorlds> windows;

  // Whether a world has as many windows as an error needs: four, or all.
  bool is_measured(std::size_t world) const;
  // What a world, or the plain windows, lose against the plain ones, or the exact ones. REQUIRES: a
  // window of the world
  LossDifference loss(std::size_t world) const;
  LossDifference plain_loss() const;
  // Over the windows that have the world.
  struct Means {
    double low = 0, mass = 0;    // over tokens of layers: low share; score mass lost
    double bytes_per_token = 0;  // bytes of experts
    std::size_t windows = 0;
  };
  Means means(std::size_t world) const;
  double perplexity(std::size_t world) const;  // over all windows, by the loss
  double plain_perplexity() const;
};

// Looks after each batch of windows where a curve needs worlds that wait, and which losses are known: those
// worlds are computed no further, and the work ends when all are that do not wait, and kFewScored tokens have
// been scored; or with the text, or the time. `state`
// keeps each window; what it has is not computed again, and counts for no time. Error(kInterrupted);
// Error(kInvalid) where there was no time for two windows; errors of the engines and of State.
GrownWindows grow_windows(const GrowingWindows& growing, State& state);

// The text of this many windows.
engine::CalibrationText calibration_text(std::span<const tokenizer::TokenId> text, const SteppedWindows& cut,
                                         std::size_t windows);

}  // namespace sluice::eval
