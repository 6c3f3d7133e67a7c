// One expert on its way to a view, `bf16` or `packed`: a request, and what FetchExecutor knows about it.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "fetch/fetch_graph.h"
#include "fetch/fetch_request.h"

namespace sluice::fetch {

// The caller sets the request and leaves the job alone until the executor hands it back.
class FetchJob {
 public:
  FetchRequest request;

  void clear();  // as new, but keeps its memory
  // Bytes of its reads given to the disk. Not while it is under way.
  Bytes begun() const { return begun_; }
  // It was withdrawn, or failed without being demanded: what it made must not be used. Not while it is under
  // way.
  bool given_up() const { return withdrawn_; }

 private:
  friend class FetchExecutor;
  friend class ReadQueue;

  FetchGraph graph_;
  Urgency urgency_ = Urgency::kDemand;
  bool withdrawn_ = false;
  Bytes begun_ = 0;  // bytes of its reads given to the disk …
  Bytes in_flight_ = 0;
  std::uint32_t reads_in_flight_ = 0;  // … and not yet processed
};

// A tensor of a job, in the order of a schedule.
struct FetchTask {
  FetchJob* job = nullptr;
  std::uint16_t tensor = 0;
};

}  // namespace sluice::fetch
