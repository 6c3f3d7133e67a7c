// What is allocated in a GPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/access.h"
#include "device/cuda/cuda_calls.h"
#include "device/cuda/mapped_pages.h"
#include "device/range_memory.h"
#include "device/space.h"

namespace sluice::device {

// Takes all of it at once, when it is made: Error(kBudget) if the GPU has not so much together. An address
// has the value of the GPU's pointer. That is what the gate gives, for kernels and copies; the host never
// follows it. The gate gives pages of the host's that are mapped, too. References, and `mapped`, must outlive
// it. Thread-safe.
class CudaMemory final : public RangeMemory, public Space, public Gate {
 public:
  CudaMemory(CudaCalls& calls, Bytes bytes, const MappedPages* mapped = nullptr);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  const Space& space() const override { return *this; }
  std::string_view name() const override { return "cuda"; }
  void admit_this_thread() override { calls_.admit_this_thread(); }
  void dismiss_this_thread() override {}

 private:
  Address at(Bytes offset) const override { return {this, base_ + offset}; }
  Bytes offset_of(Address address) const override;
  void open() override {}
  void close() override {}
  std::byte* data(Address address, Bytes bytes) const override;

  CudaCalls& calls_;
  const MappedPages* const mapped_;  // null: none are
  const Bytes size_;
  std::uint64_t base_ = 0;  // a pointer of the GPU
};

}  // namespace sluice::device
