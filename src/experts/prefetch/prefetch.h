// Prefetch policies: which parts of the next sparse layer to fetch while this layer computes. SPEC §2.3,
// §3.4.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/residency_view.h"
#include "experts/routing/router.h"

namespace sluice::experts {

// What is known once a layer has been routed. Non-owning.
struct LayerState {
  std::uint32_t layer = 0;    // sparse layer that was routed
  std::uint32_t layers = 0;   // sparse layers of the model
  std::uint32_t experts = 0;  // routed experts of a layer
  const Routing* routing = nullptr;
  const ResidencyView* residency = nullptr;  // logical
  // The scores that the next sparse layer's router gives the current state, which is not yet the state that
  // it will see. Null at the last sparse layer, and unless Prefetch::wants_next_scores().
  const ScoresView* next = nullptr;
  std::uint32_t top_k = 0;
};

struct PartRequest {
  ExpertId id;
  Parts parts;
};

// Proposals run at the lowest priority, on idle links only, and change no state that affects results.
// Thread-compatible.
class Prefetch {
 public:
  virtual ~Prefetch() = default;
  // Appends what to fetch, most useful first; nothing at the last sparse layer. Called once the layer has
  // been routed. With next scores it is called again when the layer has been computed, because they are then
  // more certain: the later answer replaces the earlier one.
  virtual void propose(const LayerState& state, std::vector<PartRequest>& out) = 0;
  virtual bool wants_next_scores() const { return false; }
  virtual std::string name() const = 0;
};

std::unique_ptr<Prefetch> make_none_prefetch();
std::unique_ptr<Prefetch> make_all_next_prefetch();
std::unique_ptr<Prefetch> make_eam_prefetch();
std::unique_ptr<Prefetch> make_lookahead_prefetch();

}  // namespace sluice::experts
