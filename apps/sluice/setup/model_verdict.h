// Whether this program runs a model, as far as its headers and its configuration tell.
#pragma once

#include <string>

#include "store/local/local_models.h"

namespace sluice::app {

// Why it does not; empty: nothing speaks against it. Reads no weights.
std::string why_not_run(const store::LocalModel& model);

}  // namespace sluice::app
