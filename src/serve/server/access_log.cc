#include "serve/server/access_log.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "base/shown_text.h"
#include "serve/json/json_writer.h"

namespace sluice::serve {
namespace {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
}

std::string json_line(const http::Request& request, const http::AccessRecord& record) {
  JsonWriter out;
  out.begin_object().member("time", utc_now()).member("id", request.id).member("peer", request.peer);
  out.member("method", request.method).member("path", request.path).member("status", record.status);
  out.member("bytes", record.bytes).key("ms").tenth(record.total_ms);
  if (!record.ending.empty()) {
    out.member("prompt_tokens", record.prompt_tokens).member("answer_tokens", record.answer_tokens);
    out.member("cached_tokens", record.cached_tokens);
    out.key("queue_ms").tenth(record.queue_ms).key("prompt_ms").tenth(record.prompt_ms);
    out.key("predicted_ms").tenth(record.predicted_ms).member("ending", record.ending);
  }
  return out.end_object().take();
}

}  // namespace

std::string access_line(const http::Request& request, const http::AccessRecord& record, bool json) {
  if (json) return json_line(request, record);
  std::string line =
      fmt::format("{} {} {} {} {} {} {:.1f} ms", utc_now(), request.id, request.peer,
                  escaped_text(request.method), escaped_text(request.path), record.status, record.total_ms);
  if (!record.ending.empty())
    line += fmt::format(", {} in, {} out, {} cached, queue {:.1f} ms, prompt {:.1f} ms, answer {:.1f} ms, {}",
                        record.prompt_tokens, record.answer_tokens, record.cached_tokens, record.queue_ms,
                        record.prompt_ms, record.predicted_ms, record.ending);
  return line;
}

}  // namespace sluice::serve
