#include "device/host_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "base/compared_bytes.h"
#include "base/error.h"

namespace sluice::device {
namespace {

Bytes page_bytes() {
  static const Bytes bytes = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Bytes that a buffer of this size is charged for. Sizes near 2^64 fail here and do not wrap round.
Bytes whole_pages(Bytes bytes) {
  constexpr Bytes kMost = Bytes{1} << 62;
  if (bytes > kMost) {
    throw Error(ErrorKind::kBudget, "a buffer of this size cannot exist")
        .found(std::to_string(bytes) + " bytes");
  }
  return round_up(bytes, page_bytes());
}

// Whether a device may copy from and to buffers of this account.
bool crosses_links(Account account) {
  return account == Account::kExperts || account == Account::kStaging || account == Account::kActivations;
}

}  // namespace

HostBuffer::HostBuffer(Accountant& accountant, Account account, Bytes bytes)
    : accountant_(&accountant), account_(account) {
  const Bytes pages = whole_pages(bytes);
  if (pages == 0) return;
  accountant.charge(account, pages);
  void* const mapped = ::mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    accountant.release(account, pages);
    throw io_error("mmap", std::string(account_name(account)) + ", " + format_bytes(pages), error);
  }
  data_ = static_cast<std::byte*>(mapped);
  size_ = bytes;
  charged_ = pages;
  if (crosses_links(account)) accountant.crossing().add(data_, pages);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : accountant_(other.accountant_),
      account_(other.account_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      charged_(std::exchange(other.charged_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  if (this != &other) {
    release();
    accountant_ = other.accountant_;
    account_ = other.account_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    charged_ = std::exchange(other.charged_, 0);
  }
  return *this;
}

HostBuffer::~HostBuffer() { release(); }

void HostBuffer::release() {
  if (data_ == nullptr) return;
  accountant_->crossing().remove(data_);
  SLUICE_CHECK(::munmap(data_, charged_) == 0);
  accountant_->release(account_, charged_);
  data_ = nullptr;
  size_ = charged_ = 0;
}

void HostBuffer::charge_to(Account account) {
  if (data_ != nullptr && account != account_) accountant_->move(account_, account, charged_);
  account_ = account;
}

BufferPool::BufferPool(Accountant& accountant, Account account, Bytes limit)
    : accountant_(&accountant), account_(account), limit_(limit) {}

bool BufferPool::can_take(Bytes bytes) const {
  const Bytes pages = whole_pages(bytes);
  if (in_use_ > limit_ || pages > limit_ - in_use_) return false;
  return has_free(bytes) || pages <= accountant_->available() + free_;
}

bool BufferPool::has_free(Bytes bytes) const {
  return std::ranges::binary_search(free_buffers_, whole_pages(bytes), {}, &HostBuffer::charged);
}

HostBuffer BufferPool::take(Bytes bytes) {
  const Bytes pages = whole_pages(bytes);
  if (pages == 0) return {};
  // Takes the buffer that came back last: its pages may still be in a cache.
  if (const auto after = std::ranges::upper_bound(free_buffers_, pages, {}, &HostBuffer::charged);
      after != free_buffers_.begin() && std::prev(after)->charged() == pages) {
    const auto same = std::prev(after);
    HostBuffer buffer = std::move(*same);
    free_buffers_.erase(same);
    free_ -= pages;
    in_use_ += pages;
    buffer.size_ = bytes;
    return buffer;
  }
  if (in_use_ > limit_ || pages > limit_ - in_use_) {
    const ComparedBytes sizes = compared_bytes(pages, limit_ - std::min(in_use_, limit_));
    throw Error(ErrorKind::kBudget,
                "buffers in use leave no room in the pool for " + std::string(account_name(account_)))
        .expected(sizes.expected)
        .found(sizes.found + " of " + format_bytes(limit_));
  }
  // Gives back the largest buffers first, so that the fewest pages are unmapped and faulted in again.
  while (!free_buffers_.empty() && (in_use_ + free_ + pages > limit_ || pages > accountant_->available())) {
    free_ -= free_buffers_.back().charged();
    free_buffers_.pop_back();
  }
  HostBuffer buffer(*accountant_, account_, bytes);
  in_use_ += pages;
  ++maps_;
  return buffer;
}

void BufferPool::give(HostBuffer buffer) {
  if (!buffer) return;
  const Bytes pages = buffer.charged();
  SLUICE_CHECK(buffer.accountant_ == accountant_ && pages <= in_use_, "not a buffer of this pool");
  buffer.charge_to(account_);
  in_use_ -= pages;
  free_ += pages;
  const auto after = std::ranges::upper_bound(free_buffers_, pages, {}, &HostBuffer::charged);
  free_buffers_.insert(after, std::move(buffer));
}

void BufferPool::shrink(HostBuffer& buffer, Bytes bytes) {
  const Bytes pages = whole_pages(bytes);
  SLUICE_CHECK(buffer && pages > 0 && pages <= buffer.charged_);
  const Bytes cut = buffer.charged_ - pages;
  if (cut > 0) {
    accountant_->crossing().shrink(buffer.data_, pages,
                                   [&] { SLUICE_CHECK(::munmap(buffer.data_ + pages, cut) == 0); });
    accountant_->release(buffer.account_, cut);
    buffer.charged_ = pages;
    in_use_ -= cut;
  }
  buffer.size_ = bytes;
}

void BufferPool::trim() {
  free_buffers_.clear();
  free_ = 0;
}

}  // namespace sluice::device
