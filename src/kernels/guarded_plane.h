// A plane of a matrix for tests, of which only chosen bytes can be read.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>

namespace sluice::kernels {

// Bytes [begin, end) of a plane.
struct PlaneRange {
  std::size_t begin = 0, end = 0;
};

// A copy of a plane whose pages without a byte of any of `readable` cannot be accessed. One edge of one range
// stands at a page's border, so that a single byte read across it ends the test: of the pages beside that
// border one holds only bytes outside all ranges. Where it does not, the test fails at once.
class GuardedPlane {
 public:
  // REQUIRES: `edge` is the begin or the end of a range; ranges ascend.
  GuardedPlane(std::span<const std::byte> bytes, std::span<const PlaneRange> readable, std::size_t edge)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        // The edge is at a multiple of pages from the mapping's begin, and a page lies before the plane.
        start_(2 * page_ - edge % page_),
        size_((start_ + bytes.size() + page_ - 1) / page_ * page_ + page_) {
    void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(mapped);
    std::memcpy(base_ + start_, bytes.data(), bytes.size());
    const auto holds_some = [&](std::size_t page) {
      return std::ranges::any_of(readable, [&](const PlaneRange& range) {
        return start_ + range.begin < page + page_ && start_ + range.end > page;
      });
    };
    for (std::size_t page = 0; page < size_; page += page_)
      if (!holds_some(page) && ::mprotect(base_ + page, page_, PROT_NONE) != 0) std::abort();
    const std::size_t border = start_ + edge;
    EXPECT_NE(holds_some(border - page_), holds_some(border)) << "nothing stands guard at byte " << edge;
  }
  ~GuardedPlane() { ::munmap(base_, size_); }
  GuardedPlane(const GuardedPlane&) = delete;
  GuardedPlane& operator=(const GuardedPlane&) = delete;

  const std::byte* data() const { return base_ + start_; }

 private:
  std::size_t page_, start_, size_;
  std::byte* base_ = nullptr;
};

}  // namespace sluice::kernels
