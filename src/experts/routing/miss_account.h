// The bytes that a run had to read of its experts' slices, and the miss rate normalised by whole experts.
// SliceMoE; SPEC §4.4.
#pragma once

#include <cstdint>

#include "experts/cache/residency.h"

namespace sluice::experts {

struct MissAccount {
  double missed = 0;     // bytes read for events
  double requested = 0;  // bytes of their experts at high precision
  // Slices asked for, and slices that had to be read. An absent LSB that was asked for and not read is a
  // downgrade, not a miss.
  std::uint64_t msb_requests = 0, msb_misses = 0;
  std::uint64_t lsb_requests = 0, lsb_misses = 0, downgrades = 0;

  // Adds one event. `low` and `high`: the parts that make the two views of an expert; equal in families
  // without slices, where slices are not counted.
  void add(const EventOutcome& outcome, const ExpertSizes& sizes, Parts low, Parts high);
  MissAccount& operator+=(const MissAccount& other);

  double rate() const { return requested > 0 ? missed / requested : 0; }  // HBN miss rate
  double msb_rate() const { return share(msb_misses, msb_requests); }
  double lsb_rate() const { return share(lsb_misses, lsb_requests); }

 private:
  static double share(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
  }
};

}  // namespace sluice::experts
