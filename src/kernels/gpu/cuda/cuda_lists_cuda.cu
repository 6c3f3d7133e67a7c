#include "kernels/gpu/cuda/cuda_lists.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "kernels/gpu/cuda/cuda_check.h"

namespace sluice::kernels::gpu {

CudaLists::CudaLists(device::Memory& memory)
    : block_(memory.allocate(device::Account::kActivations, kGpuListBytes)) {
  void* locked = nullptr;
  check_cuda(cudaMallocHost(&locked, kGpuListBytes), "cudaMallocHost");
  locked_ = static_cast<std::byte*>(locked);
}

CudaLists::~CudaLists() {
  for (std::vector<Use>& uses : uses_)
    for (const Use& use : uses) {
      static_cast<void>(cudaStreamSynchronize(use.stream));
      static_cast<void>(cudaEventDestroy(use.over));
    }
  static_cast<void>(cudaFreeHost(locked_));
}

const std::byte* CudaLists::upload(const device::Access& access, std::span<const std::byte> list) {
  if (list.size() > kSegmentBytes)
    throw Error(ErrorKind::kBudget, "a list of an operation is too long for a CUDA device")
        .expected("at most " + std::to_string(kSegmentBytes) + " bytes")
        .found(std::to_string(list.size()))
        .fix("use shorter prompts or a smaller " + Setting::kBatch);
  if (list.size() > kSegmentBytes - used_) begin_next();
  const auto stream = static_cast<cudaStream_t>(access.queue().stream);
  std::vector<Use>& uses = uses_[segment_];
  if (std::ranges::find(uses, stream, &Use::stream) == uses.end()) {
    cudaEvent_t over = nullptr;
    check_cuda(cudaEventCreateWithFlags(&over, cudaEventDisableTiming | cudaEventBlockingSync),
               "cudaEventCreateWithFlags");
    uses.push_back({stream, over});
  }
  const std::size_t at = segment_ * kSegmentBytes + used_;
  used_ = std::min(kSegmentBytes, (used_ + list.size() + kAlignment - 1) / kAlignment * kAlignment);
  std::byte* const there = access.data(block_.address() + at, list.size());
  if (list.empty()) return there;
  std::memcpy(locked_ + at, list.data(), list.size());
  check_cuda(cudaMemcpyAsync(there, locked_ + at, list.size(), cudaMemcpyHostToDevice, stream),
             "cudaMemcpyAsync of a list");
  return there;
}

void CudaLists::begin_next() {
  for (const Use& use : uses_[segment_]) check_cuda(cudaEventRecord(use.over, use.stream), "cudaEventRecord");
  segment_ = (segment_ + 1) % kSegments;
  used_ = 0;
  for (const Use& use : uses_[segment_]) {
    check_cuda(cudaEventSynchronize(use.over), "cudaEventSynchronize");
    check_cuda(cudaEventDestroy(use.over), "cudaEventDestroy");
  }
  uses_[segment_].clear();
}

}  // namespace sluice::kernels::gpu
