#include "trace/trace_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::trace {
namespace {
constexpr std::size_t kMostPeek = 64 * kKiB, kBuffer = 256 * kKiB;
}

TraceInput::TraceInput(std::unique_ptr<ByteSource> source, Bytes most_step_bytes)
    : source_(std::move(source)), most_step_bytes_(most_step_bytes), buffer_(kBuffer) {}

bool TraceInput::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t count = source_->read(std::span(buffer_).subspan(end_));
  end_ += count;
  return count > 0;
}

std::string_view TraceInput::peek(std::size_t count) {
  SLUICE_CHECK(count <= kMostPeek);
  while (end_ - begin_ < count && fill()) {
  }
  return {reinterpret_cast<const char*>(buffer_.data() + begin_), std::min(count, end_ - begin_)};
}

bool TraceInput::read(Bytes count, std::vector<std::byte>& out) {
  check_step(count);
  out.clear();
  while (count > 0) {
    if (begin_ == end_ && !fill()) return false;
    const auto piece = static_cast<std::size_t>(std::min<Bytes>(count, end_ - begin_));
    const auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(piece));
    begin_ += piece;
    offset_ += piece;
    count -= piece;
  }
  return true;
}

void TraceInput::check_step(Bytes bytes) const {
  if (bytes <= most_step_bytes_) return;
  throw Error(ErrorKind::kInvalid, "a step of the trace is too large to be held in memory")
      .in(path(), offset_)
      .expected(fmt::format("at most {} bytes", most_step_bytes_))
      .found(fmt::format("{} or more", bytes))
      .fix("record shorter prompts, or cut the trace into several");
}

std::optional<std::string_view> TraceInput::line() {
  std::size_t searched = 0;
  while (true) {
    const auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
               to = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto stop = std::find(from + static_cast<std::ptrdiff_t>(searched), to, std::byte{'\n'});
    const auto length = static_cast<std::size_t>(stop - from);
    if (length > kMostPeek) {
      throw Error(ErrorKind::kInvalid, "a line is too long")
          .in(path(), offset_)
          .expected("at most 65536 bytes")
          .found("more")
          .fix("name a .csv trace, or one of `sluice trace`");
    }
    const char* text = reinterpret_cast<const char*>(buffer_.data() + begin_);
    if (stop != to) {
      begin_ += length + 1;
      offset_ += length + 1;
      return std::string_view(text, length > 0 && text[length - 1] == '\r' ? length - 1 : length);
    }
    searched = length;
    if (fill()) continue;
    if (length == 0) return std::nullopt;
    begin_ += length;  // the last line, without a line end
    offset_ += length;
    return std::string_view(text, length);
  }
}

}  // namespace sluice::trace
