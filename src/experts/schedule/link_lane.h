// One lane of a modelled link: what it carries, one copy after the other, on a clock of its own. A link that
// is full duplex has two lanes, one for each way; one that is half duplex has one for both. HybridTimeline
// sends copies on them.
//
// Copies are cut into small chunks, so a copy gives way at once to one of a higher class and later goes on
// where it was. Copies of one class go in the order in which they were sent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experts/core/ids.h"

namespace sluice::experts {

// A prefetch or update that the link has brought.
struct LinkArrival {
  ExpertId id;
  double time = 0;
  bool is_update = false;
};

// How long the link was busy, by what it carried.
struct LinkUse {
  double loads = 0, rows = 0, prefetches = 0, updates = 0;
  double returns = 0;  // upwards
};

// Where a copy of an expert goes: to the device, or back to the host. An expert may be under way in both
// directions.
enum class LinkWay : std::uint8_t { kDown, kUp };

// Thread-compatible. Allocates nothing once it has seen the longest queue.
class LinkLane {
 public:
  // In order of priority; returns and updates are of one priority.
  enum class Class : std::uint8_t { kRows, kPrefetch, kUpdate, kReturn };
  struct Copy {
    ExpertId id;  // unused for rows
    Class kind = Class::kRows;
    double released = 0, time = 0;  // not carried before; on the link, alone
    double left = time;
  };

  // The lane has been followed up to here.
  double time() const { return time_; }
  void send(const Copy& copy) { copies_.push_back(copy); }
  // What is left of the expert's copy; empty if it has arrived, or was never sent.
  std::optional<double> left(ExpertId id, LinkWay way) const;
  // Nothing is sent that has not arrived.
  bool idle() const { return copies_.empty(); }
  // Takes it off the lane: what is left is not carried any more.
  std::optional<double> take(ExpertId id, LinkWay way);
  // Takes off the prefetches that have not started; says how many they were.
  std::uint64_t take_unstarted_prefetches();
  // Carries something of the highest priority now, for so long; says when it has arrived.
  double carry_at_once(double time, double LinkUse::*what);
  // Carries what was sent, up to that time; or as far as the end of the host's rows, which it returns. Does
  // nothing if the lane has been followed further.
  void carry(double until);
  double carry_rows();

  // Since the last clear_arrivals(), in order.
  std::span<const LinkArrival> arrivals() const { return arrivals_; }
  void clear_arrivals() { arrivals_.clear(); }
  const LinkUse& use() const { return use_; }

 private:
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

  std::vector<Copy>::const_iterator find(ExpertId id, LinkWay way) const;
  bool has_rows() const;
  // Carries one copy until it has ended, or gives way, or that time comes.
  void carry_one(double until);
  // The copy that is carried at that time, or kNothing; lowers `until` to the first release that changes the
  // answer.
  std::size_t carried_at(double time, double& until) const;

  double time_ = 0;
  double rows_end_ = 0;
  std::vector<Copy> copies_;  // in the order in which they were sent
  std::vector<LinkArrival> arrivals_;
  LinkUse use_;
};

}  // namespace sluice::experts
