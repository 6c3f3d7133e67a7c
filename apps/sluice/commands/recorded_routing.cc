#include "commands/recorded_routing.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "engine/model_identity.h"
#include "streams/interrupt.h"
#include "streams/played_routing.h"
#include "trace/rank_windows.h"
#include "trace/routing_trace.h"

namespace sluice::app {
namespace {

Error other_model(const std::string& path, const std::string& expected, const std::string& found) {
  return Error(ErrorKind::kInvalid, "the trace was recorded from another model")
      .in(path)
      .expected(expected)
      .found(found)
      .fix("record this one: sluice trace MODEL");
}

}  // namespace

RecordedRouting read_routing(const std::string& path, const model::ModelConfig& config) {
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(path);
  const trace::TraceHeader& header = trace->header();
  const auto shape = [](std::uint32_t layers, std::uint32_t experts, std::uint32_t k) {
    return fmt::format("{} sparse layers of {} experts, top {}", layers, experts, k);
  };
  const std::string found = shape(header.layers, header.experts, header.top_k),
                    expected = shape(config.sparse_layers(), config.moe.experts, config.moe.top_k);
  if (found != expected) throw other_model(path, expected, found);
  RecordedRouting routing{trace::recorded_ranks(*trace, interrupted), header.identity};
  routing.played = trace->played();
  tell_played(path, routing.played);
  return routing;
}

void check_identity(const RecordedRouting& routing, const std::string& path, const engine::Engine& engine) {
  if (!routing.identity) return;
  const std::uint64_t expected = engine::model_identity(engine);
  if (*routing.identity != expected)
    throw other_model(path, "model " + hex64(expected), "model " + hex64(*routing.identity));
}

}  // namespace sluice::app
