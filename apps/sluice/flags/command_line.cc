#include "flags/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "flags/help_text.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

using Words = std::vector<std::string>;

Words split_names(const std::string& names) {
  Words words(1);
  for (const char c : names) {
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

template <class Target>
struct TargetOf {
  using Type = std::remove_pointer_t<Target>;
};
template <class Number>
struct TargetOf<std::optional<Number>*> {
  using Type = Number;
};

std::string quoted(const std::string& text) { return '"' + text + '"'; }

template <class Number>
Number parse_number(const std::string& name, const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && next == end) return number;
  const bool whole = std::is_integral_v<Number>;
  throw Error(ErrorKind::kUsage, error == std::errc::result_out_of_range ? "value out of range"
                                 : whole                                 ? "not a whole number"
                                                                         : "not a number")
      .in(name)
      .expected(whole ? "a whole number, such as 8" : "a number, such as 0.5")
      .found(quoted(text))
      .fix("give such a number, or leave the flag out");
}

// What the values of these settings are called in the help. Rows of one word stand together.
struct SettingWord {
  std::string_view word;
  std::initializer_list<Setting> settings;
};
constexpr SettingWord kSettingWords[] = {
    {"FILE",
     {Setting::kFile, Setting::kTrace, Setting::kProfile, Setting::kResidual, Setting::kDecisions,
      Setting::kRanksOf, Setting::kRouting, Setting::kState, Setting::kData, Setting::kApiKeyFile,
      Setting::kUnix, Setting::kTokenizer}},
    {"PATH", {Setting::kOutput}},
    {"DIR", {Setting::kUiDir, Setting::kLogPrompts}},
    {"MODEL", {Setting::kReference, Setting::kWhole}},
    {"SIZE",
     {Setting::kCapacity, Setting::kDeviceMemory, Setting::kMemoryExperts, Setting::kReferenceMemory,
      Setting::kExpertBytes}},
    {"RATE", {Setting::kLink}},
    {"SHARE",
     {Setting::kMaxLoss, Setting::kMissRate, Setting::kTheta, Setting::kKappa, Setting::kRho, Setting::kAlpha,
      Setting::kLsbReserve, Setting::kCumsumP, Setting::kDecodeShare}},
    {"NUMBER", {Setting::kLambda, Setting::kEta}},
    {"NAME", {Setting::kPreset,     Setting::kRouter,     Setting::kCache,       Setting::kScheduler,
              Setting::kPrefetch,   Setting::kPlacement,  Setting::kDeviceCache, Setting::kPlacementPrefill,
              Setting::kCodec,      Setting::kTask,       Setting::kMachine,     Setting::kDisk,
              Setting::kMath,       Setting::kKv,         Setting::kKeep,        Setting::kDense,
              Setting::kCacheScope, Setting::kDeviceMath, Setting::kDenseOn,     Setting::kDeviceKeep,
              Setting::kAdmit,      Setting::kTiers,      Setting::kActivations, Setting::kLowView,
              Setting::kPrecision,  Setting::kCritical,   Setting::kLsbMiss,     Setting::kWarmup,
              Setting::kConstraint, Setting::kMerge,      Setting::kRenorm,      Setting::kResident,
              Setting::kScope,      Setting::kDemote,     Setting::kShape,       Setting::kDevice,
              Setting::kAlias,      Setting::kToolFormat, Setting::kHost,        Setting::kAllowedHost,
              Setting::kDraft}},
};

// What a target's value is called, if nothing better is said.
std::string usual_word(std::optional<Setting> setting, const FlagTarget& target) {
  for (const SettingWord& one : kSettingWords)
    if (setting && std::ranges::find(one.settings, *setting) != one.settings.end())
      return std::string(one.word);
  const bool text = std::holds_alternative<std::string*>(target) ||
                    std::holds_alternative<std::vector<std::string>*>(target) ||
                    std::holds_alternative<std::function<void(const std::string&)>>(target);
  return text ? "TEXT" : "NUMBER";
}

struct ShowTarget {
  std::string operator()(const std::string* text) const { return *text; }
  template <class Number>
  std::string operator()(const Number* number) const {
    return fmt::format("{}", *number);
  }
  template <class Number>
  std::string operator()(const std::optional<Number>* number) const {
    return *number ? fmt::format("{}", **number) : "";
  }
  std::string operator()(const std::vector<std::string>*) const { return ""; }
  std::string operator()(const std::function<void(const std::string&)>&) const { return ""; }
};

// Declares an option to the library for each kind of target.
struct AddOption {
  CLI::App& app;
  const std::string& names;
  const std::string name;  // in errors

  CLI::Option* operator()(std::string* target) const { return app.add_option(names, *target); }
  CLI::Option* operator()(std::vector<std::string>* target) const {
    return app.add_option(names, *target)->allow_extra_args(false)->take_all();
  }
  CLI::Option* operator()(const std::function<void(const std::string&)>& target) const {
    return app.add_option_function<std::string>(names, target);
  }
  template <class Target>
  CLI::Option* operator()(Target* target) const {
    using Number = typename TargetOf<Target*>::Type;
    return app.add_option_function<std::string>(names, [target, name = name](const std::string& text) {
      *target = parse_number<Number>(name, text);
    });
  }
};

}  // namespace

