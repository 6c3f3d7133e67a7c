#include "device/memory.h"

namespace sluice::device {

Block::Block(Block&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      account_(other.account_),
      address_(std::exchange(other.address_, {})),
      size_(std::exchange(other.size_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  if (this != &other) {
    release();
    memory_ = std::exchange(other.memory_, nullptr);
    account_ = other.account_;
    address_ = std::exchange(other.address_, {});
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void Block::release() {
  if (memory_ == nullptr) return;
  memory_->give(account_, address_, size_);
  memory_ = nullptr;
  address_ = {};
  size_ = 0;
}

Block Memory::allocate(Account account, Bytes bytes) {
  if (bytes == 0) return {};
  return {*this, account, take(account, bytes), bytes};
}

}  // namespace sluice::device
