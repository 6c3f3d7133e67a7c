// Experts that come back from a device, into the memory of those that stay. Only for ExpertStore's own files.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "experts/cache/residency.h"
#include "fetch/memory/expert_buffers.h"
#include "fetch/memory/expert_table.h"
#include "fetch/memory/return_place.h"

namespace sluice::fetch {

// Experts that come back from a device. No other class touches experts in stage kReturning: a copy of the
// link still writes to their buffers. Thread-compatible. References must outlive it.
class ExpertReturns {
 public:
  ExpertReturns(ExpertTable& experts, ExpertBuffers& buffers) : experts_(experts), buffers_(buffers) {}
  // These, of the event that is prepared, in place of earlier ones.
  void expect(std::span<const experts::Placed> adopted) { expected_.assign(adopted.begin(), adopted.end()); }
  // As in ExpertStore.
  bool expects(experts::ExpertId id) const;
  std::optional<ReturnPlace> begin(experts::ExpertId id, bool in_regions);
  void end(experts::ExpertId id, bool complete);

 private:
  ExpertTable& experts_;
  ExpertBuffers& buffers_;
  std::vector<experts::Placed> expected_;  // not begun
};

}  // namespace sluice::fetch
