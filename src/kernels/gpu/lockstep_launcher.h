// Runs kernels of a GPU on this CPU, a warp after the other: slow, and the same numbers.
#pragma once

#include <cstdint>
#include <span>

#include "device/access.h"
#include "kernels/gpu/lockstep_warp-inl.h"

namespace sluice::kernels::gpu {

// A Launcher: where kernels of gpu_kernels-inl.h run. Thread-compatible.
class LockstepLauncher {
 public:
  // `warps` warps of the kernel K, behind all that was launched before.
  template <class K>
  void launch(const device::Access&, std::uint64_t warps, const typename K::Args& args) {
    for (std::uint64_t warp = 0; warp < warps; ++warp) K::run(LockstepWarp(warp), args);
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
  std::uint32_t fault_ = 0;
};

}  // namespace sluice::kernels::gpu
