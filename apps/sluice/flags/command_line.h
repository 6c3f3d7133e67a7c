// The words of a command line: what a command's file declares, and what the program does with them. The
// parser behind them is a library that only command_line.cc includes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/setting.h"

namespace sluice::app {

// Where a value goes: text as it is, numbers parsed, a vector takes a value each time its flag is given. A
// function is called with the text. Targets must outlive the command.
using FlagTarget =
    std::variant<std::string*, std::int64_t*, std::uint64_t*, std::uint32_t*, double*, std::optional<int>*,
                 std::optional<std::int64_t>*, std::optional<std::uint64_t>*, std::optional<double>*,
                 std::vector<std::string>*, std::function<void(const std::string&)>>;

// The heading of the flags that every command takes, that for help among them.
inline constexpr const char* kCommonFlags = "Common flags";

// Refuses a value by throwing Error(kUsage), which ends the parsing.
using FlagCheck = std::function<void(const std::string&)>;

// A flag or a positional argument of a command. The command owns it.
class Flag {
 public:
  Flag();
  ~Flag();
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

  Flag* required();
  Flag* group(const std::string& title);     // its heading in the help; else "Flags"
  Flag* type_name(const std::string& word);  // what its value is called in the help
  Flag* check(FlagCheck check);              // for each value given
  Flag* without_effect();                    // accepted, and does nothing: the help says so
  Flag* one_of(std::vector<std::string> names);
  Flag* show_default();  // the target's present value, in the help
  bool given() const;    // after parsing

 private:
  friend class Command;
  struct State;
  std::unique_ptr<State> state_;
};

// The program, or one of its commands. Pointers that it hands out live as long as the program's Command.
class Command {
 public:
  // The program. Its flags and those that its texts mention are spelled as `names` has them.
  Command(const std::string& name, const std::string& summary, const SettingNames& names = setting_names());
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_command(const std::string& name, const std::string& summary);
  // Help texts, headings, summaries and footers may hold marks of settings.
  Flag* add_option(Setting setting, FlagTarget target, const std::string& help);
  Flag* add_flag(Setting setting, bool& target, const std::string& help);
  Flag* add_argument(const std::string& word, FlagTarget target, const std::string& help);  // by its place
  // By its place, or by a flag: one of both.
  Flag* add_argument(const std::string& word, Setting flag, FlagTarget target, const std::string& help);
  // Flags of this command that are accepted as in that one, and do nothing here: the help says so.
  // REQUIRES: they were added
  void without_effect(const std::vector<Setting>& settings, const std::string& command);
  // Flags of other commands that this one does not have, and what it does instead; an error says so if one
  // is given.
  void lacks(std::vector<Setting> settings, const std::string& instead);
  // Flags of which exactly one must be given, under a heading of their own.
  Command* add_choice(const std::string& title);
  void version(const std::string& text);  // what the flag for it prints
  void footer(const std::string& text);   // under the help
  void callback(std::function<void()> callback);
  // Called before the callback, in the order of these calls, once all that must be given is.
  void before(std::function<void()> step);

  std::vector<std::string> command_names() const;
  std::string help(std::size_t columns) const;
  std::string help_of(const std::string& command, std::size_t columns) const;  // REQUIRES: it was added
  // Calls the callback of the command that the words name; or prints the help or the version
  // if a word asks for them.
  // Error(kUsage) for words that make no sense, and what the callback throws.
  void run(const std::vector<std::string>& words);

 private:
  struct State;
  explicit Command(std::unique_ptr<State> state);
  Flag* keep(const std::string& names, std::optional<Setting> setting, const std::string& help);
  Flag* add_value(const std::string& names, const std::string& flags, std::optional<Setting> setting,
                  FlagTarget target, const std::string& help);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::app
