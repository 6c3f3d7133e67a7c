// What the experts of one step cost each of its requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch/batch_request.h"
#include "engine/watch/event_account.h"

namespace sluice::engine {

// Adds to the statistics of the spans' requests as the step's layers run. Thread-compatible.
class PassAccount final : public EventAccount {
 public:
  // The statistics of each span, in the order of the step's spans; they must outlive this or its successor.
  // `beside`: another account that is told the same; may be null.
  void begin(std::vector<RequestStatistics*> statistics, EventAccount* beside = nullptr);
  // The span's request has ended: the others pay what the rest of the pass costs.
  void leave_out(std::size_t span) { statistics_[span] = nullptr; }
  void on_event(const Step& step, const EventCosts& costs) override;

 private:
  void count_demand(const Step& step, const EventCosts& costs);
  void share_reads(std::span<const fetch::ExpertRead> reads);

  EventAccount* beside_ = nullptr;
  std::vector<RequestStatistics*> statistics_;    // null: left out
  std::vector<std::vector<std::uint16_t>> used_;  // by span: its experts of the event, ascending
  std::vector<RequestStatistics*> sharers_, all_;
};

}  // namespace sluice::engine
