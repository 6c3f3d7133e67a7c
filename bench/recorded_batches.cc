#include "recorded_batches.h"

#include "trace/routing_trace.h"

namespace sluice::bench {

RecordedBatches::RecordedBatches(const std::string& path) {
  const auto trace = trace::open_trace(path);
  experts_ = trace->header().experts;
  layers_ = trace->header().layers;
  for (trace::TraceEvent event; trace->next(event);) {
    std::uint32_t token = 0;
    for (const trace::SequenceMark& mark : event.sequences) {
      if (mark.sequence >= ids_.size()) {
        ids_.resize(mark.sequence + std::size_t{1});
        ends_.resize(mark.sequence + std::size_t{1});
      }
      ids_[mark.sequence].resize(layers_);
      ends_[mark.sequence].resize(layers_);
      std::vector<std::uint16_t>& ids = ids_[mark.sequence][event.layer];
      for (std::uint32_t t = 0; t < mark.tokens; ++t, ++token) {
        for (std::uint32_t c = event.begin[token]; c < event.begin[token + 1]; ++c)
          ids.push_back(event.choices[c].expert);
        ends_[mark.sequence][event.layer].push_back(static_cast<std::uint32_t>(ids.size()));
      }
    }
  }
}

std::size_t RecordedBatches::batch(std::size_t sequences) {
  steps_.clear();
  std::vector<Token> running;
  std::size_t next = 0;
  while (true) {
    std::erase_if(running, [&](const Token& one) { return one.token == tokens(one.sequence); });
    while (running.size() < sequences && next < ids_.size()) running.push_back({next++, 0});
    if (running.size() < sequences) return steps_.size();
    steps_.push_back(running);
    for (Token& one : running) ++one.token;
  }
}

void RecordedBatches::count(std::size_t step, std::size_t layer, std::vector<std::uint32_t>& out) const {
  out.assign(experts_, 0);
  for (const auto& [sequence, token] : steps_[step]) {
    const std::vector<std::uint32_t>& ends = ends_[sequence][layer];
    for (std::size_t c = token == 0 ? 0 : ends[token - 1]; c < ends[token]; ++c)
      ++out[ids_[sequence][layer][c]];
  }
}

}  // namespace sluice::bench