struct Flag::State {
  CLI::Option* option = nullptr;
  std::optional<Setting> setting;  // empty: an argument
  HelpFlag help;
  FlagTarget target;
  bool takes_value = false;

  // As errors name what is given: a mark, which they spell as the user has written it; or an argument's word.
  std::string name() const { return setting ? mark(*setting) : help.names; }
  // As errors name what may be given.
  std::string long_name() const { return split_names(help.names).back(); }
  // What it takes, as errors call it, and its flag.
  std::string value_word() const { return is_argument() ? help.names : help.value; }
  std::string long_flag() const { return split_names(is_argument() ? help.flags : help.names).back(); }
  bool is_argument() const { return help.group.empty(); }
  bool repeats() const { return std::holds_alternative<std::vector<std::string>*>(target); }
  bool is_named(const std::string& word) const {
    const Words names = split_names(is_argument() ? help.flags : help.names);
    return word.starts_with('-') && std::find(names.begin(), names.end(), word) != names.end();
  }
  // Whether one of the words names it, maybe with its value joined.
  bool is_among(const Words& words) const {
    return std::ranges::any_of(words, [&](const std::string& word) {
      return is_named(word.substr(0, word.find('='))) || is_named(word.substr(0, 2));
    });
  }
};

Flag::Flag() : state_(std::make_unique<State>()) {}
Flag::~Flag() = default;

Flag* Flag::required() {
  state_->help.required = true;
  return this;
}

Flag* Flag::group(const std::string& title) {
  state_->help.group = title;
  return this;
}

Flag* Flag::type_name(const std::string& word) {
  state_->help.value = word;
  return this;
}

Flag* Flag::without_effect() {
  state_->help.effective = false;
  return this;
}

Flag* Flag::check(FlagCheck check) {
  const auto checked = [check = std::move(check)](const std::string& text) {
    check(text);  // its error leaves the library as it is and ends in main()
    return std::string();
  };
  state_->option->check(CLI::Validator(checked, ""));
  return this;
}

Flag* Flag::one_of(std::vector<std::string> names) {
  return check([name = state_->name(), names = std::move(names)](const std::string& text) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return;
    throw unknown_name(name, text, names);
  });
}

Flag* Flag::show_default() {
  state_->help.initial = std::visit(ShowTarget(), state_->target);
  return this;
}

bool Flag::given() const { return state_->option->count() > 0; }

struct Command::State {
  CLI::App* app = nullptr;
  std::unique_ptr<CLI::App> program;  // in the program's Command alone
  const SettingNames* names = nullptr;
  std::string name, summary, version, footer;
  std::string choice;  // heading of flags of which one must be given
  std::vector<std::pair<std::vector<Setting>, std::string>> lacking;  // with what the command does instead
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<std::pair<std::size_t, std::unique_ptr<Command>>> choices;  // with the flags declared before
  std::vector<std::unique_ptr<Flag>> flags;
  std::vector<std::function<void()>> steps;  // before the callback

