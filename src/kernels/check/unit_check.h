// Whether a unit with kernels of its own computes what the host does: each operation that a run will ask of
// it is tried once, on small operands.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "codec/matrix_format.h"
#include "device/device.h"
#include "kernels/ops/device_math.h"
#include "kernels/ops/gating.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels {

// What a run will ask of it.
struct UnitWork {
  std::vector<const codec::MatrixFormat*> experts = {};  // formats of matrices of routed experts
  bool dense_part = false;                               // it may be computed there:
  std::vector<const codec::MatrixFormat*> dense = {};    // formats of its matrices
  std::vector<DType> caches = {};                        // types of keys and values
  Gating gating = {};
  DeviceMath math = DeviceMath::kSame;  // kFast: products with BF16 words need only be near
};

// An operation that a unit must not be given.
struct UnitFault {
  std::string operation;                        // "attention over a bf16 cache", "experts in q4_k"
  std::string found = {};                       // what is wrong with it
  bool of_experts = false;                      // experts need it …
  bool of_dense = false;                        // the dense part needs it
  const codec::MatrixFormat* format = nullptr;  // … with matrices in this format; null: all of them
};

struct UnitCheck {
  std::size_t tried = 0;
  std::vector<UnitFault> faults = {};
  bool good() const { return faults.empty(); }
};

// What a check takes of the unit's memory, beside what the kernels have.
inline constexpr Bytes kUnitCheckBytes = 4 * kMiB;

// The host's part is computed by scalar code, unrounded. Kernels that are chosen for large matrices alone are
// not tried. Error(kIo) if the unit is lost meanwhile, (kBudget).
UnitCheck check_unit(device::Device& device, UnitKernels& kernels, const UnitWork& work);

}  // namespace sluice::kernels
