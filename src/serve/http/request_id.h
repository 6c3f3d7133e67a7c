// Names that nobody can guess or meet twice.
#pragma once

#include <string>
#include <string_view>

namespace sluice::serve::http {

// `prefix` and this many of [0-9A-Za-z]. Thread-safe.
std::string random_name(std::string_view prefix, std::size_t letters);
inline std::string new_request_id() { return random_name("req_", 24); }

}  // namespace sluice::serve::http