  // The flags of this command, those of its choices at their places.
  std::vector<const Flag::State*> all_flags() const;
  HelpCommand help(const std::string& program_name) const;
  std::string flags_of(Setting setting) const { return std::string(name_of(setting, *names).flags); }
  std::string help_flag() const { return split_names(flags_of(Setting::kHelp)).back(); }
  std::string help_command() const { return "`sluice " + prefix() + help_flag() + '`'; }
  std::string asks_for_help() const { return help_command() + " explains the usage"; }
  std::string prefix() const { return program ? "" : name + ' '; }
  // What the command does instead of having that flag; empty: nobody has said it.
  std::string instead_of(const std::string& flag) const;

  // Error(kUsage) for what the library would take for something else.
  void check_words(const Words& words) const;
  // Error(kUsage) unless all that must be given is.
  void check_complete() const;
  // What the library refused, in this program's words. `remaining`: words that it could not place.
  Error refused(const Words& words, const Words& remaining, const std::string& cause) const;
};

Command::Command(std::unique_ptr<State> state) : state_(std::move(state)) {}
Command::~Command() = default;

Command::Command(const std::string& name, const std::string& summary, const SettingNames& names)
    : state_(std::make_unique<State>()) {
  state_->program = std::make_unique<CLI::App>(summary, name);
  state_->names = &names;
  state_->app = state_->program.get();
  state_->app->require_subcommand(1);
  state_->app->set_help_flag(state_->flags_of(Setting::kHelp));
  state_->name = name;
  state_->summary = summary;
}

Command* Command::add_command(const std::string& name, const std::string& summary) {
  auto state = std::make_unique<State>();
  state->app = state_->app->add_subcommand(name, summary);
  state->names = state_->names;
  state->name = name;
  state->summary = summary;
  return state_->commands.emplace_back(new Command(std::move(state))).get();
}

Command* Command::add_choice(const std::string& title) {
  auto state = std::make_unique<State>();
  state->app = state_->app;
  state->names = state_->names;
  state->name = state_->name;
  state->choice = title;
  state_->choices.emplace_back(state_->flags.size(), new Command(std::move(state)));
  return state_->choices.back().second.get();
}

Flag* Command::keep(const std::string& names, std::optional<Setting> setting, const std::string& help) {
  Flag* flag = state_->flags.emplace_back(std::make_unique<Flag>()).get();
  flag->state_->setting = setting;
  flag->state_->help.names = names;
  flag->state_->help.text = help;
  if (!state_->choice.empty())
    flag->state_->help.group = state_->choice + " (one of)";
  else if (names.starts_with('-'))
    flag->state_->help.group = "Flags";
  return flag;
}

Flag* Command::add_option(Setting setting, FlagTarget target, const std::string& help) {
  return add_value(state_->flags_of(setting), "", setting, std::move(target), help);
}

Flag* Command::add_argument(const std::string& word, FlagTarget target, const std::string& help) {
  return add_value(word, "", std::nullopt, std::move(target), help);
}

Flag* Command::add_argument(const std::string& word, Setting flag, FlagTarget target,
                            const std::string& help) {
  return add_value(word, state_->flags_of(flag), std::nullopt, std::move(target), help);
}

Flag* Command::add_value(const std::string& names, const std::string& flags, std::optional<Setting> setting,
                         FlagTarget target, const std::string& help) {
  Flag* flag = keep(names, setting, help);
  flag->state_->help.flags = flags;
  flag->state_->takes_value = true;
  if (names.starts_with('-')) flag->state_->help.value = usual_word(setting, target);
  const std::string all = flags.empty() ? names : names + ',' + flags;
  flag->state_->option = std::visit(AddOption{*state_->app, all, flag->state_->name()}, target);
  flag->state_->target = std::move(target);
  return flag;
}

Flag* Command::add_flag(Setting setting, bool& target, const std::string& help) {
  const std::string names = state_->flags_of(setting);
  Flag* flag = keep(names, setting, help);
  flag->state_->option = state_->app->add_flag(names, target);
  return flag;
}

void Command::without_effect(const std::vector<Setting>& settings, const std::string& command) {
  for (const Setting setting : settings) {
    const auto flag = std::find_if(state_->flags.begin(), state_->flags.end(),
                                   [&](const auto& one) { return one->state_->setting == setting; });
    SLUICE_CHECK(flag != state_->flags.end(), state_->flags_of(setting));
    (*flag)->without_effect();
    (*flag)->state_->help.acts = "in " + command;
  }
}

void Command::lacks(std::vector<Setting> settings, const std::string& instead) {
  state_->lacking.emplace_back(std::move(settings), instead);
}

