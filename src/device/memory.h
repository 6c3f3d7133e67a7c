// The memory of a unit: what it has, what is allocated in it, and who may reach into it.
#pragma once

#include <cstddef>
#include <utility>

#include "base/bytes.h"
#include "device/accountant.h"
#include "device/address.h"

namespace sluice::device {

class Memory;

// Bytes in a memory. Move-only; gives them back when it goes. Copies and operations that use it must be
// done by then. The memory must outlive it. Its content is whatever was there before.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block() { release(); }

  Address address() const { return address_; }
  Bytes size() const { return size_; }  // that was asked for
  explicit operator bool() const { return memory_ != nullptr; }
  void release();  // it is empty afterwards

 private:
  friend class Memory;
  Block(Memory& memory, Account account, Address address, Bytes size)
      : memory_(&memory), account_(account), address_(address), size_(size) {}

  Memory* memory_ = nullptr;
  Account account_ = Account::kStaging;
  Address address_;
  Bytes size_ = 0;
};

// Thread-safe. The accountant is the one of this memory: that of the process for the host, its own for a
// device.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual const Space& space() const = 0;  // the space of its addresses
  Accountant& accountant() { return accountant_; }
  Bytes budget() const { return accountant_.budget(); }
  // Charged before it exists. Error(kBudget) if the budget, or the form of what is free, refuses. Zero bytes
  // make an empty block.
  Block allocate(Account account, Bytes bytes);
  virtual Bytes cost(Bytes bytes) const = 0;  // what a block of this size is charged

 protected:
  explicit Memory(Accountant& accountant) : accountant_(accountant) {}
  virtual Address take(Account account, Bytes bytes) = 0;  // and charges it
  virtual void give(Account account, Address address, Bytes bytes) = 0;

 private:
  friend class Block;
  Accountant& accountant_;
};

}  // namespace sluice::device
