// The flags that every command takes, so that scripts may give them anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace sluice::app {

class Command;

// The values that the user typed. Set defaults before add_common_flags(), which shows them.
struct CommonFlags {
  std::string memory;        // empty: the command's default
  std::int64_t threads = 0;  // 0: all usable CPUs
  std::string isa = "auto", io = "direct";
  std::optional<std::uint64_t> seed;
  bool json = false, quiet = false;
};

// What each flag does in a command. Empty: it has no effect, and its help says so.
struct CommonHelp {
  std::string memory{}, threads{}, isa{}, io{}, seed{}, json{}, quiet{};
};

// Senseless values are Error(kUsage) while the command line is read, even where a flag has no effect. `flags`
// must outlive `command`.
void add_common_flags(Command& command, CommonFlags& flags, const CommonHelp& help);

}  // namespace sluice::app
