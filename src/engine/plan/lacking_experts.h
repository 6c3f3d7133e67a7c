// Experts that a device does not compute, because it has no good kernels for the formats of their matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/matrix_format.h"

namespace sluice::model {
struct Model;
}
namespace sluice::store {
class Checkpoint;
}

namespace sluice::engine {

struct LackingExperts {
  std::string formats = {};               // "q5_k, iq4_xs"; empty: no expert is left out
  std::vector<std::uint8_t> layers = {};  // sparse ones; 1: its experts are left out. Empty: all are

  bool any() const { return !formats.empty(); }
  bool all() const;
  // How many of this many sparse layers the device may compute.
  std::size_t layers_there(std::size_t layers) const;
  bool leaves_out(std::size_t layer) const { return any() && (layers.empty() || layers[layer] != 0); }
};

// A layer is left out if some matrix of its experts is in a format of which `reads` says no; its argument is
// null for types that have no row.
LackingExperts experts_lacking(const store::Checkpoint& checkpoint, const model::Model& model,
                               const std::function<bool(const codec::MatrixFormat*)>& reads);

// The formats of experts as a device may be given them, each once; those that a GPU has kernels for.
std::vector<const codec::MatrixFormat*> expert_formats_there(const store::Checkpoint& checkpoint,
                                                             const model::Model& model);

}  // namespace sluice::engine
