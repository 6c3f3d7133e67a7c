#include "report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "report/fitted_line.h"
#include "streams/standard_error.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTerminalPeriod{100};
constexpr std::chrono::seconds kPlainPeriod{5};
constexpr std::size_t kMinBarCells = 8, kMaxBarCells = 24;
constexpr std::size_t kAroundBar = 3;  // a blank and brackets

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

// Also of one that is narrower than any report is drawn for.
std::size_t live_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string duration_text(double seconds) {
  const auto whole = std::llround(std::clamp(seconds, 0.0, 359999.0));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// A rate of bytes, or of counted items.
std::string speed_text(double rate, bool bytes) {
  if (!bytes) return fmt::format("{:.0f}/s", rate);
  return rate < 1e8 ? fmt::format("{:.1f} MB/s", rate / 1e6) : fmt::format("{:.2f} GB/s", rate / 1e9);
}

std::string bar(double share, std::size_t cells) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(cells));
  return std::string(full, '#') + std::string(cells - full, '.');
}

}  // namespace

Progress::Progress(std::string label, Bytes total, Verbosity verbosity, Unit unit)
    : label_(std::move(label)),
      unit_(unit),
      total_(total),
      quiet_(verbosity == Verbosity::kQuiet),
      start_(Clock::now()),
      drawn_at_(start_) {
  const char* term = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

void Progress::end() {
  if (!quiet_ && (terminal_ ? drawn_ : started_)) draw(done_, true);
  quiet_ = true;
}

void Progress::update(Bytes done) {
  done_ = std::min(done, total_);
  if (!started_) {
    started_ = true;
    first_ = done_;  // an earlier run's work counts for the bar but not for the rate
    start_ = drawn_at_ = Clock::now();
    if (!terminal_) return;
  }
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  const auto period = terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kPlainPeriod);
  if (now - drawn_at_ < period) return;
  drawn_at_ = now;
  draw(done_, false);
}

void Progress::draw(Bytes done, bool last) {
  drawn_ = true;
  const double share = total_ == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total_);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = seconds > 0.05 ? static_cast<double>(done - first_) / seconds : 0.0;
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0.0;
  const bool bytes = unit_ == Unit::kBytes;
  const auto amount = [&](Bytes value) { return bytes ? format_bytes(value) : std::to_string(value); };
  const std::vector<LinePart> numbers = {
      {fmt::format("{:3.0f}%", 100 * share), 0},
      {fmt::format("{} of {}", amount(done), amount(total_)), 3},
      {rate > 0 ? speed_text(rate, bytes) : "", 4},
      {fmt::format("{} {}", duration_text(last ? seconds : left), last ? "in all" : "left"), 1}};
  if (!terminal_) {
    const std::size_t columns = terminal_columns(STDERR_FILENO, kAnyColumns);
    print_message("{}: {}", label_,
                  fitted_line(numbers, "  ", columns - std::min(columns, label_.size() + 2)));
    return;
  }
  const std::size_t columns = live_columns() - 1;  // in the last one a terminal wraps
  std::vector<LinePart> parts = numbers;
  parts.insert(parts.begin(), {label_, 2});
  std::string line = fitted_line(parts, "  ", columns);
  const std::size_t free = columns - columns_of(line);
  if (line.starts_with(label_) && free >= kMinBarCells + kAroundBar)
    line.insert(label_.size(), fmt::format(" [{}]", bar(share, std::min(free - kAroundBar, kMaxBarCells))));
  const bool color = wants_color();
  draw_live_line(color ? fmt::format("\x1b[36m{}\x1b[0m", line) : line);
  if (last) end_live_line();
}

}  // namespace sluice::app
