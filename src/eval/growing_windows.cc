#include "eval/growing_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/setting.h"
#include "base/stopwatch.h"
#include "engine/engine.h"
#include "eval/identity.h"

namespace sluice::eval {
namespace {

constexpr double kKnownShare = 0.1, kKnownNats = 0.002;
constexpr std::size_t kLeastWindows = 4;  // for an error that means something

enum class Stand : std::uint8_t { kWaits, kRuns, kKnown };

// Does the work of grow_windows(). In the state, each batch has the exact scores of its windows, where there
// is a model for them, and then its windows.
class Grower {
 public:
  Grower(const GrowingWindows& growing, State& state)
      : growing_(growing), state_(state), stands_(growing.plans.size(), Stand::kRuns) {
    for (std::size_t i = 0; i < growing.later.size(); ++i)
      if (growing.later[i] != 0) stands_[i] = Stand::kWaits;
  }

  GrownWindows grow() {
    const std::size_t count = growing_.windows.count(growing_.text.size());
    while (!is_late_ && grown_.windows.size() < count && !is_enough())
      add_batch(std::min(next_look(grown_.windows.size()), count));
    grown_.exact.resize(growing_.exact ? grown_.windows.size() : 0);
    if (grown_.windows.size() < 2)
      throw Error(ErrorKind::kInvalid, "the time is too short: the error of a loss comes from its windows")
          .in(Setting::kHours)
          .expected("time for at least 2 windows")
          .found(fmt::format("time for {}", grown_.windows.size()))
          .fix("give more " + Setting::kHours +
               (state_.path().empty() ? ""
                                      : ": what is done is in " + state_.path() + " and counts for none"));
    return std::move(grown_);
  }

 private:
  void add_batch(std::size_t end) {
    if (growing_.exact) {
      std::unique_ptr<engine::Engine> engine;
      while (!is_late_ && grown_.exact.size() < end) add_exact(engine);
    }
    std::unique_ptr<engine::Engine> engine;
    while (!is_late_ && grown_.windows.size() < end) add_window(engine);
  }

  void add_exact(std::unique_ptr<engine::Engine>& engine) {
    const std::size_t w = grown_.exact.size();
    if (const Json* const found = next_found()) {
      grown_.exact.push_back(window_score_from_json(*found, Compared::kNo, name_of_found()));
    } else if (is_in_time()) {
      if (!engine) engine = growing_.exact();
      const std::span<const tokenizer::TokenId> window = window_at(w);
      grown_.exact.push_back(score_windows(*engine, window, growing_.windows, false, [&](std::size_t) {
                               return go_on(0);
                             }).at(0));
      state_.add(to_json(grown_.exact.back()));
    }
  }

  void add_window(std::unique_ptr<engine::Engine>& engine) {
    const std::size_t w = grown_.windows.size();
    if (const Json* const found = next_found()) {
      grown_.windows.push_back(window_of_worlds_from_json(*found, name_of_found(), stands_.size()));
    } else if (is_in_time()) {
      if (!engine) engine = growing_.of_worlds();
      WorldWindows windows(*engine, growing_.plans, growing_.windows);
      std::vector<std::uint8_t> wanted;
      for (const Stand stand : stands_) wanted.push_back(stand == Stand::kRuns ? 1 : 0);
      grown_.windows.push_back(
          windows.score(growing_.text, w, wanted, [&](std::size_t taken) { return go_on(taken); }));
      state_.add(to_json(grown_.windows.back()));
      go_on(0);
    }
  }

  // Whether nothing is left to learn. Settles which worlds are computed further.
  bool is_enough() {
    if (grown_.windows.size() < kLeastWindows) return false;
    for (const std::vector<std::size_t>& curve : growing_.curves) start_between(curve);
    if (growing_.windows.scored(grown_.windows.size() * growing_.windows.window) < kFewScored) return false;
    for (std::size_t i = 0; i < stands_.size(); ++i)
      if (stands_[i] == Stand::kRuns && grown_.is_measured(i) && is_known(grown_.loss(i)))
        stands_[i] = Stand::kKnown;
    const bool plain = !growing_.exact || is_known(grown_.plain_loss());
    return plain && std::ranges::find(stands_, Stand::kRuns) == stands_.end();
  }

