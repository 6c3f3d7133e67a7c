// The name of a model in a request.
#pragma once

#include <cstdint>
#include <string>

#include "serve/wire/service.h"

namespace sluice::serve {

// What answers call the model: as the request does, or by its id. ApiError 404 for another name where the
// user wants names to be right.
std::string answered_model(const std::string& asked, const Service& service);
ApiError unknown_model(const std::string& asked);
std::int64_t now_seconds();  // since 1970

}  // namespace sluice::serve
