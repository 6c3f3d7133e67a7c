// What the system says about this process.
#pragma once

#include "serve/metric_set.h"

namespace sluice::serve {

void add_process_metrics(MetricSet& set);

}  // namespace sluice::serve