void Command::version(const std::string& text) {
  state_->version = text;
  state_->app->set_version_flag(state_->flags_of(Setting::kVersion), text);
}

void Command::before(std::function<void()> step) { state_->steps.push_back(std::move(step)); }

void Command::footer(const std::string& text) { state_->footer = text; }
void Command::callback(std::function<void()> callback) {
  state_->app->callback([state = state_.get(), callback = std::move(callback)] {
    state->check_complete();
    for (const auto& step : state->steps) step();
    callback();
  });
}

std::string Command::help(std::size_t columns) const { return help_text(state_->help(""), columns); }

std::string Command::help_of(const std::string& command, std::size_t columns) const {
  for (const auto& added : state_->commands)
    if (added->state_->name == command) return help_text(added->state_->help(state_->name), columns);
  SLUICE_CHECK(false, command);
}

std::vector<std::string> Command::command_names() const {
  std::vector<std::string> names;
  for (const auto& command : state_->commands) names.push_back(command->state_->name);
  return names;
}

std::vector<const Flag::State*> Command::State::all_flags() const {
  std::vector<const Flag::State*> all;
  std::size_t choice = 0;
  for (std::size_t i = 0; i <= flags.size(); ++i) {
    for (; choice < choices.size() && choices[choice].first == i; ++choice)
      for (const auto& flag : choices[choice].second->state_->flags) all.push_back(flag->state_.get());
    if (i < flags.size()) all.push_back(flags[i]->state_.get());
  }
  return all;
}

HelpCommand Command::State::help(const std::string& program_name) const {
  HelpCommand help{program_name.empty() ? name : program_name + ' ' + name, summary, {}, {}, footer};
  std::string group = "Flags";
  for (const Flag::State* flag : all_flags()) {
    help.flags.push_back(flag->help);
    if (flag->help.group == kCommonFlags) group = kCommonFlags;
  }
  help.flags.push_back({flags_of(Setting::kHelp), "", "", "Print this text", group});
  if (!version.empty())
    help.flags.push_back({flags_of(Setting::kVersion), "", "", "Print the version", group});
  for (const auto& command : commands) {
    help.commands.push_back({command->state_->name, command->state_->summary, {}, {}, ""});
  }
  const auto spell = [&](std::string& text) { text = with_names(text, NamedBy::kFlag, *names); };
  spell(help.text);
  spell(help.footer);
  for (HelpFlag& flag : help.flags) {
    spell(flag.text);
    spell(flag.group);
  }
  for (HelpCommand& command : help.commands) spell(command.text);
  return help;
}

void Command::State::check_words(const Words& words) const {
  const std::vector<const Flag::State*> all = all_flags();
  const auto named = [&](const std::string& word) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto* flag) { return flag->is_named(word); });
    return found == all.end() ? nullptr : *found;
  };
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string word = words[i].substr(0, words[i].find('='));
    const Flag::State* const flag = named(word);
    if (flag == nullptr) continue;
    const bool joined = word.size() < words[i].size();
    if (!flag->takes_value && joined)
      throw Error(ErrorKind::kUsage, "the flag takes no value")
          .in(word)
          .expected(word + " alone")
          .found(words[i])
          .fix("leave out what is behind it");
    if (!flag->takes_value || joined) continue;
    const bool last = i + 1 == words.size();
    if (last || named(words[i + 1]) != nullptr)
      throw Error(ErrorKind::kUsage, "the flag has no value")
          .in(word)
          .expected(word + ' ' + flag->value_word())
          .found(last ? "the end of the command line" : "the flag " + words[i + 1])
          .fix(last
                   ? asks_for_help()
                   : fmt::format("give a value, or {}={} if that is meant", flag->long_flag(), words[i + 1]));
    ++i;
  }
}

