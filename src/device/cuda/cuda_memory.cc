#include "device/cuda/cuda_memory.h"

#include <fmt/format.h>

#include "base/setting.h"

namespace sluice::device {

CudaMemory::CudaMemory(CudaCalls& calls, Bytes bytes, const MappedPages* mapped)
    : RangeMemory(calls.name(), bytes), calls_(calls), mapped_(mapped), size_(whole(bytes)) {
  if (size_ == 0) return;
  CudaApi& api = calls.api();
  Bytes free = 0, total = 0;
  calls.check(api.memory(free, total), "the GPU does not say what memory it has");
  void* data = nullptr;
  const CudaCode code = api.allocate(size_, data);
  if (code == kCudaOutOfMemory) {
    api.last_error();
    throw Error(ErrorKind::kBudget, "the memory of the GPU is too small")
        .in(Setting::kDeviceMemory)
        .expected(fmt::format("{} ({} bytes) together on {}", format_bytes(size_), size_, calls.name()))
        .found(fmt::format("{} free of {}", format_bytes(free), format_bytes(total)))
        .fix("give less, or end other programs that use the GPU");
  }
  calls.check(code, "memory of the GPU cannot be allocated");
  base_ = reinterpret_cast<std::uintptr_t>(data);
}

CudaMemory::~CudaMemory() {
  if (base_ == 0) return;
  calls_.use();
  calls_.api().free(reinterpret_cast<void*>(static_cast<std::uintptr_t>(base_)));
}

Bytes CudaMemory::offset_of(Address address) const {
  SLUICE_CHECK(address.space == this && address.value >= base_ && address.value - base_ <= size_,
               "not an address of this GPU");
  return address.value - base_;
}

std::byte* CudaMemory::data(Address address, Bytes bytes) const {
  if (mapped_ != nullptr && address.space == mapped_) return mapped_->data(address, bytes);
  SLUICE_CHECK(bytes <= size_ - offset_of(address), "beyond the memory of the GPU");
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address.value));
}

}  // namespace sluice::device
