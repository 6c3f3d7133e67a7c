#include "trace/choice_counts.h"

#include "base/stop_request.h"

namespace sluice::trace {

std::vector<std::vector<double>> choice_counts(RoutingTrace& trace, const std::function<bool()>& stop) {
  const TraceHeader& header = trace.header();
  std::vector<std::vector<double>> counts(header.layers, std::vector<double>(header.experts));
  TraceEvent event;
  for (std::size_t number = 0; trace.next(event); ++number) {
    stop_if(stop, number);
    for (const experts::Choice& choice : event.choices) counts[event.layer][choice.expert] += 1;
  }
  return counts;
}

}  // namespace sluice::trace
