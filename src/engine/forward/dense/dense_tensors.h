// The dense tensors of a model as a checkpoint has them: how each is kept, and in which memories. Only for
// DenseWeights' own files.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "codec/matrix_format.h"
#include "engine/forward/dense/dense_weights.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {

struct DenseTensor {
  const model::TensorSpec* spec = nullptr;  // one of the model, which must outlive this
  store::StoredPiece stored;
  // Beside dense weights on a device. The host looks up rows of an embedding that cannot be read by rows, and
  // spreads relative biases out; the device needs an embedding only where it is the output head, too.
  bool host_needs = false, device_needs = true;

  std::uint64_t elements() const;
  bool is_vector() const;                     // kept as fp32
  bool is_packed(DenseView view) const;       // kept in its stored form; else as words, or as it is:
  const codec::MatrixFormat* format() const;  // in this format
  codec::MatrixShape shape() const;           // REQUIRES: a matrix
  // In the device's memory, where it needs no whole pages. REQUIRES: a matrix.
  Bytes device_bytes(DenseView view) const;
  // The most that loading it stages on the host. `to_device`: dense weights are on a device.
  Bytes staging_bytes(DenseView view, bool to_device) const;
  // Error(kUnsupported) for a format that cannot do what the tensor is for.
  void check_format(const store::Checkpoint& checkpoint) const;
};

// All except what DenseWeights::embedding_on_disk() leaves out.
std::vector<DenseTensor> dense_tensors(const store::Checkpoint& checkpoint, const model::Model& model);

// A block of the device's memory begins at a multiple of this.
inline constexpr Bytes kDeviceAlignment = 256;
// What a vector of so many elements takes of its buffer, as fp32.
Bytes dense_vector_bytes(std::uint64_t elements);
// Vectors share buffers: one page each would cost a small model megabytes. Biases of experts have one of
// their own, which stays on the host: they are sent with the experts that a device computes.
Bytes dense_vector_bytes(const model::Model& model);
Bytes expert_bias_bytes(const model::Model& model);

}  // namespace sluice::engine
