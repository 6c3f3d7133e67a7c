// What the flag for help prints, from what a command has declared.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::app {

struct HelpFlag {
  std::string names;    // a short and a long flag, or one of them, or the word of a positional argument
  std::string value;    // "NUMBER"; empty: the flag takes none
  std::string initial;  // the default, where it is shown
  std::string text;
  std::string group;  // its heading; empty: an argument, which stands first
  bool required = false;
  bool effective = true;                  // else accepted, and does nothing
  std::string acts = "in every command";  // for such a flag: where else it is accepted
  std::string flags{};                    // by which an argument may be given as well
};

struct HelpCommand {
  std::string name, text;  // "sluice run", "Generate text …"
  std::vector<HelpFlag> flags;
  std::vector<HelpCommand> commands;
  // Prose, then examples: lines that begin with two blanks, and are commands for a shell.
  std::string footer;
};

// In lines of at most `columns`, broken between words. Headings are in the order in which flags name them
// first. A command of the footer that is too long goes on behind a backslash, so that it can be copied.
std::string help_text(const HelpCommand& command, std::size_t columns);

}  // namespace sluice::app
