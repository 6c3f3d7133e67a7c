#include "serve/wire/service_metrics.h"

#include "serve/metric_table.h"

namespace sluice::serve {
namespace {

std::span<const double> bounds(std::string_view name) { return metric_row(name).bounds; }

}  // namespace

ServiceMetrics::ServiceMetrics()
    : first_token(bounds("time_to_first_token_seconds")),
      token_gap(bounds("inter_token_latency_seconds")),
      whole(bounds("e2e_request_latency_seconds")),
      queue(bounds("request_queue_time_seconds")),
      prefill(bounds("request_prefill_time_seconds")),
      decode(bounds("request_decode_time_seconds")),
      prompt_size(bounds("request_prompt_tokens")),
      answer_size(bounds("request_generation_tokens")),
      templates(bounds("template_seconds")),
      tokenize(bounds("tokenize_seconds")) {
  for (const char* reason : {"stop", "length", "tool_calls"})
    labelled_[{"request_success_total", reason}] = 0;
  for (const char* reason : {"cancelled", "error", "refused"})
    labelled_[{"request_failure_total", reason}] = 0;
}

void ServiceMetrics::add(std::string_view counter, std::string_view label, std::uint64_t by) {
  const std::lock_guard lock(mutex_);
  labelled_[{std::string(counter), std::string(label)}] += by;
}

void ServiceMetrics::add_http(std::string_view path, unsigned status) {
  const std::lock_guard lock(mutex_);
  ++http_[{std::string(path), status}];
}

void ServiceMetrics::collect(MetricSet& set) const {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : labelled_) set.add(key.first, {key.second}, static_cast<double>(count));
    for (const auto& [key, count] : http_)
      set.add("http_requests_total", {key.first, std::to_string(key.second)}, static_cast<double>(count));
  }
  set.add("prompt_tokens_total", static_cast<double>(prompt_tokens));
  set.add("generation_tokens_total", static_cast<double>(generation_tokens));
  set.add("reasoning_tokens_total", static_cast<double>(reasoning_tokens));
  set.add("prefix_cache_queries_total", static_cast<double>(prompt_tokens));
  set.add("prefix_cache_hits_total", static_cast<double>(prefix_hits));
  set.add("time_to_first_token_seconds", first_token.state());
  set.add("inter_token_latency_seconds", token_gap.state());
  set.add("e2e_request_latency_seconds", whole.state());
  set.add("request_queue_time_seconds", queue.state());
  set.add("request_prefill_time_seconds", prefill.state());
  set.add("request_decode_time_seconds", decode.state());
  set.add("request_prompt_tokens", prompt_size.state());
  set.add("request_generation_tokens", answer_size.state());
  set.add("template_seconds", templates.state());
  set.add("tokenize_seconds", tokenize.state());
}

}  // namespace sluice::serve
