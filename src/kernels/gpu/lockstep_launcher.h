// Runs kernels of a GPU on this CPU, a warp after the other: slow, and the same numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "device/access.h"
#include "kernels/gpu/gpu_kernel_options.h"
#include "kernels/gpu/lockstep_warp-inl.h"

namespace sluice::kernels::gpu {

// A Launcher: where kernels of gpu_kernels-inl.h run. Thread-compatible.
class LockstepLauncher {
 public:
  explicit LockstepLauncher(const GpuKernelOptions& options = {})
      : math_(options.math), room_(options.room / sizeof(Line)) {}

  DeviceMath math() const { return math_; }  // for products
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
  // Memory at a multiple of 256 in which launches of an operation leave something for the next of them; other
  // operations overwrite it. Empty: there is none.
  std::span<std::byte> room(const device::Access&) { return std::as_writable_bytes(std::span(room_)); }
  // The word that a kernel makes 1 if its operands are impossible.
  std::uint32_t* fault(const device::Access&) { return &fault_; }
  // Throws what kernels have found, where that is known at once.
  void finish(const device::Access& access);

 private:
  struct alignas(256) Line {
    std::byte bytes[256];
  };

  DeviceMath math_;
  std::vector<Line> shared_, room_;
  std::uint32_t fault_ = 0;
};

}  // namespace sluice::kernels::gpu
