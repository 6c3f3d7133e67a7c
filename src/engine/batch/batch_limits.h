// What an engine has room for, as its batcher sees it: which requests can be served, and how much room each
// takes when it is admitted.
#pragma once

#include <cstddef>

#include "engine/batch/batch_request.h"

namespace sluice::engine {

class Engine;  // engine/engine.h

// Does not change; thread-safe.
class BatchLimits {
 public:
  // `engine` must outlive this. `stretch`: of an answer without a limit, reserved at a time.
  BatchLimits(Engine& engine, std::size_t stretch);

  // Error(kInvalid), (kUsage) for what cannot be served, now or ever.
  void check(const BatchRequest& request) const;
  // Most tokens that a sequence holds.
  std::size_t context() const { return context_; }
  // Positions that are reserved at first: all that a request with a limit can need, and for one without it a
  // stretch of its answer.
  std::size_t reserved(const BatchRequest& request) const;
  std::size_t stretch() const { return stretch_; }

 private:
  void check_length(const BatchRequest& request) const;
  void check_sampler(const BatchRequest& request) const;
  std::size_t begins(const BatchRequest& request) const;  // tokens that the decoder starts from

  const Engine& engine_;
  const std::size_t context_, stretch_;
  const bool has_encoder_;
};

}  // namespace sluice::engine
