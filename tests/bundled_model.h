// Shared by tests that run the built program on the bundled model.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/json/json.h"
#include "program.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLUICE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLUICE_SANITIZED 1
#endif

namespace sluice::program {

// The field of "memory" that is held against the budget. The system also counts what sanitizers take.
#ifdef SLUICE_SANITIZED
inline constexpr const char* kPeak = "accounted";
#else
inline constexpr const char* kPeak = "peak";
#endif

inline const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

// The program's answer with --json; an empty object and a test failure if the program fails.
inline Json run_json(const std::string& arguments) {
  const Outcome outcome = run(arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  return outcome.code == 0 ? Json::parse(outcome.out) : Json::object();
}

// A budget of this many MiB for a program that itself takes 6 MiB. A larger program (its code, and what
// sanitizers add) gets as much more, so that a tight budget stays tight.
inline std::string memory(int mib) {
  static const int more = [] {
    const Json plan = run_json("plan " + kModel + " --memory 1GiB");
    constexpr int kUsual = 6, kMiB = 1 << 20;
    return static_cast<int>(plan["by_name"]["process"].get<std::uint64_t>() / kMiB) - kUsual;
  }();
  return std::to_string(mib + more) + "MiB";
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Exchanges the output matrices of experts 0 and 1 of every layer, of 2 and 3, and so on: a model that
// computes otherwise and has the same tensors and routers as the bundled one.
inline void exchange_experts(const std::string& path) {
  constexpr int kLayers = 6, kExperts = 32;
  std::string content = content_of(path);
  for (int layer = 0; layer < kLayers; ++layer)
    for (int expert = 0; expert < kExperts; expert += 2) {
      const auto last_digit = [&](int index) {
        const std::string name =
            fmt::format("\"model.layers.{}.mlp.experts.{}.down_proj.weight\"", layer, index);
        const std::size_t at = content.find(name);
        return at == std::string::npos ? at : at + name.find(".down_proj") - 1;
      };
      const std::size_t one = last_digit(expert), other = last_digit(expert + 1);
      ASSERT_LT(std::max(one, other), content.size());
      std::swap(content[one], content[other]);
    }
  ASSERT_TRUE(std::ofstream(path, std::ios::binary) << content);
}

}  // namespace sluice::program
