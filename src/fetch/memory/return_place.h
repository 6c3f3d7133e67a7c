// Where an expert that comes back from a device is to be written.
#pragma once

#include <cstddef>
#include <span>

namespace sluice::fetch {

struct ReturnPlace {
  std::span<std::byte> first, rest;  // the words; or the two regions of planes
};

}  // namespace sluice::fetch
