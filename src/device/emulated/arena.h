// The memory of an emulated device: pages of its own, which host code cannot read through an address, and,
// with a guard, not at all.
#pragma once

#include <cstddef>
#include <mutex>

#include "base/bytes.h"
#include "device/access.h"
#include "device/space.h"

namespace sluice::device {

// How the arena is kept from host threads. Addresses are opaque in every case: numbers of a range of
// address space in which nothing is ever mapped, so that code that takes an address for a pointer faults. The
// guard says what happens to a pointer that an operation has let out.
enum class Guard {
  kNone,  // it can be read
  // Faults on threads that are not the device's, at any time: the pages have a protection key to which only
  // threads of the device have access. Needs a CPU and a kernel that have them.
  kKeys,
  // Faults on all threads while no operation and no copy of the device runs: then the pages are PROT_NONE.
  kUnmapped,
};

bool has_protection_keys();
// kKeys where there are some; else kUnmapped where the environment has SLUICE_GUARD_DEVICE, as that of the
// tests has (it costs system calls), and kNone elsewhere.
Guard default_guard();

// Anonymous pages, zero at first. Error(kIo) if the system refuses. The gate is thread-safe.
class Arena final : public Space, public Gate {
 public:
  Arena(Bytes bytes, Guard guard);
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::string_view name() const override { return "emulated"; }
  Guard guard() const { return guard_; }
  Bytes size() const { return size_; }
  Address address(Bytes offset) const;
  Bytes offset(Address address) const;  // REQUIRES: an address of this arena
  void admit_this_thread() override;
  void dismiss_this_thread() override;

 private:
  void open() override;
  void close() override;
  std::byte* data(Address address, Bytes bytes) const override;
  void unmap();
  void allow(bool access);

  const Bytes size_;
  const Guard guard_;
  Bytes mapped_ = 0;              // whole pages
  std::byte* numbers_ = nullptr;  // the range that addresses are taken from
  std::byte* pages_ = nullptr;
  int key_ = -1;
  std::mutex mutex_;  // protects open_
  int open_ = 0;
};

}  // namespace sluice::device
