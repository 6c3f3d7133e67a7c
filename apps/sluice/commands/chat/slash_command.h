// What a line of a chat that begins with / asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

enum class Slash {
  kHelp,
  kExit,
  kClear,
  kUndo,
  kRegen,
  kEdit,
  kSystem,
  kSet,
  kShow,
  kStats,
  kExperts,
  kTokens,
  kSave,
  kLoad
};

struct SlashRow {
  std::string_view name, words, summary;  // without the /; what follows it; for the help
  Slash what;
};
const std::vector<SlashRow>& slash_rows();

struct SlashCommand {
  Slash what;
  std::string words;  // behind the name, without blanks at both ends
};

// Names may be cut short while one alone begins so. Empty: the line is a message; of one that begins with //
// the message begins with one /. Error(kUsage) for a name that is none, or begins several.
std::optional<SlashCommand> slash_command(const std::string& line);

}  // namespace sluice::app
