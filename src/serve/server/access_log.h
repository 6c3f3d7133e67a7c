// A line for each request.
#pragma once

#include <string>

#include "serve/http/request.h"
#include "serve/http/writer.h"

namespace sluice::serve {

// Without prompts, answers and keys; control characters are escaped. Without a newline.
std::string access_line(const http::Request& request, const http::AccessRecord& record, bool json);

}  // namespace sluice::serve
