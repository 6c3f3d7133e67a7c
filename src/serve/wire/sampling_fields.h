// The fields of a request that say how tokens are drawn, and when an answer ends.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/backend.h"
#include "serve/wire/fields.h"

namespace sluice::serve {

// Those of OpenAI's API, with the extensions; seed: a random one where none is given.
Sampling read_sampling(const Fields& body, const Served& served);
// A string or an array of strings; empty strings and nulls are left out.
std::vector<std::string> read_stops(const Fields& body, std::string_view name);
std::uint64_t random_seed();

}  // namespace sluice::serve
