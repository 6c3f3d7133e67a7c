// {F, C, S, E}: one value per pool, as several functions of the lab read and write it.
#pragma once

#include "experts/core/pools.h"
#include "lab/ask/fields.h"

namespace sluice::lab {

// All four keys are required. Slots are integers >= 0, sizes numbers > 0.
experts::PoolSlots parse_slots(const JsonObject& line, std::string_view key);
experts::PerPool<double> parse_sizes(const JsonObject& line, std::string_view key);

// "F", "C", "S", "E" or "M".
inline std::string letter(experts::State state) { return std::string(1, static_cast<char>(state)); }

template <class T>
Json by_pool(const experts::PerPool<T>& values) {
  Json json = Json::object();
  for (experts::State pool : experts::kPools) json[letter(pool)] = values[pool];
  return json;
}

}  // namespace sluice::lab
