#include "trace/routing_script_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/shown_text.h"
#include "base/stop_request.h"
#include "trace/trace_input.h"

namespace sluice::trace {
namespace {

// Gathers the layers of each step, and adds its tokens to the script when all are there.
class Reader {
 public:
  Reader(experts::RoutingScript& script, experts::RoutingTiles& tiles, std::uint32_t layers)
      : script_(script), tiles_(tiles), layers_(layers) {}

  void add(const TraceEvent& event) {
    if (event.layer == 0) begin_step(event);
    for (std::uint32_t t = 0; t < event.tokens; ++t) {
      best_.assign(event.choices.begin() + event.begin[t], event.choices.begin() + event.begin[t + 1]);
      std::ranges::stable_sort(best_, std::ranges::greater(), &experts::Choice::weight);
      std::vector<std::uint16_t>& experts = choices_[t][event.layer];
      experts.clear();
      for (const experts::Choice& choice : best_) experts.push_back(choice.expert);
    }
    if (event.layer + 1 == layers_) end_step();
  }

 private:
  void begin_step(const TraceEvent& event) {
    if (choices_.size() < event.tokens) choices_.resize(event.tokens);
    for (std::uint32_t t = 0; t < event.tokens; ++t) choices_[t].resize(layers_);
    marks_.assign(event.sequences.begin(), event.sequences.end());
    if (!marks_.empty()) return;
    if (event.phase == TracePhase::kPrefill || unmarked_ == 0) ++unmarked_;
    marks_.push_back({unmarked_ - 1, event.tokens, 0});
  }

  void end_step() {
    std::uint32_t token = 0;
    for (const SequenceMark& mark : marks_) {
      while (script_.sequences() <= mark.sequence) script_.begin_sequence();
      for (std::uint32_t i = 0; i < mark.tokens; ++i, ++token) {
        script_.add_token(mark.sequence);
        for (std::uint32_t layer = 0; layer < script_.layers(); ++layer)
          script_.set(mark.sequence, layer, tiles_.experts(layer, mark.sequence, choices_[token]));
      }
    }
  }

  experts::RoutingScript& script_;
  experts::RoutingTiles& tiles_;
  const std::uint32_t layers_;  // the trace's
  std::vector<std::vector<std::vector<std::uint16_t>>>
      choices_;  // by token of the step and layer: best first
  std::vector<SequenceMark> marks_;
  std::uint32_t unmarked_ = 0;  // sequences so far of a trace without marks
  std::vector<experts::Choice> best_;
};

}  // namespace

std::shared_ptr<const experts::RoutingScript> read_routing_script(RoutingTrace& trace,
                                                                  const experts::RoutingShape& model,
                                                                  std::span<const std::uint32_t> layers,
                                                                  const std::function<bool()>& stop) {
  const TraceHeader& header = trace.header();
  const experts::RoutingShape recorded{header.layers, header.experts, header.top_k};
  experts::RoutingTiles tiles(recorded, model, layers);
  std::string source = shown_text(trace.path());
  if (const std::string rule = tiles.text(); !rule.empty())
    source += fmt::format(" ({} on {}: {})", shape_text(recorded), shape_text(model), rule);
  const auto script = std::make_shared<experts::RoutingScript>(model.layers, model.top_k, source);
  Reader reader(*script, tiles, header.layers);
  TraceEvent event;
  for (std::size_t number = 0; trace.next(event); ++number) {
    stop_if(stop, number);
    if (script->bytes() > kMostStepBytes)
      throw Error(ErrorKind::kInvalid, "the trace is too long to be played")
          .in(trace.path())
          .expected(fmt::format("routing of at most {} in memory", format_bytes(kMostStepBytes)))
          .found("more")
          .fix("play a part of it");
    reader.add(event);
  }
  std::size_t tokens = 0;
  for (std::size_t s = 0; s < script->sequences(); ++s) tokens += script->tokens(s);
  if (tokens == 0)
    throw Error(ErrorKind::kInvalid, "the trace has no whole step that could be played")
        .in(trace.path())
        .expected("routing of at least one token in all layers")
        .found("none")
        .fix("record a longer run");
  if (!trace.played().empty()) script->add_to_source(", itself " + trace.played());
  return script;
}

}  // namespace sluice::trace
