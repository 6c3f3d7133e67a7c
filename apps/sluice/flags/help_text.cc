#include "flags/help_text.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "base/wrapped_text.h"

namespace sluice::app {
namespace {

constexpr std::size_t kNarrow = 72;  // below: texts stand under what they are of
constexpr std::size_t kText = 28;    // column where texts begin, else
constexpr std::size_t kTextBelow = 6;

std::string entry(const std::string& what, const std::string& text, std::size_t columns) {
  std::string lines = "  " + what;
  const std::size_t length = text_columns(lines);
  if (text.empty()) return lines + '\n';
  if (columns < kNarrow)
    return lines + '\n' + std::string(kTextBelow, ' ') + wrapped_text(text, columns, kTextBelow, kTextBelow) +
           '\n';
  lines += length + 2 > kText ? '\n' + std::string(kText, ' ') : std::string(kText - length, ' ');
  return lines + wrapped_text(text, columns, kText, kText) + '\n';
}

std::string what_it_takes(const HelpFlag& flag) {
  std::string what = flag.names;
  if (!flag.flags.empty()) what += " or " + flag.flags + ' ' + flag.names;
  if (!flag.value.empty()) what += ' ' + flag.value;
  if (!flag.initial.empty()) what += '=' + flag.initial;
  return what;
}

// The words of a command for a shell; what is in quotes is of one word.
std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (const char c : line) {
    if (quote == 0 && c == ' ') {
      if (!words.back().empty()) words.emplace_back();
      continue;
    }
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    words.back() += c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string shell_lines(const std::string& line, std::size_t columns) {
  constexpr std::size_t kFirst = 2, kOther = 6, kBackslash = 2;
  if (text_columns(line) <= columns) return line + '\n';
  std::string lines(kFirst, ' ');
  std::size_t column = kFirst;
  bool begun = false;
  for (const std::string& word : shell_words(line)) {
    if (begun && column + 1 + text_columns(word) + kBackslash > columns) {
      lines += " \\\n" + std::string(kOther, ' ');
      column = kOther;
      begun = false;
    }
    if (begun) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += text_columns(word);
    begun = true;
  }
  return lines + '\n';
}

std::string footer_lines(const std::string& footer, std::size_t columns) {
  std::string lines;
  std::istringstream source(footer);
  for (std::string line; std::getline(source, line);)
    lines += line.starts_with("  ") ? shell_lines(line, columns) : wrapped_text(line, columns) + '\n';
  return lines;
}

std::string usage(const HelpCommand& command, std::size_t columns) {
  std::string words = "Usage: " + command.name;
  for (const HelpFlag& flag : command.flags)
    if (flag.group.empty()) words += flag.required ? ' ' + flag.names : " [" + flag.names + ']';
  words += command.commands.empty() ? " [FLAGS]" : " COMMAND [FLAGS]";
  return wrapped_text(words, columns, 0, 7) + '\n';
}

}  // namespace

std::string help_text(const HelpCommand& command, std::size_t columns) {
  std::string lines = wrapped_text(command.text, columns) + '\n' + usage(command, columns);
  std::vector<std::string> groups;
  std::map<std::string, std::string> without_effect;  // flags, by where else they are accepted
  for (const HelpFlag& flag : command.flags) {
    if (!flag.effective) {
      std::string& names = without_effect[flag.acts];
      names += (names.empty() ? "" : ", ") + flag.names;
    } else if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  std::stable_partition(groups.begin(), groups.end(), [](const std::string& group) { return group.empty(); });
  for (const std::string& group : groups) {
    lines += '\n' + wrapped_text(group.empty() ? "Arguments:" : group + ':', columns) + '\n';
    for (const HelpFlag& flag : command.flags)
      if (flag.effective && flag.group == group) lines += entry(what_it_takes(flag), flag.text, columns);
  }
  for (const auto& [acts, names] : without_effect)
    lines += '\n' + wrapped_text("Accepted as " + acts + ", without effect here: " + names, columns) + '\n';
  if (!command.commands.empty()) {
    lines += "\nCommands:\n";
    for (const HelpCommand& each : command.commands) lines += entry(each.name, each.text, columns);
  }
  return command.footer.empty() ? lines : lines + '\n' + footer_lines(command.footer, columns);
}

}  // namespace sluice::app
