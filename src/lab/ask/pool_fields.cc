#include "lab/ask/pool_fields.h"

#include <limits>

namespace sluice::lab {

experts::PoolSlots parse_slots(const JsonObject& line, std::string_view key) {
  const JsonObject object = line.object(key);
  experts::PoolSlots slots;
  for (experts::State pool : experts::kPools) {
    slots[pool] = static_cast<std::uint32_t>(object.integer(letter(pool), 0, kMostInteger));
  }
  return slots;
}

experts::PerPool<double> parse_sizes(const JsonObject& line, std::string_view key) {
  const JsonObject object = line.object(key);
  experts::PerPool<double> sizes;
  for (experts::State pool : experts::kPools) {
    sizes[pool] = object.real(letter(pool), std::numeric_limits<double>::min(), kMostNumber);
  }
  return sizes;
}

}  // namespace sluice::lab
