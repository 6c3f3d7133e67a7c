#include "device/emulated/arena.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace sluice::device {
namespace {

std::byte read(const volatile std::byte* pointer) { return *pointer; }

std::byte* as_pointer(Address address) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address.value));
}

// Writes and reads on a thread of the device, and lets the pointer out.
std::byte* use(Arena& arena) {
  std::byte* out = nullptr;
  std::thread device([&] {
    arena.admit_this_thread();
    const Access access(arena);
    out = access.data(arena.address(0), arena.size());
    std::memset(out, 5, arena.size());
    EXPECT_EQ(*access.data(arena.address(100), 1), std::byte{5});
  });
  device.join();
  return out;
}

TEST(Arena, IsItsOwnSpace) {
  Arena arena(10000, Guard::kNone), other(10000, Guard::kNone);
  EXPECT_EQ(arena.size(), 10000u);
  EXPECT_EQ(arena.offset(arena.address(77)), 77u);
  EXPECT_EQ(arena.address(70) + 7, arena.address(77));
  EXPECT_NE(arena.address(0), other.address(0));
  EXPECT_EQ(read(use(arena)), std::byte{5});
}

TEST(ArenaDeathTest, AnAddressIsNoPointer) {
  for (const Guard guard : {Guard::kNone, Guard::kUnmapped}) {
    Arena arena(10000, guard);
    use(arena);
    EXPECT_DEATH(read(as_pointer(arena.address(0))), "");
    EXPECT_DEATH(read(as_pointer(arena.address(9999))), "");
  }
}

TEST(ArenaDeathTest, ChecksRanges) {
  Arena arena(10000, Guard::kNone), other(10000, Guard::kNone);
  const Access access(arena);
  access.data(arena.address(0), 10000);
  access.data(arena.address(10000), 0);
  EXPECT_DEATH(access.data(arena.address(1), 10000), "at <= size_");
  EXPECT_DEATH(access.data(arena.address(10001), 0), "at <= size_");
  EXPECT_DEATH(access.data(other.address(0), 1), "emulated");
  EXPECT_DEATH(access.data({}, 1), "nothing");
}

TEST(ArenaDeathTest, UnmappedPagesFaultWhenTheDeviceIsIdle) {
  Arena arena(10000, Guard::kUnmapped);
  std::byte* const out = use(arena);
  EXPECT_DEATH(read(out), "");
  EXPECT_DEATH(*const_cast<volatile std::byte*>(out) = std::byte{1}, "");
  const Access outer(arena);
  { const Access inner(arena); }
  EXPECT_EQ(read(out), std::byte{5});  // still open
}

TEST(ArenaDeathTest, ProtectedPagesFaultOnHostThreads) {
  if (!has_protection_keys())
    GTEST_SKIP()
        << "no protection keys: that a pointer let out of an operation faults at any time was NOT tested";
  Arena arena(10000, Guard::kKeys);
  std::byte* const out = use(arena);
  EXPECT_DEATH(read(out), "");
  EXPECT_DEATH(std::thread([&] { read(out); }).join(), "");
  EXPECT_DEATH(
      {
        const Access access(arena);
        read(out);
      },
      "");
  arena.admit_this_thread();
  EXPECT_EQ(read(out), std::byte{5});
  std::thread([&] { EXPECT_EQ(read(out), std::byte{5}); }).join();  // has the rights of who started it
  arena.dismiss_this_thread();
  EXPECT_DEATH(read(out), "");
}

TEST(Arena, HasADefaultGuard) {
  const Guard guard = default_guard();
  EXPECT_EQ(guard == Guard::kKeys, has_protection_keys());
  const bool asked = std::getenv("SLUICE_GUARD_DEVICE") != nullptr;
  EXPECT_EQ(guard == Guard::kUnmapped, !has_protection_keys() && asked);
  Arena arena(4096, guard);
  use(arena);
}

TEST(Arena, MayBeEmpty) {
  Arena arena(0, Guard::kUnmapped);
  const Access access(arena);
  EXPECT_EQ(arena.size(), 0u);
}

}  // namespace
}  // namespace sluice::device
