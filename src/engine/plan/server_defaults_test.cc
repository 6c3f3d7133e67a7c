#include "engine/plan/server_defaults.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <string>

#include "base/error.h"
#include "engine/plan/memory_plan.h"

namespace sluice::engine {
namespace {

TEST(ServerDefaults, ServeIsAPartOfTheBudgetBetweenBounds) {
  EXPECT_EQ(serve_bytes(64 * kMiB), 4 * kMiB);
  EXPECT_EQ(serve_bytes(256 * kMiB), 4 * kMiB);
  EXPECT_EQ(serve_bytes(512 * kMiB), 8 * kMiB);
  EXPECT_EQ(serve_bytes(4 * kGiB), 64 * kMiB);
  EXPECT_EQ(serve_bytes(64 * kGiB), 64 * kMiB);
}

TEST(ServerDefaults, SizesOfKnownModels) {
  // Qwen3-30B in BF16 has 96 KiB a token: an eighth of 8 GiB holds 10,922.
  ServerSizes sizes = server_sizes(8 * kGiB, 96 * kKiB, 40960, {});
  EXPECT_EQ(sizes.context, 8192u);
  EXPECT_EQ(sizes.kv_tokens, 8192u + 3 * 2048);
  sizes = server_sizes(4 * kGiB, 96 * kKiB, 40960, {});
  EXPECT_EQ(sizes.context, 4096u);
  EXPECT_EQ(sizes.kv_tokens, 4096u + 3 * 2048);
  sizes = server_sizes(4 * kGiB, 96 * kKiB, 40960, {.parallel = 16});
  EXPECT_EQ(sizes.kv_tokens, kGiB / (96 * kKiB));  // a quarter of the budget
  // fable-moe-18m in 64 MiB: 2,048 is the least, whatever it takes.
  sizes = server_sizes(64 * kMiB, 6 * kKiB, 4096, {});
  EXPECT_EQ(sizes.context, 2048u);
  EXPECT_EQ(sizes.kv_tokens, 16 * kMiB / (6 * kKiB));
  sizes = server_sizes(64 * kMiB, 60 * kKiB, 4096, {});
  EXPECT_EQ(sizes.context, 2048u);
  EXPECT_EQ(sizes.kv_tokens, 2048u);
  // A model with fewer positions has no more.
  EXPECT_EQ(server_sizes(kGiB, kKiB, 1500, {}).context, 1500u);
  EXPECT_EQ(server_sizes(kGiB, kKiB, 3000, {}).context, 2048u);
  EXPECT_EQ(server_sizes(kGiB, kKiB, 0, {}).context, 8192u);
}

TEST(ServerDefaults, WishesHold) {
  ServerSizes sizes = server_sizes(kGiB, 6 * kKiB, 65536, {.context = 32768, .parallel = 2});
  EXPECT_EQ(sizes.context, 32768u);
  EXPECT_EQ(sizes.kv_tokens, 32768u + 2048);
  sizes = server_sizes(kGiB, 6 * kKiB, 65536, {.context = 32768, .kv_tokens = 40000, .parallel = 64});
  EXPECT_EQ(sizes.kv_tokens, 40000u);
  sizes = server_sizes(kGiB, 6 * kKiB, 65536, {.kv_tokens = 5000});
  EXPECT_EQ(sizes.context, 4096u);
  EXPECT_EQ(server_sizes(kGiB, 6 * kKiB, 65536, {.kv_tokens = 700}).context, 700u);
}

TEST(ServerDefaults, WishesOutOfRangeNameTheirSetting) {
  const auto text = [](const ServerWishes& wishes) -> std::string {
    try {
      server_sizes(kGiB, kKiB, 4096, wishes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(text({.context = 4097}).find("1 to 4096"), std::string::npos);
  EXPECT_NE(text({.context = 0}).find("-c: "), std::string::npos) << text({.context = 0});
  EXPECT_NE(text({.parallel = 0}).find("--parallel"), std::string::npos);
  EXPECT_NE(text({.parallel = 65}).find("1 to 64"), std::string::npos);
  EXPECT_NE(text({.kv_tokens = 0}).find("--kv-tokens"), std::string::npos);
  EXPECT_NE(text({.context = 2048, .kv_tokens = 2047}).find("at least 2048"), std::string::npos);
  EXPECT_EQ(text({.context = 4096, .kv_tokens = 4096, .parallel = 64}), "");
}

TEST(ServerDefaults, HoldForEveryBudget) {
  const unsigned seed = 41;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const Bytes budget = (Bytes{1} << (24 + random() % 14)) + random() % kGiB;
    const Bytes token = 1 + random() % (200 * kKiB);
    const std::size_t positions = 1 + random() % 70000;
    const ServerSizes sizes = server_sizes(budget, token, positions, {.parallel = 1 + random() % 64});
    EXPECT_LE(sizes.context, std::min<std::size_t>(positions, 8192));
    EXPECT_GE(sizes.context, std::min<std::size_t>(positions, 2048));
    const bool free_choice = sizes.context > std::min<std::size_t>(positions, 2048);
    if (free_choice) {
      EXPECT_TRUE(std::has_single_bit(sizes.context));
      EXPECT_LE(sizes.context * token, budget / 8);
    }
    if (sizes.context * 2 <= std::min<std::size_t>(positions, 8192) && sizes.context >= 2048) {
      EXPECT_GT(sizes.context * 2 * token, budget / 8);  // else it would be that
    }
    EXPECT_GE(sizes.kv_tokens, sizes.context);
    EXPECT_LE(sizes.kv_tokens, sizes.context + (sizes.parallel - 1) * 2048);
    if (sizes.kv_tokens > sizes.context) {
      EXPECT_LE(sizes.kv_tokens * token, budget / 4);
    }
  }
}

// What is advised is enough, and no needless loss.
TEST(ServerDefaults, AdviceLeavesWhatIsMissing) {
  const unsigned seed = 42;
  std::mt19937_64 random(seed);
  std::size_t pools = 0, parallels = 0, contexts = 0, nothing = 0;
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const Bytes token = 1 + random() % (64 * kKiB);
    ServerSizes sizes{.context = 256 + random() % 8000, .parallel = 1 + random() % 8};
    sizes.kv_tokens = sizes.context + random() % (2048 * sizes.parallel);
    const Bytes missing = random() % (sizes.kv_tokens * token + 1);
    const auto smaller = smaller_server(sizes, token, missing);
    if (!smaller) {
      ++nothing;
      continue;
    }
    const auto cache_bytes = [&](std::size_t tokens) {  // as KvPool::bytes, of whole blocks of 32
      return round_up(round_up(tokens, 32) * token, kBlockBytes);
    };
    const std::size_t left = smaller->kv_tokens.value();
    EXPECT_LE(cache_bytes(left) + missing, cache_bytes(sizes.kv_tokens));
    EXPECT_GT((left + 64) * token + missing + 2 * kBlockBytes, sizes.kv_tokens * token);
    ++pools;
    if (smaller->context) {
      EXPECT_EQ(*smaller->context, left);
      EXPECT_LT(left, sizes.context);
      ++contexts;
    } else {
      EXPECT_GE(left, sizes.context);
    }
    if (smaller->parallel) {
      EXPECT_LT(*smaller->parallel, sizes.parallel);
      EXPECT_LE(sizes.context + (*smaller->parallel - 1) * 2048, left);
      ++parallels;
    }
  }
  EXPECT_GT(pools, 100u);
  EXPECT_GT(parallels, 100u);
  EXPECT_GT(contexts, 100u);
  EXPECT_GT(nothing, 100u);
}

TEST(ServerDefaults, ABudgetTooSmallSaysWhatToChangeToWhat) {
  MemoryNeeds needs;
  needs.process = 6 * kMiB;
  needs.dense = 8 * kMiB;
  needs.serve = 4 * kMiB;
  needs.least_staging = kMiB;
  needs.most_chunk = 256;
  needs.activations = [](const void*, std::size_t chunk) { return Bytes{chunk} * kKiB; };
  needs.server = {.context = 2048, .kv_tokens = 2048 + 3 * 2048, .parallel = 4};
  needs.kv_per_token = 6 * kKiB;
  needs.kv = needs.server.kv_tokens * needs.kv_per_token;
  const auto text = [&](Bytes budget) -> std::string {
    try {
      plan_memory(budget, needs);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBudget);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(text(80 * kMiB), "");
  const std::string some = text(50 * kMiB);
  EXPECT_NE(some.find(", serve 4.00 MiB, "), std::string::npos) << some;
  EXPECT_NE(
      some.find("give --memory 68MiB or more, or --kv-tokens 5088, or --parallel 2 without --kv-tokens"),
      std::string::npos)
      << some;
  needs.server.kv_tokens = 5088;
  needs.kv = needs.server.kv_tokens * needs.kv_per_token;
  EXPECT_EQ(text(50 * kMiB), "");
  const std::string more = text(30 * kMiB);
  EXPECT_NE(more.find(" with --kv-tokens "), std::string::npos) << more;
  EXPECT_NE(more.find("or -c "), std::string::npos) << more;
  // Nothing but memory helps where that without a cache is not there.
  const std::string none = text(15 * kMiB);
  EXPECT_EQ(none.find("--kv-tokens"), std::string::npos) << none;
}

}  // namespace
}  // namespace sluice::engine
