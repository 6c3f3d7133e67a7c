#include "trace/rank_windows.h"

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"

namespace sluice::trace {
namespace {}  // namespace

std::vector<experts::RankWindow> rank_windows(RoutingTrace& trace, const std::function<bool()>& stop) {
  const TraceHeader& header = trace.header();
  std::vector<experts::RankWindow> windows;  // by sequence, then layer
  TraceEvent event;
  std::size_t number = 0;
  const auto count = [&](std::uint32_t sequence, std::uint32_t first, std::uint32_t tokens) {
    const std::size_t place = std::size_t{sequence} * header.layers + event.layer;
    if (place >= windows.size()) windows.resize((std::size_t{sequence} + 1) * header.layers);
    experts::RankWindow& window = windows[place];
    window.counts.resize(header.experts);
    window.steps += tokens;
    for (std::uint32_t c = event.begin[first]; c < event.begin[first + tokens]; ++c)
      window.counts[event.choices[c].expert] += 1;
  };
  while (trace.next(event)) {
    stop_if(stop, number++);
    std::uint32_t first = 0;
    for (const SequenceMark& mark : event.sequences) {
      count(mark.sequence, first, mark.tokens);
      first += mark.tokens;
    }
    if (event.sequences.empty()) count(0, 0, event.tokens);
  }
  return windows;
}

std::vector<double> recorded_ranks(RoutingTrace& trace, const std::function<bool()>& stop) {
  const std::vector<experts::RankWindow> windows = rank_windows(trace, stop);
  experts::RankProfile profile = experts::make_rank_profile(windows, trace.header().top_k);
  if (profile.used == 0)
    throw Error(ErrorKind::kInvalid, "the trace has too few tokens to plan with")
        .in(trace.path())
        .expected("a sequence of at least 64 tokens")
        .found(windows.empty() ? "no whole step" : "shorter ones alone")
        .fix("record a longer run: sluice trace " + flag(Setting::kPredict) + " 200");
  return std::move(profile.f);
}

}  // namespace sluice::trace