void Command::State::check_complete() const {
  for (const Flag::State* flag : all_flags()) {
    if (!flag->help.required || flag->option->count() > 0) continue;
    const bool argument = flag->is_argument();
    throw Error(ErrorKind::kUsage, argument ? "the argument is missing" : "the flag is missing")
        .in(flag->long_name())
        .expected(argument ? fmt::format("`sluice {}{}`", prefix(), flag->help.names)
                           : flag->long_name() + ' ' + flag->help.value)
        .found("nothing")
        .fix(asks_for_help());
  }
  for (const auto& [place, choice] : choices) {
    Words names, given;
    for (const auto& flag : choice->state_->flags) {
      names.push_back(flag->state_->long_name());
      if (flag->given()) given.push_back(flag->state_->name());
    }
    if (given.size() == 1) continue;
    throw Error(ErrorKind::kUsage, given.empty() ? "a flag is missing" : "flags that exclude each other")
        .in(name)
        .expected("one of " + listed(names, "or"))
        .found(given.empty() ? "none of them" : listed(given, "and"))
        .fix(given.empty() ? asks_for_help() : "leave out all but one");
  }
}

std::string Command::State::instead_of(const std::string& flag) const {
  for (const auto& [settings, instead] : lacking)
    for (const Setting setting : settings) {
      const Words all = split_names(flags_of(setting));
      if (std::find(all.begin(), all.end(), flag) != all.end()) return instead;
    }
  return "";
}

Error Command::State::refused(const Words& words, const Words& remaining, const std::string& cause) const {
  const std::vector<const Flag::State*> all = all_flags();
  // A misspelt flag is the likelier mistake than what its absence led to.
  for (const std::string& word : remaining) {
    if (word.size() < 2 || word[0] != '-') continue;
    Words known = {help_flag()};
    for (const Flag::State* flag : all)
      for (const std::string& name : split_names(flag->help.names + ',' + flag->help.flags))
        if (name.starts_with("--")) known.push_back(name);
    const std::string unknown = word.substr(0, word.find('='));
    const std::string meant = nearest(unknown, known), instead = instead_of(unknown);
    if (!instead.empty())
      return Error(ErrorKind::kUsage, "the command has no flag " + unknown)
          .in(name)
          .expected(instead)
          .fix("leave it out");
    return Error(ErrorKind::kUsage, "unknown flag " + unknown)
        .in(program ? "" : name)
        .expected("a flag that " + help_command() + " lists")
        .fix(meant.empty() ? "leave it out" : "did you mean " + meant + "?");
  }
  for (const Flag::State* flag : all) {
    if (!flag->repeats() && flag->takes_value && flag->option->count() > 1) {
      return Error(ErrorKind::kUsage, "given more than once")
          .in(flag->name())
          .expected("one value")
          .found(listed(flag->option->results(), "and"))
          .fix("leave out all but one");
    }
  }
  if (!remaining.empty()) {
    Words arguments;  // that have no flag in these words
    for (const Flag::State* flag : all)
      if (flag->is_argument() && !flag->is_among(words)) arguments.push_back(flag->help.names);
    return Error(ErrorKind::kUsage, "a word too many")
        .in(name)
        .expected(arguments.empty() ? "flags alone" : fmt::format("{} and flags", fmt::join(arguments, ", ")))
        .found(quoted(remaining.front()))
        .fix("leave it out, or put a text that has blanks between quotes");
  }
  if (program)
    return Error(ErrorKind::kUsage, "no command is given")
        .expected("a command, then its flags")
        .found(quoted(fmt::format("{}", fmt::join(words, " "))))
        .fix(asks_for_help());
  return Error(ErrorKind::kUsage, "the command line cannot be read")
      .in(name)
      .expected("what `sluice " + help_flag() + "` shows")
      .found(fmt::format("{} ({})", fmt::join(words, " "), cause))
      .fix(asks_for_help());
}

void Command::run(const std::vector<std::string>& words) {
  const State* chosen = state_.get();
  for (const auto& command : state_->commands)
    if (!words.empty() && command->state_->name == words[0]) chosen = command->state_.get();
  const bool of_command = chosen != state_.get();
  chosen->check_words(Words(words.begin() + (of_command ? 1 : 0), words.end()));
  try {
    state_->app->parse(Words(words.rbegin(), words.rend()));  // the library takes them last first
  } catch (const CLI::CallForVersion&) {
    print_output("{}\n", state_->version);
  } catch (const CLI::CallForHelp&) {
    const std::size_t columns = terminal_columns(STDOUT_FILENO);
    print_output("{}", of_command ? help_of(chosen->name, columns) : help(columns));
  } catch (const CLI::ParseError& error) {
    throw chosen->refused(words, state_->app->remaining(true), error.what());
  }
}

}  // namespace sluice::app
