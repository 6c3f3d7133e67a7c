#include "commands/chat/slash_command.h"

#include <algorithm>

#include "base/error.h"
#include "base/unknown_name.h"

namespace sluice::app {

const std::vector<SlashRow>& slash_rows() {
  static const std::vector<SlashRow> kRows = {
      {"help", "", "this list", Slash::kHelp},
      {"exit", "", "leave; so do /bye and Ctrl-D", Slash::kExit},
      {"bye", "", "", Slash::kExit},
      {"clear", "", "forget the conversation", Slash::kClear},
      {"undo", "", "forget the last question and its answer", Slash::kUndo},
      {"regen", "", "answer the last question again", Slash::kRegen},
      {"edit", "", "write a message in $EDITOR", Slash::kEdit},
      {"system", "[TEXT]", "what the model is told before all; without TEXT nothing", Slash::kSystem},
      {"set", "NAME VALUE", "change a setting; /show lists them", Slash::kSet},
      {"show", "", "the model, the settings, the system message", Slash::kShow},
      {"stats", "", "what the chat has taken so far", Slash::kStats},
      {"experts", "", "where the experts are", Slash::kExperts},
      {"tokens", "", "how much of the context is used", Slash::kTokens},
      {"save", "FILE", "write the messages to a new file, as JSON", Slash::kSave},
      {"load", "FILE", "go on from such a file", Slash::kLoad},
  };
  return kRows;
}

std::optional<SlashCommand> slash_command(const std::string& line) {
  if (!line.starts_with('/') || line.starts_with("//")) return std::nullopt;
  const std::size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string name = line.substr(1, end - 1);
  const std::size_t first = line.find_first_not_of(" \t\n", end);
  std::string words = first == std::string::npos ? "" : line.substr(first);
  words.erase(words.find_last_not_of(" \t\n") + 1);

  std::vector<const SlashRow*> begun;
  for (const SlashRow& row : slash_rows()) {
    if (row.name == name) return SlashCommand{row.what, std::move(words)};
    if (!name.empty() && row.name.starts_with(name)) begun.push_back(&row);
  }
  if (begun.size() == 1) return SlashCommand{begun[0]->what, std::move(words)};
  if (begun.empty())
    throw unknown_name("/" + name, name, names_in(slash_rows()), "unknown command",
                       "/help lists them; // sends a message that begins with /");
  std::vector<std::string> names;
  for (const SlashRow* const row : begun) names.emplace_back(row->name);
  throw Error(ErrorKind::kUsage, "the name of the command is too short")
      .in("/" + name)
      .expected(listed(names, "or"))
      .found(name)
      .fix("write more of it");
}

}  // namespace sluice::app
