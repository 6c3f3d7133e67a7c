#include "flags/split_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::app {

std::vector<std::string> split_list(const std::string& list, Setting setting) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, comma - at));
    if (parts.back().empty())
      throw Error(ErrorKind::kUsage, "an entry of the list is empty")
          .in(setting)
          .expected("entries with one comma between them")
          .found(fmt::format("\"{}\"", list))
          .fix("leave the comma out, or write what is missing beside it");
    at = comma + 1;
  }
  return parts;
}

}  // namespace sluice::app
