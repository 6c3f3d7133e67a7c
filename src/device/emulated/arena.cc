#include "device/emulated/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::device {
namespace {

std::byte* map(Bytes bytes, int protection, int flags) {
  void* const mapped = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == MAP_FAILED)
    throw io_error("mmap", "memory of the emulated device, " + format_bytes(bytes), errno)
        .fix("close other programs, or give a smaller " + Setting::kDeviceMemory);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

bool has_protection_keys() {
  static const bool has = [] {
    const int key = ::pkey_alloc(0, 0);
    if (key < 0) return false;
    ::pkey_free(key);
    return true;
  }();
  return has;
}

Guard default_guard() {
  if (has_protection_keys()) return Guard::kKeys;
  return std::getenv("SLUICE_GUARD_DEVICE") != nullptr ? Guard::kUnmapped : Guard::kNone;
}

Arena::Arena(Bytes bytes, Guard guard)
    : size_(bytes), guard_(guard), mapped_(round_up(bytes, static_cast<Bytes>(::sysconf(_SC_PAGESIZE)))) {
  if (bytes == 0) return;
  try {
    numbers_ = map(mapped_, PROT_NONE, MAP_NORESERVE);
    pages_ = map(mapped_, guard == Guard::kUnmapped ? PROT_NONE : PROT_READ | PROT_WRITE, 0);
    if (guard == Guard::kKeys) {
      key_ = ::pkey_alloc(0, PKEY_DISABLE_ACCESS);
      if (key_ < 0) throw io_error("pkey_alloc", "memory of the emulated device", errno);
      if (::pkey_mprotect(pages_, mapped_, PROT_READ | PROT_WRITE, key_) != 0)
        throw io_error("pkey_mprotect", "memory of the emulated device", errno);
    }
  } catch (...) {
    unmap();
    throw;
  }
}

Arena::~Arena() { unmap(); }

void Arena::unmap() {
  if (numbers_ != nullptr) ::munmap(numbers_, mapped_);
  if (pages_ != nullptr) ::munmap(pages_, mapped_);
  if (key_ >= 0) ::pkey_free(key_);
}

Address Arena::address(Bytes offset) const {
  return {this, reinterpret_cast<std::uintptr_t>(numbers_) + offset};
}

Bytes Arena::offset(Address address) const {
  SLUICE_CHECK(address.space == this,
               std::string(address.space != nullptr ? address.space->name() : "nothing"));
  return address.value - reinterpret_cast<std::uintptr_t>(numbers_);
}

void Arena::admit_this_thread() {
  if (guard_ == Guard::kKeys) SLUICE_CHECK(::pkey_set(key_, 0) == 0);
}

void Arena::dismiss_this_thread() {
  if (guard_ == Guard::kKeys) SLUICE_CHECK(::pkey_set(key_, PKEY_DISABLE_ACCESS) == 0);
}

void Arena::open() {
  if (guard_ != Guard::kUnmapped) return;
  const std::lock_guard lock(mutex_);
  if (open_++ == 0) allow(true);
}

void Arena::close() {
  if (guard_ != Guard::kUnmapped) return;
  const std::lock_guard lock(mutex_);
  if (--open_ == 0) allow(false);
}

void Arena::allow(bool access) {
  if (pages_ == nullptr) return;
  const int protection = access ? PROT_READ | PROT_WRITE : PROT_NONE;
  SLUICE_CHECK(::mprotect(pages_, mapped_, protection) == 0, std::to_string(errno));
}

std::byte* Arena::data(Address address, Bytes bytes) const {
  const Bytes at = offset(address);
  SLUICE_CHECK(at <= size_ && bytes <= size_ - at, std::to_string(at) + " + " + std::to_string(bytes));
  return pages_ + at;
}

}  // namespace sluice::device
