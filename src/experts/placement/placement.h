// Placement policies: which compute unit runs each needed expert of a layer step. SPEC §2.5, §3.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experts/core/demand.h"
#include "experts/core/tier.h"

namespace sluice::experts {

struct Assignment {
  std::vector<Unit> unit;  // (experts)
};

// Thread-compatible.
class Placement {
 public:
  virtual ~Placement() = default;
  virtual void assign(const Demand& demand, Assignment& out) = 0;  // replaces `out`
  virtual std::string name() const = 0;
};

std::unique_ptr<Placement> make_host_placement();

}  // namespace sluice::experts
