#include "report/residency_picture.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string_view>

#include "base/wrapped_text.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/run_report.h"
#include "experts/core/state_order.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::app {
namespace {

constexpr const char* kNoColour = "\x1b[0m";

// One line a layer: signs of its experts, each of one column, in lines of at most `columns`.
class Picture {
 public:
  Picture(bool colour, std::size_t columns) : colour_(colour), columns_(columns) {}

  void begin_layer(std::uint32_t layer) {
    text_ += fmt::format("layer {:>3} ", layer);
    column_ = kIndent;
    last_ = nullptr;
  }
  void add(std::string_view sign, const char* colour) {
    if (column_ == columns_) {
      end_line();
      text_.append(kIndent, ' ');
      column_ = kIndent;
    }
    if (colour_ && colour != last_) text_ += colour;
    last_ = colour;
    text_ += sign;
    ++column_;
  }
  void end_line() {
    text_ += colour_ ? kNoColour + std::string("\n") : "\n";
    last_ = nullptr;
  }
  void explain(const std::string& text) {
    text_ += std::string(kIndent, ' ') + wrapped_text(text, columns_, kIndent, kIndent) + '\n';
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr std::size_t kIndent = 10;  // columns of "layer NNN "

  bool colour_;
  std::size_t columns_, column_ = 0;
  const char* last_ = nullptr;
  std::string text_;
};

constexpr const char *kGreen = "\x1b[32m", *kCyan = "\x1b[36m", *kGrey = "\x1b[90m", *kYellow = "\x1b[33m",
                     *kMagenta = "\x1b[35m";

// Calls `draw` with every expert, layer by layer.
template <class Draw>
void draw_layers(const engine::RunReport& run, Picture& picture, Draw draw) {
  const model::ModelConfig& config = run.model.config;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (!config.sparse[layer]) continue;
    picture.begin_layer(layer);
    for (std::uint32_t e = 0; e < config.moe.experts; ++e)
      draw(experts::ExpertId{static_cast<std::uint16_t>(config.sparse_index(layer)),
                             static_cast<std::uint16_t>(e)});
    picture.end_line();
  }
}

std::string slices_picture(const engine::RunReport& run, bool colour, std::size_t columns) {
  Picture picture(colour, columns);
  std::size_t high = 0, low = 0, none = 0;
  draw_layers(run, picture, [&](experts::ExpertId id) {
    const experts::Parts parts = run.experts.parts(id);
    const std::string_view sign = parts.has(experts::Part::kLsb) ? "H" : parts.empty() ? "·" : "l";
    ++(sign == "H" ? high : sign == "l" ? low : none);
    picture.add(sign, sign == "H" ? kGreen : sign == "l" ? kCyan : kGrey);
  });
  picture.explain(
      fmt::format("H both slices in memory: {}; l the MSB slice: {}; · on disk: {}", high, low, none));
  return picture.text();
}

}  // namespace

std::string residency_picture(const engine::RunReport& run, bool colour, std::size_t columns) {
  if (run.checkpoint.slices()) return slices_picture(run, colour, columns);
  using experts::State;
  Picture picture(colour, columns);
  std::map<State, std::size_t> count;
  std::size_t on_both = 0, on_device = 0;
  draw_layers(run, picture, [&](experts::ExpertId id) {
    const State state = experts::state_of(run.experts.parts(id));
    if (run.device != nullptr && run.device->holds(id)) {
      const bool alone = state == State::kM;
      ++(alone ? on_device : on_both);
      return picture.add(alone ? "d" : "D", kMagenta);
    }
    ++count[state];
    constexpr std::string_view kSigns = "FcseM";
    const std::size_t at = experts::place_of(state);
    picture.add(state == State::kM ? "·" : kSigns.substr(at, 1), state == State::kF   ? kGreen
                                                                 : state == State::kC ? kCyan
                                                                 : state == State::kM ? kGrey
                                                                                      : kYellow);
  });
  picture.explain(fmt::format("F in memory: {}; c in memory, packed: {}; · on disk: {}", count[State::kF],
                              count[State::kC], count[State::kM]));
  if (count[State::kS] + count[State::kE] > 0)
    picture.explain(
        fmt::format("in part: s sign+mantissa {}; e exponents {}", count[State::kS], count[State::kE]));
  if (run.device != nullptr)
    picture.explain(
        fmt::format("D on the device and in memory: {}; d on the device alone: {}", on_both, on_device));
  return picture.text();
}

}  // namespace sluice::app
