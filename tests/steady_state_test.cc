// A steady state allocates nothing: after some tokens, one more costs no call of operator new, on any thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>

#include "base/scratch_directory.h"
#include "bundled_model.h"
#include "engine/engine.h"
#include "model/pack_plan.h"
#include "store/checkpoint.h"
#include "store/pack.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};

void* allocate(std::size_t bytes) {
  if (counting) allocations += 1;
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace sluice {
namespace {

struct Case {
  const char* name;
  const char* codec;  // null: the directory as it is
  const char* preset;
  const char* keep;
};

class SteadyState : public ::testing::TestWithParam<Case> {};

TEST_P(SteadyState, ATokenAllocatesNothing) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "sanitizers have their own operator new";
#endif
  const testing::ScratchDirectory scratch;
  std::string path = program::kModel;
  if (GetParam().codec != nullptr) {
    path = scratch.path() + "/packed.sluice";
    store::PackOptions options;
    options.codec = GetParam().codec;
    store::pack(program::kModel, path,
                model::pack_plan(model::describe_model(*store::open_checkpoint(program::kModel))), options);
  }
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  engine::EngineOptions options;
  options.memory = engine::process_baseline().resident + 34 * kMiB;
  options.threads = 2;
  options.positions = 128;
  options.preset = GetParam().preset;
  options.keep = GetParam().keep;
  engine::Engine engine(*checkpoint, model, options, 1);
  const auto sequence = engine.new_sequence();
  const std::uint64_t seed = 4;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto pass = [&] {
    std::mt19937 random(seed);
    sequence->clear();
    for (int token = 0; token < 100; ++token)
      engine.decode(*sequence, static_cast<model::TokenId>(random() % 6000));
  };
  // How much room is needed at most depends on which thread was faster, so a few passes may still find more.
  std::size_t last = 0;
  for (int i = 0; i < 20; ++i) {
    allocations = 0;
    counting = i > 0;
    pass();
    counting = false;
    last = allocations;
    if (i > 0 && last == 0) break;
  }
  EXPECT_EQ(last, 0u) << "in 100 tokens";
  EXPECT_GT(engine.statistics().decode.misses, 100u);  // it did read
}

INSTANTIATE_TEST_SUITE_P(Models, SteadyState,
                         ::testing::Values(Case{"directory", nullptr, "auto", "full"},
                                           Case{"packed", "native", "auto", "full"},
                                           Case{"kept_packed", "native", "auto", "packed"},
                                           Case{"zstd", "zstd", "auto", "full"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice
