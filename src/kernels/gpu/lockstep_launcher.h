// Runs kernels of a GPU on this CPU, a warp after the other: slow, and the same numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/access.h"
#include "kernels/gpu/device_math.h"
#include "kernels/gpu/lockstep_warp-inl.h"

namespace sluice::kernels::gpu {

// A Launcher: where kernels of gpu_kernels-inl.h run. Thread-compatible.
class LockstepLauncher {
 public:
  explicit LockstepLauncher(DeviceMath math = DeviceMath::kSame) : math_(math) {}

  DeviceMath math() const { return math_; }  // of products
  // `warps` warps of the kernel K, behind all that was launched before.
  template <class K>
  void launch(const device::Access&, std::uint64_t warps, const typename K::Args& args) {
    if constexpr (requires { K::kShared; }) shared_.resize(K::kShared / sizeof(Line) + 1, Line{});
    for (std::uint64_t warp = 0; warp < warps; ++warp)
      K::run(LockstepWarp(warp, reinterpret_cast<std::byte*>(shared_.data())), args);
  }
  // A list of the caller's where kernels can read it, for what is launched until the operation is over.
  template <class T>
  const T* upload(const device::Access&, std::span<const T> list) {
    return list.data();
  }
  // The word that a kernel makes 1 if its operands are impossible.
  std::uint32_t* fault(const device::Access&) { return &fault_; }
  // Throws what kernels have found, where that is known at once.
  void finish(const device::Access& access);

 private:
  struct alignas(16) Line {
    std::byte bytes[16];
  };

  DeviceMath math_;
  std::vector<Line> shared_;
  std::uint32_t fault_ = 0;
};

}  // namespace sluice::kernels::gpu
