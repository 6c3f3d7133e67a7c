#include "flags/room.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/setting.h"

namespace sluice::app {

Room parse_room(const std::string& text) try {
  const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
  return {parse_size(text, Setting::kCapacity), !bare};
} catch (const Error& error) {
  throw Error(ErrorKind::kUsage, "neither a number of experts nor a size")
      .in(Setting::kCapacity)
      .expected("a number of experts such as 64, or a size such as 4GiB")
      .found(error.found_text())
      .fix("give one of these");
}

}  // namespace sluice::app
