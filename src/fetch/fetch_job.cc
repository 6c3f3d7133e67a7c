#include "fetch/fetch_job.h"

namespace sluice::fetch {

void FetchJob::clear() {
  request = {};
  graph_.clear();
  urgency_ = Urgency::kDemand;
  withdrawn_ = false;
  begun_ = in_flight_ = 0;
  reads_in_flight_ = 0;
}

}  // namespace sluice::fetch
