// Records the routing of a run as a trace (docs/trace-format.md).
#pragma once

#include <map>
#include <vector>

#include "engine/model_identity.h"
#include "engine/watch/routing_observer.h"
#include "trace/trace_writer.h"

namespace sluice::engine {

class Engine;  // engine.h

// What a trace holds beside the routing, on request.
struct TraceExtras {
  bool ahead = false;        // what the engine predicts about each next layer
  bool gate_inputs = false;  // what the routers score
};

// The header of a trace of this engine's model.
trace::TraceHeader trace_header(const Engine& engine, const TraceExtras& extras = {});
// The content of the run record: cache, scope, capacity (bytes of each cache), keep, seed; pools; routing, if
// it is played.
Json run_record(const Engine& engine);

// Records what the writer's header names. A step that fails, for any reason, is not part of the trace: the
// next step, or the writer's close(), takes it back. Thread-compatible. `writer` must outlive it; the run
// record must have been written.
class TraceRecorder final : public RoutingObserver {
 public:
  explicit TraceRecorder(trace::TraceWriter& writer) : writer_(writer) {}
  void on_step(const Step& step) override;
  // Error(kUnsupported): a trace has whole steps, one after the other.
  void on_resume(const Step& step) override;
  void on_inputs(std::uint32_t sparse_layer, std::span<const float> inputs) override;
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override;
  bool wants_ahead() const override { return writer_.has_ahead(); }
  void on_ahead(std::string_view predictor, const experts::ScoresView& next) override;

 private:
  trace::TraceWriter& writer_;
  std::map<experts::SequenceId, std::uint32_t> sequences_;  // numbers; a sequence without tokens is new
  // Sequences from first_of_step_ on belong to the current step.
  std::uint32_t next_sequence_ = 0, first_of_step_ = 0;
  std::vector<trace::SequenceMark> marks_;
};

}  // namespace sluice::engine
