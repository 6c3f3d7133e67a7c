// Many requests on one engine: passes that prompts share, decoding in between, and experts that are read once
// for all who need them. docs/batching.md; each request gets the tokens that it would get alone, bit for bit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/batch/batch_request.h"

namespace sluice::engine {

class Engine;  // engine/engine.h

struct BatchRules {
  std::size_t parallel = 1;   // sequences that run; at most plan().sequences
  double decode_share = 0.5;  // share of the time beside an open prompt pass that running answers get: 0 … 1
  // No answer goes on while a prompt is left: a static batch. Then no pass is suspended.
  bool prompts_first = false;
  // Positions that an answer without a limit reserves at a time.
  std::size_t stretch = 512;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

struct BatchLoad {
  std::size_t waiting = 0, prefilling = 0, decoding = 0, stalled = 0;  // requests
};

using RequestId = std::uint64_t;

// Thread-compatible: one thread calls all of it, and the engine.
class Batcher {
 public:
  // The engine's plan has room for rules.parallel sequences, and, where answers go on beside prompts, for one
  // suspended pass. Encoder-decoders answer several requests only in a static batch.
  Batcher(Engine& engine, const BatchRules& rules);
  ~Batcher();  // cancels what is left, without telling
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // What submit() refuses, so that it can be refused earlier: Error(kInvalid), (kUsage). Thread-safe.
  void check(const BatchRequest& request) const;
  // Puts a request at the end of the queue. `client` must live until its on_end. Errors as check().
  RequestId submit(BatchRequest request, BatchClient& client);
  // Ends a request at the next border of a layer; its on_end comes from the next advance(). Nothing if it has
  // ended.
  void cancel(RequestId id);
  // One turn: admits who has room, advances an open prompt pass behind its next sparse layer, or decodes one
  // token of every running answer. False: there is nothing to do. Errors of one pass end in on_end of those
  // that it fed.
  bool advance();

  BatchLoad load() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
