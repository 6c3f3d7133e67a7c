#include "engine/plan/server_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "base/setting.h"
#include "kernels/attention/attention.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kMostDefaultContext = 8192, kUsualRoom = 2048;
constexpr std::size_t kLeastAdvisedContext = 256;  // less is no use to anyone

void check_between(Setting setting, std::size_t value, std::size_t most) {
  if (value >= 1 && value <= most) return;
  throw Error(ErrorKind::kUsage, "a number out of range")
      .in(setting)
      .expected(most == std::numeric_limits<std::size_t>::max() ? "at least 1" : fmt::format("1 to {}", most))
      .found(std::to_string(value))
      .fix("give such a number, or leave it out");
}

std::size_t default_context(Bytes budget, Bytes kv_bytes_per_token, std::size_t most) {
  std::size_t context = std::bit_floor(std::min(most, kMostDefaultContext));
  while (context > kUsualRoom && context * kv_bytes_per_token > budget / 8) context /= 2;
  return std::max(context, std::min(most, kUsualRoom));
}

}  // namespace

Bytes serve_bytes(Bytes budget) { return std::clamp<Bytes>(budget / 64, 4 * kMiB, 64 * kMiB); }

ServerSizes server_sizes(Bytes budget, Bytes kv_bytes_per_token, std::size_t model_positions,
                         const ServerWishes& wishes) {
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  const std::size_t most = model_positions == 0 ? kNoLimit : model_positions;
  check_between(Setting::kParallel, wishes.parallel, kMostParallel);
  if (wishes.context) check_between(Setting::kContext, *wishes.context, most);
  if (wishes.kv_tokens) check_between(Setting::kKvTokens, *wishes.kv_tokens, kNoLimit);
  ServerSizes sizes{.parallel = wishes.parallel};
  sizes.context = wishes.context.value_or(
      default_context(budget, kv_bytes_per_token, std::min(most, wishes.kv_tokens.value_or(kNoLimit))));
  if (wishes.kv_tokens.value_or(kNoLimit) < sizes.context)
    throw Error(ErrorKind::kUsage, "the key/value cache has no room for the context of one sequence")
        .in(Setting::kKvTokens)
        .expected(fmt::format("at least {} positions", sizes.context))
        .found(std::to_string(*wishes.kv_tokens))
        .fix("raise " + Setting::kKvTokens + ", or lower " + Setting::kContext);
  const std::size_t affordable = budget / 4 / std::max<Bytes>(kv_bytes_per_token, 1);
  const std::size_t usual = sizes.context + (sizes.parallel - 1) * kUsualRoom;
  sizes.kv_tokens =
      wishes.kv_tokens.value_or(std::max(sizes.context, std::min<std::size_t>(usual, affordable)));
  return sizes;
}

std::optional<SmallerServer> smaller_server(const ServerSizes& sizes, Bytes kv_bytes_per_token,
                                            Bytes missing) {
  if (kv_bytes_per_token == 0) return std::nullopt;
  // A whole block less than that, since pools are rounded up to blocks, and to pages.
  const std::size_t fewer = (missing + kBlockBytes) / kv_bytes_per_token + 1;
  if (fewer + kernels::kCacheBlock > sizes.kv_tokens) return std::nullopt;
  const std::size_t left = (sizes.kv_tokens - fewer) / kernels::kCacheBlock * kernels::kCacheBlock;
  SmallerServer smaller;
  if (left < kLeastAdvisedContext && left < sizes.context) return std::nullopt;
  smaller.kv_tokens = left;
  if (left < sizes.context) {
    smaller.context = left;
    return smaller;
  }
  const std::size_t parallel = 1 + (left - sizes.context) / kUsualRoom;
  if (parallel < sizes.parallel) smaller.parallel = parallel;
  return smaller;
}

std::string text_of(const SmallerServer& smaller) {
  if (smaller.context)
    return fmt::format("or {} {} with {} {}", mark(Setting::kContext), *smaller.context,
                       mark(Setting::kKvTokens), *smaller.kv_tokens);
  std::string text = fmt::format("or {} {}", mark(Setting::kKvTokens), *smaller.kv_tokens);
  if (smaller.parallel)
    text += fmt::format(", or {} {} without {}", mark(Setting::kParallel), *smaller.parallel,
                        mark(Setting::kKvTokens));
  return text;
}

}  // namespace sluice::engine
