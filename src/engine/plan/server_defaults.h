// How much a server serves at once where its user does not say so, and what to ask less of where a budget is
// too small.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace sluice::engine {

// The account `serve`: 1/64 of the budget, from 4 to 64 MiB.
Bytes serve_bytes(Bytes budget);

struct ServerWishes {
  std::optional<std::size_t> context = {};    // tokens of one sequence
  std::optional<std::size_t> kv_tokens = {};  // tokens of all sequences together
  std::size_t parallel = 4;                   // sequences that run at once
};

struct ServerSizes {
  std::size_t context = 0, kv_tokens = 0, parallel = 0;
};

inline constexpr std::size_t kMostParallel = 64;

// Fills in what is not wished. A context is the largest power of two up to 8192, and up to what the model and
// the wished kv_tokens allow, whose keys and values take an eighth of the budget at most; but 2048, if these
// allow it. All sequences together have that and 2048 tokens for each but one, in a quarter of the budget at
// most; but the context. `budget`: of the memory that has the cache. `model_positions`: 0 is no limit.
// Error(kUsage) for wishes out of range.
ServerSizes server_sizes(Bytes budget, Bytes kv_bytes_per_token, std::size_t model_positions,
                         const ServerWishes& wishes);

// Changes that leave `missing` bytes more of a budget, one of these:
//   kv_tokens                less together
//   parallel                 as much less, where kv_tokens is not wished
//   context and kv_tokens    also of one sequence
struct SmallerServer {
  std::optional<std::size_t> kv_tokens, parallel, context;
};
// Empty if no cache is small enough, or `sizes` says nothing.
std::optional<SmallerServer> smaller_server(const ServerSizes& sizes, Bytes kv_bytes_per_token,
                                            Bytes missing);
// "or KV_TOKENS 4096, or …", with marks of the settings.
std::string text_of(const SmallerServer& smaller);

}  // namespace sluice::engine
