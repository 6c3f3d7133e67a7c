// What the server itself counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "serve/histogram.h"
#include "serve/metric_set.h"

namespace sluice::serve {

// Thread-safe.
class ServiceMetrics {
 public:
  ServiceMetrics();
  void add(std::string_view counter, std::string_view label,
           std::uint64_t by = 1);  // one of the counters below
  void add_http(std::string_view path, unsigned status);
  void collect(MetricSet& set) const;

  std::atomic<std::uint64_t> prompt_tokens{0}, generation_tokens{0}, reasoning_tokens{0}, prefix_hits{0};
  Histogram first_token, token_gap, whole, queue, prefill, decode, prompt_size, answer_size, templates,
      tokenize;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> labelled_;  // counter, label
  std::map<std::pair<std::string, unsigned>, std::uint64_t> http_;
};

}  // namespace sluice::serve
