#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice {
namespace {

TEST(FunctionRef, CallsWhatItRefersTo) {
  int calls = 0;
  const auto count = [&](int by) { return calls += by; };
  const FunctionRef<int(int)> reference = count;
  const FunctionRef<int(int)> copy = reference;
  EXPECT_EQ(reference(2), 2);
  EXPECT_EQ(copy(3), 5);
  EXPECT_EQ(calls, 5);
  auto state = [n = 0]() mutable { return ++n; };
  const FunctionRef<int()> counter = state;
  counter();
  EXPECT_EQ(state(), 2);  // the very object
  auto take = [](std::unique_ptr<int> value) { return *value; };
  EXPECT_EQ(FunctionRef<int(std::unique_ptr<int>)>(take)(std::make_unique<int>(9)), 9);
}

}  // namespace
}  // namespace sluice