  // Starts the middle one of the worlds that wait between two others, where it is needed.
  void start_between(const std::vector<std::size_t>& curve) {
    std::optional<double> before = 0;  // the loss of the last world that does not wait
    std::size_t begin = 0;             // those behind it
    for (std::size_t end = 0; end < curve.size(); ++end) {
      const std::size_t world = curve[end];
      if (stands_[world] == Stand::kWaits) continue;
      std::optional<double> loss;  // empty: it has just begun
      if (grown_.is_measured(world)) loss = grown_.loss(world).loss;
      if (before && loss && begin<end&& * loss - *before> 4 * enough_error(*loss))
        stands_[curve[(begin + end) / 2]] = Stand::kRuns;
      before = loss;
      begin = end + 1;
    }
  }

  const Json* next_found() { return used_ < state_.found().size() ? &state_.found()[used_++] : nullptr; }
  std::string name_of_found() const { return fmt::format("{}, result {}", state_.path(), used_); }

  bool is_in_time() {
    is_late_ = growing_.hours && watch_.seconds() > *growing_.hours * 3600;
    return !is_late_;
  }

  bool go_on(std::size_t taken) const {
    if (!growing_.on_progress) return true;
    const std::size_t all = growing_.text.size();
    return growing_.on_progress(std::min(grown_.windows.size() * growing_.windows.window + taken, all), all);
  }

  std::span<const tokenizer::TokenId> window_at(std::size_t w) const {
    const std::size_t begin = w * growing_.windows.window;
    return growing_.text.subspan(begin, std::min(growing_.windows.window, growing_.text.size() - begin));
  }

  const GrowingWindows& growing_;
  State& state_;
  const Stopwatch watch_;
  bool is_late_ = false;
  std::vector<Stand> stands_;  // by world
  std::size_t used_ = 0;       // results of the state
  GrownWindows grown_;
};

std::vector<WindowScore> plain_scores(const GrownWindows& grown) {
  std::vector<WindowScore> scores;
  for (const WindowOfWorlds& window : grown.windows) scores.push_back(window.plain);
  return scores;
}

}  // namespace

double enough_error(double loss) { return std::max(kKnownNats, kKnownShare * loss); }

bool is_known(const LossDifference& loss) { return loss.error <= enough_error(loss.loss); }

std::size_t next_look(std::size_t windows) { return windows + std::max<std::size_t>(4, windows / 2); }

bool GrownWindows::is_measured(std::size_t world) const {
  const auto count = static_cast<std::size_t>(std::ranges::count_if(
      windows, [&](const WindowOfWorlds& window) { return window.worlds[world].has_value(); }));
  return count >= std::min(kLeastWindows, windows.size());
}

LossDifference GrownWindows::loss(std::size_t world) const {
  std::vector<WindowScore> changed, reference;
  for (const WindowOfWorlds& window : windows) {
    if (!window.worlds[world]) continue;
    changed.push_back(window.worlds[world]->window);
    reference.push_back(window.plain);
  }
  return difference(changed, reference);
}

LossDifference GrownWindows::plain_loss() const { return difference(plain_scores(*this), exact); }

GrownWindows::Means GrownWindows::means(std::size_t world) const {
  experts::WorldCounts sum;
  Means means;
  for (const WindowOfWorlds& window : windows) {
    if (!window.worlds[world]) continue;
    const experts::WorldCounts& one = window.worlds[world]->counts;
    means.windows += 1;
    sum.tokens += one.tokens;
    sum.places += one.places;
    sum.low += one.low;
    sum.mass += one.mass;
    sum.bytes += one.bytes;
  }
  const auto mean = [](double all, std::uint64_t count) {
    return count == 0 ? 0 : all / static_cast<double>(count);
  };
  means.low = mean(sum.low, sum.places);
  means.mass = mean(sum.mass, sum.places);
  means.bytes_per_token = mean(static_cast<double>(sum.bytes), sum.tokens);
  return means;
}

double GrownWindows::plain_perplexity() const { return eval::perplexity(plain_scores(*this)); }

double GrownWindows::perplexity(std::size_t world) const {
  return plain_perplexity() * std::exp(loss(world).loss);
}

GrownWindows grow_windows(const GrowingWindows& growing, State& state) {
  try {
    GrownWindows grown = Grower(growing, state).grow();
    state.save();
    return grown;
  } catch (...) {
    state.save();
    throw;
  }
}

engine::CalibrationText calibration_text(std::span<const tokenizer::TokenId> text, const SteppedWindows& cut,
                                         std::size_t windows) {
  const std::span<const tokenizer::TokenId> used = text.first(std::min(text.size(), windows * cut.window));
  return {.sha256 = sha256_of(used),
          .tokens = used.size(),
          .scored = cut.scored(used.size()),
          .windows = cut.count(used.size()),
          .window = cut.window,
          .prompt = cut.prompt};
}

}  // namespace sluice::eval
