// Counts what a render costs, and stops it at its limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tokenizer/template/limits.h"

namespace sluice::tokenizer::jinja {

// Used by one thread. Every function throws Fault, which names the limit, once that is exceeded.
class Meter {
 public:
  explicit Meter(const TemplateLimits& limits);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void step();                                // one more expression, statement or element
  void work(std::size_t bytes);               // this many bytes are looked at: asks the clock now and then
  void check_value(std::size_t bytes) const;  // bytes of one string, list or dictionary
  void grow(std::size_t bytes);  // values take so much more memory; nothing is taken if it throws
  void shrink(std::size_t bytes) noexcept { memory_ -= bytes; }
  void enter_call();
  void leave_call() noexcept { --calls_; }
  // Evaluation nests one level deeper: macros within expressions within blocks. Bounds the thread's stack.
  void enter() {
    if (++depth_ > kMostDepth) too_deep();
  }
  void leave() noexcept { --depth_; }
  const TemplateLimits& limits() const { return limits_; }

 private:
  static constexpr std::size_t kMostDepth = 1000;  // with the debug build's frames about 1 MiB of stack
  [[noreturn]] void too_deep();
  void ask_clock();

  const TemplateLimits limits_;
  std::uint64_t steps_ = 0, effort_ = 0;
  std::size_t memory_ = 0, calls_ = 0, depth_ = 0;
  double started_ = 0;
};

}  // namespace sluice::tokenizer::jinja
