// The parts of an engine that its second compute unit is made of.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "codec/slices/sliced_matrix.h"
#include "kernels/context.h"
#include "kernels/products/scratch.h"

namespace sluice::fetch {
class ExpertStore;
}
namespace sluice::model {
struct ModelConfig;
}

namespace sluice::engine {

// What a compute unit may need of its engine, and must not outlive.
struct UnitParts {
  const kernels::Context& kernels;
  codec::SliceView low_view;  // that a lone MSB slice stands for
  const model::ModelConfig& config;
  fetch::ExpertStore& store;
  std::size_t tokens;  // the most of a step
  kernels::ScratchShape scratch;
  bool dense_there = false;    // the unit computes the dense part, too
  bool expert_biases = false;  // experts have some
  Bytes recover_room = 0;      // for words of packed matrices, with kernels of a GPU
};

}  // namespace sluice::engine
