#include "fetch/fetch_options.h"

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::fetch {
namespace {

constexpr struct {
  IoMode mode;
  std::string_view name;
} kModes[] = {{IoMode::kDirect, "direct"}, {IoMode::kBuffered, "buffered"}, {IoMode::kMmap, "mmap"}};

}  // namespace

IoMode parse_io_mode(std::string_view text) {
  for (const auto& entry : kModes)
    if (entry.name == text) return entry.mode;
  throw unknown_name(Setting::kIo, text, names_in(kModes), "unknown way of reading",
                     "leave " + Setting::kIo + " out for direct");
}

std::string_view io_mode_name(IoMode mode) { return kModes[static_cast<int>(mode)].name; }

}  // namespace sluice::fetch
