#include "eval/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/files/scratch_directory.h"

namespace sluice::eval {

struct Number {
  double value = 0;
};
Json to_json(const Number& number) { return number.value; }

namespace {

using ::testing::HasSubstr;

const Json kIdentity = {{"task", "text"}, {"ctx", 512}, {"prefill", nullptr}};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Found {
  ErrorKind kind = ErrorKind::kIo;
  std::string text = "nothing thrown";
};
Found error_of(const std::string& path, const Json& identity = kIdentity) {
  try {
    const State state(path, identity);
    return {};
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
}

// Odd numbers that must return exactly, to the last bit.
double number(std::size_t i) { return std::sqrt(static_cast<double>(i)) / 3e-7; }

std::vector<Number> run(State& state, std::size_t count, std::size_t stop_at, std::size_t* worked = nullptr) {
  return finish<Number>(
      state, count, [](const Json& json, const std::string&) { return Number{json.get<double>()}; },
      [&](std::size_t i) {
        if (i == stop_at) throw Error(ErrorKind::kInterrupted, "stopped");
        if (worked != nullptr) ++*worked;
        return Number{number(i)};
      });
}

TEST(State, GoesOnWhereItStopped) {
  const sluice::testing::ScratchDirectory scratch;
  const std::string path = scratch.file("state");
  for (const std::size_t stop_at : {0, 1, 4, 7}) {
    State state(path, kIdentity);
    EXPECT_THROW(run(state, 9, stop_at), Error);
    EXPECT_EQ(State(path, kIdentity).found().size(), stop_at);
  }
  std::size_t worked = 0;
  State state(path, kIdentity);
  const std::vector<Number> numbers = run(state, 9, 100, &worked);
  EXPECT_EQ(worked, 2u);
  ASSERT_EQ(numbers.size(), 9u);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(numbers[i].value, number(i));
  // A smaller count forgets no result; a larger count computes the missing ones.
  State again(path, kIdentity);
  EXPECT_EQ(run(again, 3, 0).size(), 3u);
  State more(path, kIdentity);
  worked = 0;
  EXPECT_EQ(run(more, 12, 100, &worked).size(), 12u);
  EXPECT_EQ(worked, 3u);
}

TEST(State, WithoutAFileKeepsNothing) {
  State state("", kIdentity);
  EXPECT_EQ(run(state, 3, 100).size(), 3u);
}

TEST(State, OfAnotherEvaluationIsRefused) {
  const sluice::testing::ScratchDirectory scratch;
  const std::string path = scratch.file("state");
  {
    State state(path, kIdentity);
    run(state, 2, 100);
  }
  EXPECT_EQ(error_of(path).text, "nothing thrown");
  const Found other = error_of(path, {{"task", "text"}, {"ctx", 256}, {"prefill", nullptr}});
  EXPECT_EQ(other.kind, ErrorKind::kInvalid);
  EXPECT_THAT(other.text,
              HasSubstr(path + ": the state is of another evaluation; expected ctx 256, found 512"));
  EXPECT_THAT(error_of(path, {{"task", "text"}, {"prefill", nullptr}}).text,
              HasSubstr("expected ctx nothing, found 512"));
  EXPECT_THAT(error_of(path, {{"task", "text"}, {"ctx", 512}, {"prefill", nullptr}, {"stride", 1}}).text,
              HasSubstr("expected stride 1, found nothing"));
  EXPECT_THAT(error_of(path, {{"task", "text"}, {"ctx", 512}, {"prefill", 64}}).text,
              HasSubstr("expected prefill 64, found null"));
}

// Any wrong byte, or a missing end: one error that says so, and never other results.
TEST(State, DamageIsAnError) {
  const sluice::testing::ScratchDirectory scratch;
  const std::string path = scratch.file("state");
  {
    State state(path, kIdentity);
    run(state, 3, 100);
  }
  const std::string whole = content(path);
  ASSERT_GT(whole.size(), 60u);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string wrong = whole;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    scratch.write("state", wrong);
    const Found found = error_of(path);
    EXPECT_TRUE(found.kind == ErrorKind::kCorrupt || found.kind == ErrorKind::kInvalid ||
                found.kind == ErrorKind::kUnsupported)
        << i << " " << found.text;
    EXPECT_THAT(found.text, HasSubstr(path)) << i;
    scratch.write("state", whole.substr(0, i));
    EXPECT_NE(error_of(path).text, "nothing thrown") << i;
  }
  scratch.write("state", "a novel\nin two lines");
  EXPECT_THAT(error_of(path).text, HasSubstr("not the state of an evaluation"));
  scratch.write("state", "sluice eval state 2 0000000000000000\n{}");
  EXPECT_EQ(error_of(path).kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace sluice::eval
