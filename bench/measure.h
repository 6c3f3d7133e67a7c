// Interleaved measurement: every round runs each workload once, A B C A B C …, so that a noisy neighbour hits
// all of them. Reports the median of the rounds, because means follow single outliers.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::bench {

struct Workload {
  std::string name;
  std::function<void(std::size_t round)> run;
  std::vector<double> seconds = {};  // one per round
};

// Ends the program unless the answer that is measured is right.
inline void require(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "wrong answer: {}\n", what);
  std::exit(1);
}

// Runs the rounds after one round that is not counted.
inline void measure(std::vector<Workload>& workloads, std::size_t rounds) {
  for (std::size_t round = 0; round <= rounds; ++round) {
    for (Workload& w : workloads) {
      const auto start = std::chrono::steady_clock::now();
      w.run(round);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (round > 0) w.seconds.push_back(took.count());
    }
  }
}

// q in 0 … 1; 0.5 is the median.
inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

// "1.23 ms (1.20 … 1.40)": median, fastest and slowest round.
inline std::string times(const Workload& w) {
  return fmt::format("{:8.3f} ms ({:.3f} … {:.3f})", 1e3 * quantile(w.seconds, 0.5),
                     1e3 * quantile(w.seconds, 0.0), 1e3 * quantile(w.seconds, 1.0));
}

// Value of `--name VALUE`, or `fallback`.
inline std::string option(int argc, char** argv, const std::string& name, const std::string& fallback) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == "--" + name) return argv[i + 1];
  }
  return fallback;
}

// The same for a whole number of at least `least`. Error(kUsage).
inline std::uint64_t whole_option(int argc, char** argv, const std::string& name, std::uint64_t fallback,
                                  std::uint64_t least = 1) {
  const std::string text = option(argc, argv, name, std::to_string(fallback));
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < least)
    throw Error(ErrorKind::kUsage, "not such a number")
        .in("--" + name)
        .expected("a whole number from " + std::to_string(least) + " on")
        .found(text);
  return value;
}

// Error(kUsage) for any argument other than these, each with a value.
inline void check_options(int argc, char** argv, std::initializer_list<std::string_view> names) {
  std::string known;
  for (std::string_view name : names) known += (known.empty() ? "--" : ", --") + std::string(name);
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const bool found = std::ranges::any_of(
        names, [&](std::string_view name) { return flag.starts_with("--") && flag.substr(2) == name; });
    if (!found || i + 1 == argc)
      throw Error(ErrorKind::kUsage, found ? "a flag without its value" : "unknown flag")
          .in(std::string(flag))
          .expected(known + ", each with a value")
          .found(found ? "nothing behind it" : std::string(flag));
  }
}

}  // namespace sluice::bench
