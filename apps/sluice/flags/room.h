// The room of a replayed cache as it is typed.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::app {

struct Room {
  std::uint64_t amount = 0;
  bool bytes = false;  // else experts
};

// "64": experts; "4GiB": bytes. Error(kUsage) naming Setting::kCapacity.
Room parse_room(const std::string& text);

}  // namespace sluice::app
