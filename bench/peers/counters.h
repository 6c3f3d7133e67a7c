// What runners of other engines measure and print alike: counters of this process, token ids, JSON.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// Counters of this process so far.
struct Counters {
  double seconds = 0, cpu_s = 0, read_bytes = 0, major_faults = 0;
};

inline Counters now() {
  Counters c;
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  c.cpu_s = of(usage.ru_utime) + of(usage.ru_stime);
  c.major_faults = static_cast<double>(usage.ru_majflt);
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    double value = 0;
    io >> value;
    if (name == "read_bytes:") c.read_bytes = value;
  }
  return c;
}

inline std::string json_of(const Counters& from, const Counters& to) {
  char text[256];
  std::snprintf(text, sizeof(text),
                "{\"seconds\": %.6f, \"cpu_s\": %.6f, \"read_bytes\": %.0f, \"major_faults\": %.0f}",
                to.seconds - from.seconds, to.cpu_s - from.cpu_s, to.read_bytes - from.read_bytes,
                to.major_faults - from.major_faults);
  return text;
}

template <class T>
std::string joined(const std::vector<T>& items) {
  std::ostringstream out;
  for (std::size_t i = 0; i < items.size(); ++i) out << (i == 0 ? "" : ", ") << items[i];
  return out.str();
}

inline std::vector<std::int32_t> parse_tokens(const std::string& text) {
  std::vector<std::int32_t> tokens;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) tokens.push_back(std::stoi(item));
  if (tokens.empty()) throw std::runtime_error("--tokens: no token ids");
  return tokens;
}
