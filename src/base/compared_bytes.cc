#include "base/compared_bytes.h"

#include <fmt/format.h>

namespace sluice {

ComparedBytes compared_bytes(Bytes expected, Bytes found) {
  ComparedBytes texts{format_bytes(expected), format_bytes(found)};
  if (texts.expected != texts.found || expected == found) return texts;
  return {fmt::format("{} ({} bytes)", texts.expected, expected),
          fmt::format("{} ({} bytes)", texts.found, found)};
}

}  // namespace sluice
