// The one accountant of the memory budget (docs/architecture.md, "The budget"). Every buffer is charged to it
// by name.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "device/page_lock.h"

namespace sluice::device {

enum class Account : std::uint8_t {
  kProcess,      // code, libraries, heap and page tables as resident right after start
  kDense,        // dense weights, shared experts, embeddings, router
  kExperts,      // routed experts in every residency state
  kKv,           // key/value cache
  kActivations,  // hidden states, router scores, logits, scratch
  kStaging,      // disk buffers, experts being decoded or streamed, page cache we hold
  kTables,       // tokenizer, tensor tables, policy state
  kServe,        // a server's connections, requests, queues of answers, masks
};
inline constexpr std::size_t kAccountCount = 8;
std::string_view account_name(Account account);  // "process" "dense" … as printed everywhere

// Thread-safe. charge() never lets the total exceed the budget: it throws Error(kBudget) that says who asked,
// how much, what is left, and the ledger by name. peak() is the largest total so far.
class Accountant {
 public:
  explicit Accountant(Bytes budget);
  void charge(Account account, Bytes bytes);
  bool try_charge(Account account, Bytes bytes);
  void release(Account account, Bytes bytes);
  void move(Account from, Account to, Bytes bytes);  // the total does not change
  Bytes budget() const { return budget_; }
  Bytes used() const;
  Bytes used(Account account) const;
  Bytes available() const;
  Bytes peak() const;
  Bytes peak(Account account) const;
  std::string ledger() const;  // "process 9.1 MiB, dense 7.3 MiB, …"
  CrossingBuffers& crossing() { return crossing_; }

 private:
  mutable std::mutex mutex_;  // protects all below
  const Bytes budget_;
  std::array<Bytes, kAccountCount> used_{}, peak_{};
  Bytes total_ = 0, peak_total_ = 0;
  CrossingBuffers crossing_;  // locks by itself
};

}  // namespace sluice::device
