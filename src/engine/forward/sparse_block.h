// What a layer does with its routed experts: all of it, or only as much as a prediction needs.
#pragma once

#include <cstddef>

#include "engine/forward/common/workspace.h"
#include "engine/session/step.h"
#include "model/architecture.h"

namespace sluice::engine {

class SparseBlock {
 public:
  virtual ~SparseBlock() = default;
  // Needs w.normed, which is w.hidden after `norm`, and w.arranged in the forms that dense matrices read.
  // Leaves in w.branch what is to be added to w.hidden.
  virtual void run(std::size_t layer, model::Role norm, const Step& step, const Workspace& w) = 0;
};

}  // namespace sluice::engine
